"""One thread for the linear algebra of a search.

OpenBLAS shares sums of ten thousand numbers and more among threads, which wait for each other in a loop. Where other
work takes one of the processors, every such sum waits until that work is put aside: a fit of ten seconds was not done
after four minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, libraries of linear algebra have one thread; afterwards as many as before."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """Those that are loaded, looked for once: the look costs as much as a small fit."""
    import scipy.optimize  # noqa: F401  # slow to import; brings a library of its own, which must be there to be told

    return ThreadpoolController()
