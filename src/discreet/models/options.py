"""Options of the approximate methods. One place knows them all, so that a misspelt one is an error and not silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ..arguments import check_options
from .records import RandomState, generator


class Approximation(TypedDict, total=False):
    """Of questions. ``loopy``: rounds, when to stop, damping; ``gibbs``: chains, sweeps of each, sweeps before them."""

    random_state: RandomState
    max_iterations: int
    tolerance: float
    damping: float
    chains: int
    sweeps: int
    burn_in: int


class GibbsDraws(TypedDict, total=False):
    """Of Gibbs samples: chains, sweeps before the first record, and sweeps from one record of a chain to the next."""

    chains: int
    burn_in: int
    thin: int


_LOOPY = {"max_iterations", "tolerance", "damping"}
_GIBBS = {"chains", "sweeps", "burn_in"}
_TAKEN = {"auto": _LOOPY | _GIBBS, "exact": set[str](), "loopy": _LOOPY, "gibbs": _GIBBS}
_OF_QUESTIONS = ("method", "memory_limit", "given", *Approximation.__annotations__)
_OF_SAMPLES = ("given", "method", "where", "labels", "memory_limit", "random_state", *GibbsDraws.__annotations__)


def checked_approximation(options: Mapping[str, Any], method: str) -> dict[str, Any]:
    """The options of a question, ready for the engine. A seed is welcome everywhere, also where nothing is drawn."""
    check_options(options, {"random_state", *_TAKEN[method]}, _OF_QUESTIONS, f'with method="{method}"')
    checked = dict(options)
    if "random_state" in checked:
        checked["random_state"] = generator(checked["random_state"])
    return checked


def check_draws(options: Mapping[str, Any], method: str) -> None:
    """The options of a sample."""
    taken = GibbsDraws.__annotations__ if method in ("auto", "gibbs") else ()
    check_options(options, taken, _OF_SAMPLES, f'with method="{method}"')
