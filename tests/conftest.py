"""What all tests share: how a test that protective noise decides is given a fair trial, and one thread for algebra."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The tests run in one process a core, on small matrices: threads of the algebra library would only wait for each other,
# at three times the cost. Before NumPy is imported, and for the processes that tests start as well.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
# Containers often say that no compiled modules are to be kept; then each of those processes would compile all of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

TRIALS = 3

# How long one example takes says something about the machine, not about us: no test fails for it.
settings.register_profile("discreet", deadline=None)
settings.load_profile("discreet")


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
