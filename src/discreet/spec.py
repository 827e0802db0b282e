"""What to learn, in words that a file can hold, and one function that resolves what was said.

A :class:`Spec` names a family, a method and its public options (a graph, cliques, numbers). The command line, run
files, Python and the scikit-learn skin all come by it through :func:`resolve`, so that the same words mean the same,
or are the same error, wherever they are said. A spec makes the learner; and where a learner's noisy sums determine its
model, the spec and the sums are all that anybody needs to learn the model again, at no cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from .arguments import require_domain, shortened
from .domain import Domain
from .errors import InputError, counted, did_you_mean
from .learn import discovery
from .learn.certifying import FOUND, Certifying, checked_share, divided, with_certificate
from .learn.checks import check_curator, checked_public_size, checked_size
from .learn.fields.purpose import workload_of
from .learn.graph_files import Structure, released_before
from .learn.graph_input import Graph, cliques_of, structure_of
from .learn.learner import Learner
from .learn.procedure import Procedure, Whole
from .learn.zeros import enforced, without_impossible
from .measurement import Measurement, Measurements
from .methods import EARLIER, FAMILIES, GIVEN, METHODS, SAID, SEARCHED, STRUCTURE, Method, method_of, of_today
from .models.base import Model
from .privacy.budget import Budget
from .privacy.curator import Curator
from .privacy.unit import PrivacyUnit

_LARGEST_NUMBER = 10**7  # of an option in a file: more steps or edges than that are a trap
_FEW_COLUMNS = 40  # with so many a searched network still compares families with two parents


# -- the specification -------------------------------------------------------------------------------------------------


WITHOUT_GRAPH = (
    ": it says which tables are worth asking for, and here these are given or found in another way. Leave it out; or "
    "leave out graph, cliques, family and method, for the default, which uses it"
)


@dataclass(frozen=True)
class Spec:
    """What to learn: a family, a method and public options, all of it plain data and checked.

    ``Spec("network", "searched", {"max_parents": 1})``: ``options`` hold what the learner's class takes; a graph is a
    mapping from each column to its parents, cliques are a list of lists. ``graph_release`` is what the graph cost if
    it was released before: plan and card say so, because the two may add up. ``certify`` is the part of the budget
    that buys a certificate of fit (:mod:`.learn.certifying`), 0 for none; left open, it is the method's own.
    :func:`resolve` makes a spec of whatever a person says::

        spec = resolve(domain, graph="smoke -> lung; smoke -> bronc")
        print(spec.prepare(domain, PrivacyUnit(), PureDP(1)))            # what would be spent on what
        learned = spec.learn(Curator(encode(rows, domain), budget=PureDP(1)))
        Release.of(learned).save("model.zip")
    """

    family: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    graph_release: Budget | None = None
    certify: float | None = None
    discover: float | None = None

    def __post_init__(self) -> None:
        if self.discover is not None:
            object.__setattr__(self, "discover", discovery.checked_share(self.discover))
        family, method, options = of_today(_word(self.family, "family"), _method_word(self.method), self.options)
        assert method is not None
        entry = method_of(family, method)
        known = [*entry.options, *([entry.needs] if entry.needs else [])]
        for key in options:
            if key not in known:
                hint = WITHOUT_GRAPH if key in ("workload", "target") else did_you_mean(str(key), known)
                raise InputError(f"{family}, {method} has no option {str(key)[:60]!r}{hint}")
        if entry.needs and entry.needs not in options:
            raise InputError(f"{family}, {method} needs its {entry.needs}, which is public knowledge")
        for key in entry.demands:
            why = entry.positive.get(key)
            if why is not None and not _is_positive(options.get(key)):
                raise InputError(f"{family}, {method} needs the option {key}, a positive number: {why}")
            if key not in options:
                raise InputError(f"{family}, {method} needs the option {key}, for which there is no default")
        for key, value in {"family": family, "method": method, "options": plain(options)}.items():
            object.__setattr__(self, key, value)
        share = entry.learner.certified if self.certify is None else checked_share(self.certify)
        if share and family == STRUCTURE:
            raise InputError("a certificate of fit is about a model, and the family 'structure' finds a graph alone")
        object.__setattr__(self, "certify", share)
        why = self.learner().uncertifiable()  # which refuses wrong values in its own words
        if share and why:
            raise InputError(f"a certificate of fit cannot be had for {family}, {method} as it is asked: {why}")

    @property
    def entry(self) -> Method:
        return method_of(self.family, self.method)

    def learner(self) -> Learner[Any]:
        """The learner, ready to prepare and estimate."""
        return self.entry.learner(**self.options)

    def prepare(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        public_size: int | None = None,
        approximate_size: float | None = None,
        public: Sequence[Measurement] = (),
    ) -> Procedure:
        """What will be asked and for how much, before a row is read: printed it is the plan, and it is what runs.

        ``public``: the tables that :meth:`conclude` will make use of. A certificate is of the model that it makes.
        """
        whole = Whole(domain, unit, budget, public_size, approximate_size)
        if domain.sought:
            share, gaussian = self.discover or discovery.SHARE, self.learner().as_one_gaussian
            made = discovery.with_discovery(whole, share, partial(self._made, public), as_one_gaussian=gaussian)
        else:
            made = self._made(public, whole)
        before = () if self.graph_release is None else (released_before(self.graph_release),)
        return replace(made, notes=(*made.notes, *before), spec=self.to_dict())

    def _made(self, public: Sequence[Measurement], whole: Whole) -> Procedure:
        return self._certified(whole, public) if self.certify else self.learner().prepare(whole)

    def _certified(self, whole: Whole, public: Sequence[Measurement]) -> Procedure:
        """The learner's procedure with what the certificate leaves of the budget, and the certificate: of the sets of
        columns that a workload names, with its weights, or else of all pairs."""
        stated = {"unit": whole.unit.to_dict(), "public_size": whole.public_size}

        def estimate(released: Measurements) -> Model:
            known = Measurements(released, {**released.release, **stated})
            model: Model = self.conclude(known, whole.domain, public).model
            return model

        learner = self.learner()
        assert self.certify is not None
        rest, own = divided(learner.within(whole.domain, whole.budget), self.certify)
        named = self.options.get("workload")
        certifying = Certifying(own, estimate, None if isinstance(named, str) else named)
        return with_certificate(learner.prepare(replace(whole, budget=rest)), whole, certifying)

    def for_a_model(self) -> Spec:
        """This spec, if it is of a model; who fits models has no use for a graph alone."""
        if self.family == STRUCTURE:
            raise InputError("the family 'structure' finds a graph and no model; `discreet structure` learns it")
        return self

    @property
    def can_refit(self) -> bool:
        """Whether noisy sums and this spec determine the model."""
        return self.entry.learner.refits

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> Any:
        """The model (or graph) from noisy sums that were paid for before; post-processing."""
        self._require_refits()
        whole = domain or measurements.domain
        return self._finished(self.learner().estimate(without_impossible(measurements, whole), whole))

    def estimates(self, many: Sequence[Measurements], domain: Domain) -> list[Any]:
        """The same of several sets of sums at once, without cards."""
        self._require_refits()
        found = self.learner().estimates([without_impossible(one, domain) for one in many], domain)
        return [self._finished(model) for model in found]

    def _require_refits(self) -> None:
        if not self.can_refit:
            raise InputError(
                f"{self.family}, {self.method} asks the rows step by step and cannot learn from sums alone"
            )

    def learn(self, curator: Curator, public: Sequence[Measurement] = ()) -> Learned:
        """Ask the curator, with all that remains of its budget, and learn from the answers.

        ``public`` tables (totals that everybody knows) are made use of where the model follows from sums.
        """
        check_curator(curator)
        procedure = self.prepare(curator.domain, curator.unit, curator.share_of(), curator.public_size, public=public)
        return self.conclude(procedure.run(curator), curator.domain, public)

    def conclude(self, released: Measurements, domain: Domain, public: Sequence[Measurement] = ()) -> Learned:
        """What follows from what the procedure released; post-processing. If the sums contradict the public totals,
        these are left out rather than all of it lost."""
        released, certificate, domain = _apart(released, domain)
        learned = self._concluded(released, domain, public)
        if certificate is None:
            return learned
        model = learned.model
        return replace(learned, model=model.with_card({**(model.card or {}), FOUND: certificate}))

    def _concluded(self, released: Measurements, domain: Domain, public: Sequence[Measurement]) -> Learned:
        if not self.can_refit:
            learner = self.learner()
            return Learned(learner.checked(self._finished(learner.estimate(released, domain)), released), self)
        remark = ""
        if public:
            try:
                both = released.plus(*public)
                return Learned(self._checked(both, domain), self, both)
            except InputError as error:
                remark = f"the public totals were not used: {error}"
        return Learned(self._checked(released, domain), self, released, remark)

    def _checked(self, released: Measurements, domain: Domain) -> Any:
        """The model, and on its card how far it is from the sums that it follows from."""
        return self.learner().checked(self.estimate(released, domain), released)

    def _finished(self, found: Any) -> Any:
        """A model with zeros where no record can be, and a card that tells of a graph that was released before."""
        if not isinstance(found, Model):
            return found
        model = enforced(found)
        if self.graph_release is None:
            return model
        return model.with_card({**(model.card or {}), "graph_release": self.graph_release.to_dict()})

    def to_dict(self) -> dict[str, Any]:
        before = {} if self.graph_release is None else {"graph_release": self.graph_release.to_dict()}
        share = {"certify": self.certify} if self.certify else {}
        share |= {} if self.discover is None else {"discover": self.discover}
        return {"family": self.family, "method": self.method, "options": dict(self.options), **before, **share}

    @classmethod
    def from_dict(cls, entry: Any) -> Spec:
        """Read the form of :meth:`to_dict`, which may come from anywhere, also from earlier versions."""
        if not isinstance(entry, dict) or set(entry) - {"graph_release", "certify", "discover"} != {
            "family",
            "method",
            "options",
        }:
            raise InputError("a specification has a family, a method and options")
        certify = entry.get("certify", 0)
        if not isinstance(entry["options"], dict):
            raise InputError("the options of a specification are a table")
        family, method = _word(entry["family"], "family"), _method_word(entry["method"])
        options = {"max_edges" if key == "max_terms" else key: value for key, value in entry["options"].items()}
        for key, value in options.items():
            if isinstance(value, int | float) and not abs(value) <= _LARGEST_NUMBER:
                raise InputError(f"the option {key[:60]!r} of a specification is larger than {_LARGEST_NUMBER:,}")
        if family in EARLIER:  # one class had the options of all methods, and many were without effect
            idle = ("width",) if (family, method) == ("binary", "moments") else ()
            family, today, options = of_today(family, method, options)
            known = method_of(family, str(today)).options
            own = {k: v for k, v in options.items() if k in known and k not in idle}
            return cls(family, str(today), own, certify=certify)
        before = entry.get("graph_release")
        release = None if before is None else Budget.from_dict(before)
        return cls(family, method, options, release, certify, entry.get("discover"))

    def __str__(self) -> str:
        many = {k: counted(len(v), "set") for k, v in self.options.items() if k in SAID and isinstance(v, list)}
        shown = [f"{k}={v}" for k, v in {**self.options, **many}.items() if k not in GIVEN]
        options = f" ({', '.join(shown)})" if shown else ""
        certificate = f"; {100 * self.certify:g} % for a certificate of fit" if self.certify else ""
        return f"{FAMILIES[self.family]}, {self.entry.summary}{options}{certificate}"


@dataclass(frozen=True)
class Learned:
    """A model (or graph) with what it was made of: the noisy sums from which the spec makes it again, where there are
    any."""

    model: Any
    spec: Spec
    measurements: Measurements | None = None
    remark: str = ""


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _apart(released: Measurements, domain: Domain) -> tuple[Measurements, dict[str, Any] | None, Domain]:
    """What the model is made of, the answers of the certificate, which only its card has, and the domain: the one that
    was found, where it had to be."""
    found = dict(released.release.get("found") or {})
    certificate = found.pop(FOUND, None)
    if known := found.pop(discovery.DOMAIN, None):
        domain = Domain.from_dict(known)
    found.pop("columns", None)
    return Measurements(released, {**released.release, "found": found}), certificate, domain


def plain(value: Any) -> Any:
    """Numbers, words, lists and tables as JSON has them; anything else is an error."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(v) for v in value]
    raise InputError(f"an option is a number, a word, a list or a table, got {type(value).__name__}")


