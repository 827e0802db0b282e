"""Chains as published [BMSSHM17 section 4.2]: collective graphical models, naive likelihood, private descent.

Of the paper's weights 1/K there are three readings: with K counted for each table |E| is their sensitivity; with K
counted for the person and steps from null to null left out it is 1, and noise for |E| is |E| times too much; with these
steps kept, but not counted, it is not bounded. ``bound="scale"`` counts K in windows, leaves out those in which nobody
was seen, and keeps the others whole, so that they are records of the model: each of the |E| times of a tied chain then
has a sum of 1, and the start of the window another.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from ..arguments import check_positive, check_whole
from ..domain import Domain
from ..learn.chains.learner import ChainLearner, field_of
from ..learn.fields.learner import FieldLearner
from ..learn.fields.likelihood import Field
from .collective import CollectiveField
from .naive import NaiveField
from .psgd import Descent


@dataclass(frozen=True)
class NaiveChain(ChainLearner):
    """Noisy tables projected to the simplex, then maximum likelihood with the penalty λ‖θ‖², as if there were no noise.

    Parameters
    ----------
    penalty:
        λ, on the scale of the log-likelihood of one window. Default: ten divided by the (noisy) number of windows.
    """

    penalty: float | None = None
    method: ClassVar[str] = "naive"
    passes: ClassVar[int] = NaiveField.passes

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(or_none=True, penalty=self.penalty)

    def fields(self) -> FieldLearner:
        return NaiveField((), penalty=self.penalty)


@dataclass(frozen=True)
class CollectiveChain(ChainLearner):
    """EM for collective graphical models over the chain: Algorithms 1 and 2, whose tables n_t are those of all times
    and whose observation is their sum. ``solver`` and ``iterations``, the most steps that are made:
    see :class:`~discreet.papers.collective.CollectiveField`."""

    solver: Literal["dual", "nlbp"] = "dual"
    iterations: int | None = None
    method: ClassVar[str] = "cgm"
    passes: ClassVar[int] = CollectiveField.passes

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, or_none=True, iterations=self.iterations)

    def fields(self) -> FieldLearner:
        return CollectiveField((), iterations=self.iterations, solver=self.solver)


@dataclass(frozen=True)
class DescentChain(Descent):
    """Private stochastic gradient descent for chains; needs an (ε, δ) budget and add-remove.

    Parameters
    ----------
    approximate_size:
        The number of windows as far as it is public: it scales the steps, and need not be exact.
    order, tied:
        As for every chain.
    rounds, rate:
        How many samples, and which part of the windows each holds.
    clip:
        To which norm gradients are clipped; by default one that no gradient exceeds.
    learning_rate, penalty:
        Of θ ← θ + η(gradient − λθ), θ the log potentials.
    """

    approximate_size: float
    order: int = 1
    tied: bool = True
    rounds: int = 100
    rate: float | str | Fraction = 0.1
    clip: float | None = None
    learning_rate: float = 1.0
    penalty: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, order=self.order)

    def field(self, domain: Domain) -> Field:
        return field_of(domain, self.order, tied=self.tied)
