"""One thread for the linear algebra of a search.

OpenBLAS shares sums of ten thousand numbers and more among threads, which wait for each other in a loop. Where other
work takes one of the processors, every such sum waits until that work is put aside: a fit of ten seconds was not done
after four minutes. Rows are counted in threads of our own, and those of a library beside them only wait: on a busy
machine a fit of a million records took 17 processor seconds instead of 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any


@contextmanager
def one_thread(user: str = "scipy.linalg") -> Iterator[None]:
    """Inside, libraries of linear algebra have one thread; afterwards as many as before. ``user`` brings those along
    that will be used: they must be there to be told."""
    with _libraries(user).limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries(user: str) -> Any:
    """Those that are loaded, looked for once: the look costs as much as a small fit."""
    import_module(user)
    from threadpoolctl import ThreadpoolController  # only who computes needs it

    return ThreadpoolController()
