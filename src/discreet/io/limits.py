"""How large a file may be before it is refused: checked before anything is read, decoded or allocated."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import FileFormatError

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Upper bounds for loading a file that somebody else may have made.

    The defaults keep a refusal within a second and 200 MB. For a large file that you trust, raise one of them,
    ``load_model(path, limits=Limits(file_bytes=2**30))``, or take :data:`TRUSTED`.
    """

    file_bytes: int = 64 * MEBIBYTE
    entries: int = 20_000
    header_bytes: int = 4 * MEBIBYTE
    header_depth: int = 32
    header_values: int = 400_000
    array_elements: int = 1 << 26
    array_dimensions: int = 32
    text_bytes: int = 8 * MEBIBYTE
    table_cells: int = 1 << 23
    refit_seconds: int = 600
    """Of work: how long learning a model again from its noisy sums is forecast to take."""

    def require(self, field: str, value: int, what: str) -> None:
        """An error that names the limit, if ``value`` is beyond it."""
        most = getattr(self, field)
        if value > most:
            raise FileFormatError(
                f"{what} {value:,} is more than the limit of {most:,}; "
                f"for a file that you trust, pass limits=Limits({field}={value})"
            )


DEFAULT_LIMITS = Limits()

TRUSTED = Limits(
    file_bytes=1 << 32,
    entries=65_535,
    header_bytes=1 << 30,
    header_values=1 << 27,
    array_elements=1 << 32,
    text_bytes=1 << 32,
    table_cells=1 << 32,
    refit_seconds=1 << 32,
)
"""For files of one's own: as large as the format can be. What is malformed is refused all the same."""
