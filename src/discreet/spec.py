"""Recipes: what was done, in words that a file can hold. One registry for the command line, files, report and skin.

A recipe names a family of models, a method and its public options (a graph, cliques, numbers). It makes the learner;
and where a learner's noisy sums determine its model, the recipe and the sums are all that anybody needs to learn the
model again, at no cost.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .domain import Domain
from .errors import DiscreetError, InputError, did_you_mean
from .learn.fields.noise_aware import NoiseAwareField
from .learn.fields.pairwise import PairwiseLearner
from .learn.fields.search import SearchedField
from .learn.graph_input import parents_of
from .learn.networks.optimal import OptimalNetwork
from .learn.networks.search import SearchedNetwork
from .learn.procedure import Plan
from .learn.spins.binary_learner import BinaryMRFLearner
from .learn.spins.ising_learner import IsingLearner
from .learn.zeros import enforced, without_impossible
from .measurement import Measurement, Measurements
from .models.base import Model
from .papers.collective import CollectiveField
from .papers.naive import NaiveField
from .papers.two_stage import TwoStageNetwork
from .papers.uniform import UniformNetwork
from .privacy.budget import Budget
from .privacy.curator import Curator
from .privacy.unit import PrivacyUnit

FAMILIES = {
    "network": "a Bayesian network",
    "field": "a Markov random field",
    "ising": "an Ising model",
    "pairwise": "a pairwise model",
    "binary": "a binary Markov random field",
}
_MACHINE = ("memory_limit",)  # what a machine can bear is no part of what was done
_LARGEST_NUMBER = 10**7  # of an option in a file: more steps or edges than that are a trap


class Learner(Protocol):
    """What every learner does. Those whose noisy sums determine the model also have ``estimate(measurements)``."""

    def plan(
        self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None
    ) -> Plan: ...

    def fit(self, curator: Curator) -> Model: ...


@dataclass(frozen=True)
class Method:
    """One way to learn a family.

    ``needs`` is the public structure that it is given, if any; ``demands`` are options that must be given as a positive
    number, with the reason; ``refits`` says whether its noisy sums determine the model (by ``measure``, ``estimate``).
    """

    family: str
    name: str
    learner: Callable[..., Any]
    summary: str
    needs: Literal["graph", "cliques", ""] = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    refits: bool = True
    demands: Mapping[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """The options besides the structure, with their defaults."""
        own = dataclasses.fields(self.learner)  # type: ignore[arg-type]
        kept = [f for f in own if f.name not in (self.needs, *self.fixed, *_MACHINE)]
        return {f.name: None if f.default is dataclasses.MISSING else f.default for f in kept}


_MAXIMAL = {"min_weight": "without a public lower bound on the weight of an interaction, what it finds is no field"}


def _methods() -> Iterator[Method]:
    yield Method("network", "optimal", OptimalNetwork, "noisy families with optimal shares, made consistent", "graph")
    yield Method("network", "uniform", UniformNetwork, "equal shares for all columns, as published", "graph")
    yield Method("network", "two_stage", TwoStageNetwork, "shares from a first private stage, as published", "graph")
    yield Method("network", "searched", SearchedNetwork, "a graph found privately, then its tables")
    yield Method("field", "noise_aware", NoiseAwareField, "likelihood whose ridge knows the noise", "cliques")
    yield Method("field", "collective", CollectiveField, "EM for collective graphical models, as published", "cliques")
    yield Method("field", "naive", NaiveField, "maximum likelihood as if there were no noise", "cliques")
    yield Method("field", "searched", SearchedField, "cliques found privately, then their tables")
    for family, learner, sums in (
        ("ising", IsingLearner, "noisy means and pair correlations, then likelihood"),
        ("pairwise", PairwiseLearner, "noisy two-way tables, then likelihood"),
        ("binary", BinaryMRFLearner, "noisy parities, then likelihood"),
    ):
        regressions = "a private sparse regression for each column, as published, with tight noise"
        yield Method(family, "moments", learner, sums, fixed={"method": "moments"})
        yield Method(family, "frank_wolfe", learner, regressions, fixed={"method": "frank_wolfe"}, refits=False)
    yield Method(
        "binary",
        "maximal_monomials",
        BinaryMRFLearner,
        "private regressions, averaged over parities: the largest interactions, as published",
        fixed={"method": "maximal_monomials"},
        refits=False,
        demands=_MAXIMAL,
    )


METHODS = tuple(_methods())


def method_of(family: str, name: str) -> Method:
    """Look a method up; unknown names are errors that suggest the nearest."""
    if family not in FAMILIES:
        raise InputError(f"there is no family {family!r}{did_you_mean(family, FAMILIES)}")
    own = {m.name: m for m in METHODS if m.family == family}
    wanted = name.replace("-", "_")
    if wanted not in own:
        raise InputError(f"the family {family!r} has no method {name!r}{did_you_mean(wanted, own)}")
    return own[wanted]


@dataclass(frozen=True)
class Recipe:
    """A family, a method and public options, all of it plain data.

    ``options`` hold what the learner's constructor takes; a graph is a mapping from each column to its parents, cliques
    are a list of lists.
    """

    family: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        entry = method_of(self.family, self.method)
        object.__setattr__(self, "method", entry.name)
        known = [*entry.options, *([entry.needs] if entry.needs else [])]
        for key in self.options:
            if key not in known:
                hint = did_you_mean(str(key), known)
                raise InputError(f"{self.family}, {entry.name} has no option {str(key)[:60]!r}{hint}")
        if entry.needs and entry.needs not in self.options:
            raise InputError(f"{self.family}, {entry.name} needs its {entry.needs}, which is public knowledge")
        for key, why in entry.demands.items():
            if not _is_positive(self.options.get(key)):
                raise InputError(f"{self.family}, {entry.name} needs the option {key}, a positive number: {why}")
        object.__setattr__(self, "options", plain(dict(self.options)))

    @property
    def entry(self) -> Method:
        return method_of(self.family, self.method)

    def learner(self) -> Any:
        """The learner, ready to plan and fit."""
        try:
            return self.entry.learner(**self.entry.fixed, **self.options)
        except DiscreetError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{self.family}, {self.method} cannot be made with these options: {error}") from None

    def plan(self, domain: Domain, unit: PrivacyUnit, budget: Budget, approximate_size: float | None = None) -> Plan:
        """What would be spent on what, before a row is read."""
        plan: Plan = self.learner().plan(domain, unit, budget, approximate_size)
        return plan

    @property
    def can_refit(self) -> bool:
        """Whether noisy sums and this recipe determine the model."""
        return self.entry.refits

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> Model:
        """The model from noisy sums that were paid for before; post-processing."""
        if not self.can_refit:
            raise InputError(
                f"{self.family}, {self.method} asks the rows step by step and cannot learn from sums alone"
            )
        whole = domain or measurements.domain
        estimate = self.learner().estimate
        named = {"domain": whole} if "domain" in inspect.signature(estimate).parameters else {}
        model: Model = estimate(without_impossible(measurements, whole), **named)
        return enforced(model)

    def to_dict(self) -> dict[str, Any]:
        return {"family": self.family, "method": self.method, "options": dict(self.options)}

    @classmethod
    def from_dict(cls, entry: Any) -> Recipe:
        """Read the form of :meth:`to_dict`, which may come from anywhere."""
        if not isinstance(entry, dict) or set(entry) != {"family", "method", "options"}:
            raise InputError("a recipe has a family, a method and options")
        if not isinstance(entry["family"], str) or not isinstance(entry["method"], str):
            raise InputError("the family and the method of a recipe are words")
        if not isinstance(entry["options"], dict):
            raise InputError("the options of a recipe are a table")
        for key, value in entry["options"].items():
            if isinstance(value, int | float) and not abs(value) <= _LARGEST_NUMBER:
                raise InputError(f"the option {key[:60]!r} of a recipe is larger than {_LARGEST_NUMBER:,}")
        return cls(entry["family"], entry["method"], entry["options"])

    def __str__(self) -> str:
        shown = [f"{k}={v}" for k, v in self.options.items() if k not in ("graph", "cliques")]
        return f"{FAMILIES[self.family]}, {self.entry.summary}" + (f" ({', '.join(shown)})" if shown else "")


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def plain(value: Any) -> Any:
    """Numbers, words, lists and tables as JSON has them; anything else is an error."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(v) for v in value]
    raise InputError(f"an option of a recipe is a number, a word, a list or a table, got {type(value).__name__}")


