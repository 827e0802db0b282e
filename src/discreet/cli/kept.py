"""Refits behind noise intervals, kept between commands: the second question to a release does not wait for them again.

They follow from what is in the release file, so they are as public as that. They lie in the user's own folder for such
things, ``discreet`` in ``$XDG_CACHE_HOME`` or ``~/.cache`` (``DISCREET_CACHE`` names another folder, or is ``off``),
under a digest of all that they follow from. Nothing is lost when somebody deletes them. A file that cannot be read or
written is as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..release import Release
    from ..release.uncertainty import NoiseIntervals

FOLDER = "DISCREET_CACHE"
WORTHWHILE = 0.1
"""Processor seconds of work below which nothing is kept."""
FORM = 2
"""Of the refits: 2 has levels that were taken together as far apart as their noise."""
MARGINALS = "-marginals"
"""What the refits say of their own cliques, which is what most questions are about."""
MOST_FILES, MOST_BYTES = 100, 100_000_000
"""Of all that is kept; the oldest go first. A single file has a tenth of the bytes at most."""


def intervals(release: Release, level: float, draws: int, seed: int) -> NoiseIntervals:
    """The release's noise intervals, from a file if there is one."""
    file = _file(release, draws, seed)
    if file is not None and (kept := _read(file, release, level)) is not None:
        return kept
    begun = time.process_time()
    found = release.intervals(level, draws, seed)
    if file is not None and time.process_time() - begun > WORTHWHILE:
        with contextlib.suppress(OSError):
            _write(file, found)
    return found


def _file(release: Release, draws: int, seed: int) -> Path | None:
    named = os.environ.get(FOLDER)
    if named == "off":
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(named) if named else Path(home) / "discreet"
    return folder / f"{_digest(release, draws, seed)}.zip" if folder.is_absolute() else None


def _digest(release: Release, draws: int, seed: int) -> str:
    """Of all that the refits follow from, this version of the program included."""
    from .. import __version__
    from ..spec import plain

    assert release.spec is not None and release.measurements is not None
    (header, tables), (about, sums) = release.model.to_archive(), release.measurements.to_archive()
    said = {k: v for k, v in header.items() if k != "card"}
    digest = hashlib.sha256(
        json.dumps(
            {
                "by": [__version__, draws, seed, FORM],
                "spec": release.spec.to_dict(),
                "model": said,
                "sums": about,
            },
            default=plain,
        ).encode()
    )
    for name, array in sorted({**tables, **{f"sums {k}": v for k, v in sums.items()}}.items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def _write(file: Path, found: NoiseIntervals) -> None:
    import numpy as np  # help starts without it

    from ..io.archive import write_archive
    from ..models.queries import clique_marginals

    if found.exact is not None and found.exact is not found.model:
        models = {"draw": found.draws, "centre": (found.centre,), "exact": (found.exact,)}
    else:
        models = {"draw": found.draws, "centre": (found.centre,)}
    arrays: dict[str, Any] = {}
    for part, members in models.items():
        each = [model.to_archive() for model in members]
        if any(header["model"] != each[0][0]["model"] for header, _ in each):
            return  # refits with different graphs do not fit into one table
        arrays |= {f"{part}.{name}": np.stack([a[name] for _, a in each]) for name in each[0][1]}
        known = [m for m in map(clique_marginals, members) if m is not None]
        if len(known) == len(members):
            arrays[f"{part}{MARGINALS}"] = np.stack(known)
    if sum(a.nbytes for a in arrays.values()) > MOST_BYTES / 10:
        return
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    header = {"kind": "refits", "records": found.records, "deviation": found.deviation}
    write_archive(file, header, arrays)
    _tidy(file.parent)


def _read(file: Path, release: Release, level: float) -> NoiseIntervals | None:
    from ..errors import DiscreetError
    from ..io.archive import read_archive
    from ..release.uncertainty import NoiseIntervals

    model = release.model
    try:
        header, arrays = read_archive(file)
        about = {**model.to_archive()[0], "card": None, "domain": model.domain}
        homes: dict[Any, Any] = {}
        parts = {part: _models(model, about, arrays, part, homes) for part in ("draw", "centre", "exact")}
        os.utime(file)
        exact = parts["exact"][0] if parts["exact"] else model
        about_noise = (header["records"], header["deviation"])
        draws = (parts["draw"][0], *parts["draw"][1:])  # at least one
        return NoiseIntervals(model, parts["centre"][0], draws, level, exact, *about_noise, release.together)
    except (OSError, KeyError, IndexError, TypeError, ValueError, DiscreetError):
        return None


def _models(
    model: Any, about: Mapping[str, Any], arrays: Mapping[str, Any], part: str, homes: dict[Any, Any]
) -> list[Any]:
    from ..models.queries import remember

    own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{part}.")}
    count = len(next(iter(own.values()))) if own else 0
    made = [type(model).from_archive(about, {name: array[i] for name, array in own.items()}) for i in range(count)]
    for one, marginals in zip(made, arrays.get(f"{part}{MARGINALS}", ()), strict=False):
        remember(one, marginals, homes)
    return made


def _tidy(folder: Path) -> None:
    files = sorted(((f.stat().st_mtime, f) for f in folder.glob("*.zip")), reverse=True)
    total = 0
    for number, (_, file) in enumerate(files):
        total += file.stat().st_size
        if number >= MOST_FILES or total > MOST_BYTES:
            file.unlink(missing_ok=True)
