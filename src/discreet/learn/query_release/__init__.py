"""Query release: answers to many parities or contingency tables at once, each method usable alone.

:func:`release_gaussian` adds noise to every answer; :func:`release_multiplicative_weights` corrects a distribution over
all records (few columns); :func:`release_perturbed_leader` makes synthetic records by FEM or sepFEM (many columns).
"""

from ...inference.best_record import AnnealedSearch, Enumeration, IntegerProgram
from .additive import ReleasedAnswers, release_gaussian
from .leader import release_perturbed_leader
from .weights import release_multiplicative_weights
from .workload import Parities, Tables, Workload

__all__ = [
    "AnnealedSearch",
    "Enumeration",
    "IntegerProgram",
    "Parities",
    "ReleasedAnswers",
    "Tables",
    "Workload",
    "release_gaussian",
    "release_multiplicative_weights",
    "release_perturbed_leader",
]