def network_recipe(domain: Domain, graph: Any, method: str = "optimal", **options: Any) -> Recipe:
    """A recipe with a directed graph in any of the forms that :func:`parents_of` reads."""
    return Recipe("network", method, {"graph": parents_of(graph, domain), **options})


# -- the default -------------------------------------------------------------------------------------------------------


def default_recipe(domain: Domain, approximate_size: float | None = None) -> Recipe:
    """What to learn when only the schema is known: a network whose graph is found privately, from the same budget.

    Chosen by public quantities alone. With few columns each may have two parents; with many, one, so that the number of
    families to be compared stays within bounds.
    """
    if len(domain) == 1:
        return Recipe("network", "optimal", {"graph": {domain.names[0]: []}})
    options: dict[str, Any] = {"max_parents": 2 if len(domain) <= 40 else 1}
    if approximate_size is not None:
        options["approximate_size"] = int(approximate_size)
    return Recipe("network", "searched", options)


# -- learning ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    """A model with what it was made of: the noisy sums from which the recipe makes it again, where there are any."""

    model: Model
    recipe: Recipe
    measurements: Measurements | None = None
    remark: str = ""

    @property
    def again(self) -> Recipe | None:
        """The recipe, if it makes the model from the noisy sums."""
        return None if self.measurements is None else self.recipe


def learn(recipe: Recipe, curator: Curator, public: Sequence[Measurement] = ()) -> Learned:
    """Ask the curator as the recipe says.

    ``public`` tables (totals that everybody knows) are made use of where the model follows from sums; if the sums
    contradict them, they are left out rather than all of it lost.
    """
    learner = recipe.learner()
    if not recipe.can_refit:
        return Learned(enforced(learner.fit(curator)), recipe)
    measured: Measurements = learner.measure(curator)
    remark = ""
    if public:
        try:
            both = measured.plus(*public)
            return Learned(recipe.estimate(both, curator.domain), recipe, both)
        except InputError as error:
            remark = f"the public totals were not used: {error}"
    return Learned(recipe.estimate(measured, curator.domain), recipe, measured, remark)