# -- from what was said to a specification -----------------------------------------------------------------------------


def resolve(
    domain: Domain,
    *,
    family: str | None = None,
    method: str | None = None,
    graph: Graph | None = None,
    cliques: Any = None,
    workload: Any = None,
    target: str | None = None,
    options: Mapping[str, Any] | None = None,
    public_size: int | None = None,
    approximate_size: float | None = None,
    certify: float | None = None,
    discover: float | None = None,
) -> Spec:
    """What to learn, from what was said; what was left open is chosen by public quantities alone.

    The one place where this is decided, for the command line, run files, Python and the scikit-learn skin.
    ``resolve(domain)``, ``resolve(domain, graph="smoke -> lung")``, ``resolve(domain, family="spin")``.

    Parameters
    ----------
    family, method:
        Words of the registry; ``discreet plan --methods`` lists them. Without a family a graph with arrows means a
        network, edges without direction and cliques mean a field, and no structure at all a field whose tables are
        found privately.
    graph, cliques:
        What is publicly known about which columns interact; see :func:`discreet.learn.graph_input.structure_of` and
        :func:`~discreet.learn.graph_input.cliques_of` for the forms that are understood.
    workload, target:
        Which tables should be right, and a column that is to be predicted; see
        :func:`discreet.learn.fields.purpose.workload_of` for the forms that are understood.
    options:
        Of the method: the fields of its class.
    public_size, approximate_size:
        The number of records where that is public, or a public guess of it.
    certify:
        The part of the budget that buys a certificate of fit: 0.03 for 3 %, 0 for none. Left open, it is 3 % where the
        tables are found privately, and none elsewhere.
    discover:
        The part of the budget that finds bins and levels which the schema does not know; 0.1 unless it is said.
    """
    domain = require_domain(domain).forecast
    said = _said(options)
    checked_public_size(public_size)
    checked_size(approximate_size)
    if graph is not None and cliques is not None:
        raise InputError("the structure is given twice, as graph and as cliques; keep one of them")
    method = None if method is None else _method_word(method)
    structure = _structure(domain, graph, cliques)
    if family is None:
        having = [m.family for m in METHODS if m.name == method]
        if having and structure is None:
            which = " or ".join(map(repr, having))
            raise InputError(f"the method {method!r} needs a family, which says what it is a method of: {which}")
        family = "network" if structure is not None and structure.is_directed else "field"
    family, method, said = of_today(_word(family, "family"), method, said)
    entry = method_of(family, method or _usual(family, structure, domain))
    if structure is not None:
        said = {entry.needs: _wanted(entry, structure, "graph" if cliques is None else "cliques"), **said}
    elif entry.needs and len(domain) == 1:  # one column has one graph
        said = {entry.needs: {domain.names[0]: []} if entry.needs == "graph" else [[domain.names[0]]], **said}
    elif entry.needs:
        way = "a graph, as in 'a -> b; b -> c'" if entry.needs == "graph" else "cliques, as in 'a,b; b,c', or a graph"
        raise InputError(f"{family}, {entry.name} needs a structure that is publicly known: give {way}")
    if workload is not None:
        said["workload"] = workload_of(workload, domain)
    if target is not None:
        domain.index(_word(target, "target"))
        said["target"] = target
    if (family, entry.name) == SEARCHED:
        said.setdefault("max_parents", 2 if len(domain) <= _FEW_COLUMNS else 1)
    guess_helps = "approximate_size" in entry.options  # it saves buying a noisy count
    if guess_helps and approximate_size is not None and public_size is None:
        said.setdefault("approximate_size", int(approximate_size))
    return Spec(family, entry.name, said, None if structure is None else structure.released, certify, discover)


