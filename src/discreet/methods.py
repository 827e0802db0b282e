"""The registry of methods: what can be learned, how, and by which class. To add a method, write its class and its line.

The options of a method are the fields of its class, so that none can be without effect. A class is loaded when it is
asked for: who shows a release, or plans one, needs one of them and not all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from .errors import InputError, did_you_mean
from .learn.learner import Learner

STRUCTURE = "structure"
SEARCHED = ("network", "searched")
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

    ``home``: its class, or where that is. ``positive``: options that must be given as a positive number, with the
    reason.
    """

    family: str
    name: str
    home: str | type[Learner[Any]]
    summary: str
    positive: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def learner(self) -> type[Learner[Any]]:
        """The class."""
        if not isinstance(self.home, str):
            return self.home
        module, _, name = self.home.rpartition(".")
        found: type[Learner[Any]] = getattr(import_module(f".{module}", __package__), name)
        return found

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
# fmt: off
METHODS = [
    Method("network", "optimal", "learn.networks.optimal.OptimalNetwork",
           "noisy families with optimal shares, made consistent"),
    Method("network", "found", "learn.networks.found.FoundNetwork",
           "a field whose tables are found in rounds, with arrows"),
    Method("network", "searched", "learn.networks.search.SearchedNetwork", "a graph found privately, then its tables"),
    Method("network", "uniform", "papers.uniform.UniformNetwork", "equal shares for all columns, as published"),
    Method("network", "two_stage", "papers.two_stage.TwoStageNetwork",
           "shares from a first private stage, as published"),
    Method("network", "hidden", "learn.hidden.network.HiddenNetwork",
           "a hidden class, given which the columns are independent"),
    Method("field", "noise_aware", "learn.fields.noise_aware.NoiseAwareField",
           "likelihood whose ridge knows the noise"),
    Method("field", "adaptive", "learn.fields.adaptive.AdaptiveField",
           "tables found in rounds, each asking what the model so far misses"),
    Method("field", "pairwise", "learn.fields.pairwise.PairwiseField",
           "noisy two-way tables of all pairs, then likelihood"),
    Method("field", "pairwise_regressions", "learn.regressions.pairwise.PairwiseRegressions",
           "a private sparse regression for each pair of levels"),
    Method("field", "collective", "papers.collective.CollectiveField",
           "EM for collective graphical models, as published"),
    Method("field", "naive", "papers.naive.NaiveField", "maximum likelihood as if there were no noise"),
    Method("field", "descent", "papers.psgd.PrivateDescent", "private stochastic gradient descent"),
    Method("field", "hidden", "learn.hidden.field.HiddenField",
           "a hidden class, or values missing at random, behind the tables"),
    Method("spin", "moments", "learn.spins.field.SpinField", "noisy means and correlations, then likelihood"),
    Method("spin", "frank_wolfe", "learn.regressions.spins.SpinRegressions",
           "a private sparse regression for each column"),
    Method("spin", "maximal_monomials", "papers.maximal_monomials.MaximalMonomials",
           "the largest interactions, as published", _NO_FIELD),
    Method("chain", "noise_aware", "learn.chains.noise_aware.NoiseAwareChain",
           "starts and moves, and a ridge as large as their noise"),
    Method("chain", "collective", "papers.chains.CollectiveChain", "EM for collective graphical models, as published"),
    Method("chain", "naive", "papers.chains.NaiveChain", "maximum likelihood as if there were no noise"),
    Method("chain", "descent", "papers.chains.DescentChain", "private stochastic gradient descent"),
    Method(STRUCTURE, "auto", "learn.structure.learner.StructureLearner",
           "what suits the budget: stable edges, selected edges, or thresholded"),
    Method(STRUCTURE, "stable_edges", "learn.structure.stable_edges.StableEdges",
           "all edges at once, if no few records could change any"),
    Method(STRUCTURE, "selected_edges", "learn.structure.selected_edges.SelectedEdges",
           "pairs selected, measured, and kept if they stand out"),
    Method(STRUCTURE, "thresholded", "learn.structure.thresholded.ThresholdedParameters",
           "the edges of a model of noisy moments"),
    Method(STRUCTURE, "thresholded_regressions", "learn.structure.thresholded.ThresholdedRegressions",
           "the edges of a model of private regressions"),
    Method(STRUCTURE, "stable_mode", "learn.structure.stable_mode.StableMode",
           "what most blocks of the records find, as published"),
]
# fmt: on


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


def collective_of_first_version(said: Mapping[str, Any]) -> dict[str, Any]:
    """What the first version of ``field, collective`` did where nothing else was said, in options of today: 25 steps of
    the published law, and constant damping. It ended before only where parameters stood still, by a tolerance that is
    no option any more."""
    defaults = {"iterations": 25, "solver": "dual", "damping": 0.1}
    kept = {k: v for k, v in said.items() if k != "tolerance"}
    return {**defaults, **kept, "stopping": "converged", "likelihood": "noise", "tolerance": 0.0}
