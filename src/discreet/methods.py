"""The registry of methods: what can be learned, how, and by which class. To add a method, write its class and its line.

The options of a method are the fields of its class, so that none can be without effect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import InputError, did_you_mean
from .learn.chains.noise_aware import NoiseAwareChain
from .learn.fields.adaptive import AdaptiveField
from .learn.fields.noise_aware import NoiseAwareField
from .learn.fields.pairwise import PairwiseField
from .learn.hidden.field import HiddenField
from .learn.hidden.network import HiddenNetwork
from .learn.learner import Learner
from .learn.networks.found import FoundNetwork
from .learn.networks.optimal import OptimalNetwork
from .learn.networks.search import SearchedNetwork
from .learn.regressions.pairwise import PairwiseRegressions
from .learn.regressions.spins import SpinRegressions
from .learn.spins.field import SpinField
from .learn.structure.learner import StructureLearner
from .learn.structure.selected_edges import SelectedEdges
from .learn.structure.stable_edges import StableEdges
from .learn.structure.stable_mode import StableMode
from .learn.structure.thresholded import ThresholdedParameters, ThresholdedRegressions
from .papers.chains import CollectiveChain, DescentChain, NaiveChain
from .papers.collective import CollectiveField
from .papers.maximal_monomials import MaximalMonomials
from .papers.naive import NaiveField
from .papers.psgd import PrivateDescent
from .papers.two_stage import TwoStageNetwork
from .papers.uniform import UniformNetwork

STRUCTURE = "structure"
FAMILIES = {
    "network": "a Bayesian network",
    "field": "a Markov random field",
    "spin": "a Markov random field of columns with two levels",
    "chain": "a Markov chain through columns that are times",
    STRUCTURE: "a graph alone: which columns interact; see `discreet structure`",
}
GIVEN = ("graph", "cliques")  # the structure, which is no option among others
SAID = ("workload", "target")  # options that have a word of their own wherever options are given
_MACHINE = ("memory_limit",)  # what a machine can bear is no part of what was done


@dataclass(frozen=True)
class Method:
    """One way to learn a family. What it can be told is read off the fields of its class.

    ``positive``: options that must be given as a positive number, with the reason.
    """

    family: str
    name: str
    learner: type[Learner[Any]]
    summary: str
    positive: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs(self) -> str:
        """The public structure that it is given: ``"graph"``, ``"cliques"``, or nothing."""
        return next((f.name for f in self._fields if f.name in GIVEN), "")

    @property
    def options(self) -> dict[str, Any]:
        """The options besides the structure, with their defaults; None where one must be given."""
        own = (f for f in self._fields if f.name not in (*GIVEN, *_MACHINE))
        return {f.name: None if _must_be_given(f) else f.default for f in own}

    @property
    def demands(self) -> tuple[str, ...]:
        """Options that must be given."""
        own = (f.name for f in self._fields if f.name in self.options and _must_be_given(f))
        return tuple(dict.fromkeys((*own, *self.positive)))

    @property
    def _fields(self) -> tuple[dataclasses.Field[Any], ...]:
        return dataclasses.fields(self.learner)  # type: ignore[arg-type]


def _must_be_given(one: dataclasses.Field[Any]) -> bool:
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


_NO_FIELD = {"min_weight": "without a public lower bound on the weight of an interaction, what it finds is no field"}

# The first method of a family is its default for a structure that is given, or where none is needed.
METHODS = [
    Method("network", "optimal", OptimalNetwork, "noisy families with optimal shares, made consistent"),
    Method("network", "found", FoundNetwork, "a field whose tables are found in rounds, with arrows"),
    Method("network", "searched", SearchedNetwork, "a graph found privately, then its tables"),
    Method("network", "uniform", UniformNetwork, "equal shares for all columns, as published"),
    Method("network", "two_stage", TwoStageNetwork, "shares from a first private stage, as published"),
    Method("network", "hidden", HiddenNetwork, "a hidden class, given which the columns are independent"),
    Method("field", "noise_aware", NoiseAwareField, "likelihood whose ridge knows the noise"),
    Method("field", "adaptive", AdaptiveField, "tables found in rounds, each asking what the model so far misses"),
    Method("field", "pairwise", PairwiseField, "noisy two-way tables of all pairs, then likelihood"),
    Method("field", "pairwise_regressions", PairwiseRegressions, "a private sparse regression for each pair of levels"),
    Method("field", "collective", CollectiveField, "EM for collective graphical models, as published"),
    Method("field", "naive", NaiveField, "maximum likelihood as if there were no noise"),
    Method("field", "descent", PrivateDescent, "private stochastic gradient descent"),
    Method("field", "hidden", HiddenField, "a hidden class, or values missing at random, behind the tables"),
    Method("spin", "moments", SpinField, "noisy means and correlations, then likelihood"),
    Method("spin", "frank_wolfe", SpinRegressions, "a private sparse regression for each column"),
    Method("spin", "maximal_monomials", MaximalMonomials, "the largest interactions, as published", _NO_FIELD),
    Method("chain", "noise_aware", NoiseAwareChain, "starts and moves, and a ridge as large as their noise"),
    Method("chain", "collective", CollectiveChain, "EM for collective graphical models, as published"),
    Method("chain", "naive", NaiveChain, "maximum likelihood as if there were no noise"),
    Method("chain", "descent", DescentChain, "private stochastic gradient descent"),
    Method(STRUCTURE, "auto", StructureLearner, "what suits the budget: stable edges, selected edges, or thresholded"),
    Method(STRUCTURE, "stable_edges", StableEdges, "all edges at once, if no few records could change any"),
    Method(STRUCTURE, "selected_edges", SelectedEdges, "pairs selected, measured, and kept if they stand out"),
    Method(STRUCTURE, "thresholded", ThresholdedParameters, "the edges of a model of noisy moments"),
    Method(STRUCTURE, "thresholded_regressions", ThresholdedRegressions, "the edges of a model of private regressions"),
    Method(STRUCTURE, "stable_mode", StableMode, "what most blocks of the records find, as published"),
]


def method_of(family: str, name: str) -> Method:
    """Look a method up; unknown names are errors that suggest the nearest."""
    if family not in FAMILIES:
        raise InputError(f"there is no family {family!r}{did_you_mean(family, FAMILIES)}")
    own = {m.name: m for m in METHODS if m.family == family}
    if name not in own:
        raise InputError(f"the family {family!r} has no method {name!r}{did_you_mean(name, own)}")
    return own[name]


# -- words of earlier versions -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Earlier:
    """What a family of earlier versions is called now."""

    family: str
    methods: Mapping[str, str]
    implies: Mapping[str, Any] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)  # words that were values of options


_SPINS = {"moments": "moments", "frank_wolfe": "frank_wolfe", "maximal_monomials": "maximal_monomials"}
_PAIRS = {"all pairs": "all", "selected pairs": "selected"}
EARLIER = {
    "ising": Earlier("spin", _SPINS, {"order": 2}, _PAIRS),
    "binary": Earlier("spin", _SPINS, {"order": 3}),
    "pairwise": Earlier("field", {"moments": "pairwise", "frank_wolfe": "pairwise_regressions"}),
}


def of_today(family: str, method: str | None, options: Mapping[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """The same in words of today; the first method of an earlier family was its default."""
    old = EARLIER.get(family)
    if old is None:
        return family, method, dict(options)
    method = next(iter(old.methods.values())) if method is None else old.methods.get(method, method)
    said = {k: old.renamed.get(v, v) if isinstance(v, str) else v for k, v in options.items()}
    return old.family, method, {**old.implies, **said}