def said_by(whoever: Any) -> dict[str, Any]:
    """The words of :func:`resolve` as whoever has them, by the same names, says them."""
    return {word: getattr(whoever, word) for word in inspect.signature(resolve).parameters if word != "domain"}


def _usual(family: str, structure: Structure | None, domain: Domain) -> str:
    """The method of a family for which none was named."""
    any_will_do = structure is not None or len(domain) <= 1
    return next((m.name for m in METHODS if m.family == family and (any_will_do or not m.needs)), "")


def _structure(domain: Domain, graph: Graph | None, cliques: Any) -> Structure | None:
    if graph is not None:
        return structure_of(graph, domain)
    return None if cliques is None else Structure(groups=cliques_of(cliques, domain))


def _wanted(entry: Method, structure: Structure, said_as: str) -> Any:
    """The structure in the form that the method takes."""
    if not entry.needs:
        raise InputError(
            f"{entry.family}, {entry.name} finds its graph itself: leave the {said_as} out, or take another method "
            "of the family 'network' or 'field'"
        )
    if entry.needs == "cliques":
        return structure.cliques
    if structure.parents is None:
        has = "this graph has edges without direction" if said_as == "graph" else "cliques have none"
        raise InputError(f"a Bayesian network needs arrows, and {has}: write 'a -> b', or take the family 'field'")
    return structure.parents


def _said(options: Any) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise InputError(f"options are a table of names and values, as in max_parents = 1; got {shortened(options)}")
    given = next((key for key in options if key in (*GIVEN, *SAID)), None)
    if given is not None:
        raise InputError(f"{given} is no option of a method: give it as {given} itself")
    return {key.replace("-", "_"): value for key, value in options.items()}


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"the {name} is a word, got {shortened(value)}")
    return value


def _method_word(value: Any) -> str:
    return _word(value, "method").replace("-", "_")
