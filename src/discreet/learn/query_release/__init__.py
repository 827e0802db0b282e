"""Query release: answers to many parities or contingency tables at once, each method usable alone or in a learner.

:class:`GaussianAnswers` adds noise to every answer; :class:`MultiplicativeWeights` corrects a distribution over all
records (few columns); :class:`PerturbedLeader` makes synthetic records by FEM or sepFEM (many columns).
"""

from ...inference.best_record import AnnealedSearch, Enumeration, IntegerProgram
from .answers import AnswersLearner, GaussianAnswers, ReleasedAnswers
from .leader import PerturbedLeader
from .weights import MultiplicativeWeights
from .workload import Parities, Tables, Workload

__all__ = [
    "AnnealedSearch",
    "AnswersLearner",
    "Enumeration",
    "GaussianAnswers",
    "IntegerProgram",
    "MultiplicativeWeights",
    "Parities",
    "PerturbedLeader",
    "ReleasedAnswers",
    "Tables",
    "Workload",
]
