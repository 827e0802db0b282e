"""What all tests share: how a test that protective noise decides is given a fair trial, and one thread for algebra."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from covering import covering
from hypothesis import settings
from warm import Warm

# The tests run in one process a core, on small matrices: threads of the algebra library would only wait for each other,
# at three times the cost. Before NumPy is imported, and for the processes that tests start as well.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
# Spark's sessions are short: compiling Java well and collecting garbage in parallel took half of their time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
# Containers often say that no compiled modules are to be kept; then each of those processes would compile all of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Tests neither read nor leave anything in the folder where people's commands keep refits.
os.environ["DISCREET_CACHE"] = "off"

TRIALS = 3
APART = ("test_documentation.py", "test_shown_run_recorded.py", "test_audits.py")  # long; tests apart

# How long one example takes says something about the machine, not about us: no test fails for it.
settings.register_profile("discreet", deadline=None)
settings.load_profile("discreet")


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A process with everything imported, to run command lines and pages in copies of it."""
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:  # a short path: sockets have no room for a long one
        process = Warm(Path(folder))
        yield process
        process.stop()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadfile`` the tests of a file stay together, but for some: they fill the gaps at the end."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class OneFileAtATime(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return nodeid if file.endswith(APART) else file

    return OneFileAtATime(config, log)


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the settings of a test marked ``crossed``, those that are not needed to try every two together are slow."""
    crossed: dict[str, list[pytest.Function]] = {}
    for item in items:
        marked = {mark.name for mark in item.iter_markers()}
        if isinstance(item, pytest.Function) and "crossed" in marked and "slow" not in marked:
            crossed.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in crossed.values():
        fast = covering([tuple(map(id, item.callspec.params.values())) for item in group])
        for place, item in enumerate(group):
            if place not in fast:
                item.add_marker("slow")


def pytest_collection_finish() -> None:
    """What thousands of tests hold in memory is garbage to nobody: going through it again and again took a tenth of
    their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test marked ``chance`` fails only when it fails three times in a row.

    Protective noise is never seeded, so a sound learner fails such a test with some small probability α, three times
    in a row with α³; a real fault fails it every time, or nearly so. Only failed assertions are tried again.
    """
    if pyfuncitem.get_closest_marker("chance") is None:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for trial in range(TRIALS):
        try:
            pyfuncitem.obj(**arguments)
        except AssertionError:
            if trial == TRIALS - 1:
                raise
        else:
            break
    return True
