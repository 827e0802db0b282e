"""Planted mistakes, one line each, and the tests that must notice: `./test --mutants`.

A mistake is an entry in a TOML file of this folder: the file it is planted in, the text that it takes the place of
(which must stand there exactly once), what stands there instead, and the tests that must fail then. Text that is no
longer found is a failing test of its own (``tests/privacy/test_mutants.py``), so that the list stays true.

Every worker has a copy of ``src``. One process imports the libraries that tests need, and is forked for each mistake:
the copy of it imports ours, with the mistake in it. What was found is written down as it comes, so that a run that was
stopped goes on where it was; it is forgotten when the code, the tests or the mistake change.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
KNOWN = ROOT / ".mutants.json"
LIBRARIES = ("numpy", "scipy.special", "scipy.stats", "opendp.prelude", "pytest", "hypothesis", "dp_accounting")
KEPT = ("mechanisms", "accounting", "curator")  # rooms in which no mistake may go unnoticed
SECONDS = 300
ENOUGH = 0.98


@dataclass(frozen=True)
class Mutant:
    """One planted mistake."""

    room: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        return ROOT / "src" / "discreet" / self.file

    def planted(self) -> str:
        """The file with the mistake in it."""
        text = self.path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.room}: {self.name!r} is to be planted where {self.old!r} stands, and that stands "
                f"{text.count(self.old)} times in {self.file}; find the place again, or another mistake for it"
            )
        return text.replace(self.old, self.new)


def load(rooms: Iterable[str] | None = None) -> list[Mutant]:
    """All of them, in the order of their files."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        if rooms is None or path.stem in rooms:
            for entry in tomllib.loads(path.read_text())["mutant"]:
                tests = tuple(f"tests/{t}" for t in entry.pop("tests"))
                found.append(Mutant(path.stem, tests=tests, **entry))
    return found


def sample(mutants: Sequence[Mutant], count: int) -> list[Mutant]:
    """So many of them, evenly over the rooms."""
    count = min(count, len(mutants))
    return [mutants[int((i + 0.5) * len(mutants) / count)] for i in range(count)]


