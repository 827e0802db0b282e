"""How large a file may be before it is refused: checked before anything is read, decoded or allocated."""

from __future__ import annotations

from dataclasses import dataclass

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Upper bounds for loading a file that somebody else may have made.

    The defaults keep a refusal within a second and 200 MB. Raise one of them for a large file that you trust:
    ``load_model(path, limits=Limits(file_bytes=2**32))``.
    """

    file_bytes: int = 512 * MEBIBYTE
    entries: int = 20_000
    header_bytes: int = 4 * MEBIBYTE
    header_depth: int = 32
    header_values: int = 400_000
    array_elements: int = 1 << 28
    array_dimensions: int = 32
    text_bytes: int = 8 * MEBIBYTE
    table_cells: int = 1 << 23


DEFAULT_LIMITS = Limits()