def fingerprint(mutant: Mutant) -> str:
    """Of all that decides whether a mistake is noticed."""
    tests = sorted({t.split("::")[0] for t in mutant.tests})
    parts = [repr(mutant).encode(), _source(), *((ROOT / t).read_bytes() for t in tests if (ROOT / t).exists())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


_digests: dict[str, bytes] = {}


def _source() -> bytes:
    if "src" not in _digests:
        files = sorted((ROOT / "src").rglob("*.py"))
        _digests["src"] = hashlib.sha256(b"\0".join(f.read_bytes() for f in files)).digest()
    return _digests["src"]


# -- running -----------------------------------------------------------------------------------------------------------


class Quickly:
    """A plugin of pytest: the first example that fails is enough, nobody wants the smallest."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        quick = settings(phases=(Phase.explicit, Phase.generate), database=None, deadline=None)
        settings.register_profile("mutants", quick)
        settings.load_profile("mutants")


def _in_child(tree: Path, tests: Sequence[str], said: Path) -> int:
    """In a fork of its own: run the tests against the copy of the code that has the mistake."""
    os.setsid()
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(tree)  # for processes that tests start
    sys.path.insert(0, str(tree))
    import pytest

    options = ["-x", "-q", "--no-header", "--hypothesis-seed=0", "-m", "slow or not slow"]
    plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, *plugins, *tests], [Quickly()]))


@dataclass
class Worker:
    """A copy of the code, and what is being tried on it."""

    tree: Path
    mutant: Mutant | None = None
    pid: int = 0
    since: float = 0.0

    def start(self, mutant: Mutant) -> None:
        self.mutant, self.since = mutant, time.monotonic()
        if mutant.file:
            self._place.write_text(mutant.planted())
            self._forget_compiled()
        self.pid = os.fork()
        if not self.pid:
            code = 3
            try:
                code = _in_child(self.tree, mutant.tests, self.tree / "said")
            finally:
                os._exit(code)

    @property
    def _place(self) -> Path:
        assert self.mutant is not None
        return self.tree / "discreet" / self.mutant.file

    def _forget_compiled(self) -> None:
        """Two versions of one second and one size are the same to Python's cache."""
        for compiled in (self._place.parent / "__pycache__").glob(f"{self._place.stem}.*"):
            compiled.unlink()

    def finish(self, code: int | None) -> tuple[Mutant, str, str]:
        """What became of it, and what the tests said; the code is as it was."""
        assert self.mutant is not None
        mutant, said = self.mutant, (self.tree / "said").read_text(errors="replace")
        if mutant.file:
            shutil.copy2(mutant.path, self._place)
            self._forget_compiled()
        self.mutant = None
        if code is None:
            return mutant, "timeout", said
        return mutant, {0: "survived", 1: "killed"}.get(code, "broken"), said

    def stop(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def run(mutants: Iterable[Mutant], cores: int, seconds: float = SECONDS) -> Iterable[tuple[Mutant, str, str]]:
    """Each with "killed", "survived", "timeout" or "broken" (the tests could not be run), and what the tests said."""
    for name in LIBRARIES:
        importlib.import_module(name)
    waiting = list(mutants)[::-1]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        workers = [Worker(Path(folder) / str(i)) for i in range(max(1, min(cores, len(waiting))))]
        for worker in workers:
            shutil.copytree(ROOT / "src", worker.tree)
        try:
            while waiting or any(w.mutant for w in workers):
                for worker in workers:
                    if worker.mutant is None and waiting:
                        worker.start(waiting.pop())
                    elif worker.mutant is not None:
                        done, status = os.waitpid(worker.pid, os.WNOHANG)
                        if done:
                            yield worker.finish(os.waitstatus_to_exitcode(status))
                        elif time.monotonic() - worker.since > seconds:
                            worker.stop()
                            yield worker.finish(None)
                time.sleep(0.02)
        finally:
            for worker in workers:
                if worker.mutant is not None:
                    worker.stop()


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./test --mutants", description="Plant mistakes; tests must fail.")
    parser.add_argument("--room", action="append", metavar="ROOM", help="only these (a file of tests/privacy/mutants)")
    parser.add_argument("--name", metavar="WORDS", help="only those whose name holds these words")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them, evenly over the rooms")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--twice", action="store_true", help="plant each twice: what is noticed by luck shows")
    parser.add_argument("--again", action="store_true", help="also those whose outcome is known")
    parser.add_argument("--show", action="store_true", help="what the tests said")
    asked = parser.parse_args(words)
    mutants = [m for m in load(asked.room) if asked.name is None or asked.name in m.name]
    if asked.sample:
        mutants = sample(mutants, asked.sample)
    for mutant in mutants:
        mutant.planted()
    known = {} if asked.again or not KNOWN.exists() else json.loads(KNOWN.read_text())
    tries = 2 if asked.twice else 1
    marks = {m: fingerprint(m) + " twice" * asked.twice for m in mutants}
    outcome = {m: known[marks[m]] for m in mutants if marks[m] in known}
    fresh = [m for m in mutants if m not in outcome]
    so_far: dict[Mutant, list[str]] = {m: [] for m in fresh}
    if fresh and not asked.sample:  # the tests pass where nothing is planted; otherwise their failing says nothing
        every = tuple(sorted({t for m in fresh for t in m.tests}))
        for _, found, said in run([Mutant("", "", "", "", "", every)], 1, 3600):
            if found != "survived":
                print(said)
                print("without any mistake the tests must pass, and they do not")
                return 2
    for mutant, one, said in run([m for m in fresh for _ in range(tries)], asked.cores):
        so_far[mutant].append(one)
        if len(so_far[mutant]) < tries:
            continue
        found = outcome[mutant] = together(so_far[mutant])
        if asked.show or found == "broken":
            print(said)
        print(f"{found:9} {mutant.room}: {mutant.name}", flush=True)
        if found in ("killed", "survived", "by luck"):
            known[marks[mutant]] = found
        if not asked.sample:
            KNOWN.write_text(json.dumps(known))
    return report(outcome)


def together(tries: Sequence[str]) -> str:
    """What came of some tries of one mistake."""
    return tries[0] if len(set(tries)) == 1 else "by luck" if set(tries) <= {"killed", "survived"} else "broken"


def report(outcome: dict[Mutant, str]) -> int:
    print()
    for mutant, found in outcome.items():
        if found != "killed":
            print(f"{found.upper()} {mutant.room}: {mutant.name} ({mutant.file}; {', '.join(mutant.tests)})")
    rooms = Counter(m.room for m in outcome)
    caught = Counter(m.room for m, found in outcome.items() if found == "killed")
    for room, planted in sorted(rooms.items()):
        print(f"{room:14} {caught[room]:4} of {planted:4}")
    rate = caught.total() / max(rooms.total(), 1)
    print(f"{caught.total()} of {rooms.total()} planted mistakes were noticed ({rate:.1%}).")
    missed = any(caught[room] < rooms[room] for room in KEPT)
    return 1 if missed or rate < ENOUGH or "broken" in outcome.values() else 0


if __name__ == "__main__":
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    raise SystemExit(main())
