"""What every model can do: one protocol over potentials, with the engine behind it."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from .. import language
from ..domain import Clique, Domain
from ..errors import InputError, counted
from ..factor import CliqueVector
from ..graph import DEFAULT_MEMORY_LIMIT, Forecast
from ..io.export import write_model
from . import completing, divergence, interchange, numbers, plotting, queries, sampling
from .answer import Answer, Assignment, Estimate
from .checks import edges_of
from .density import Density
from .distribution import Given
from .encoding import encode
from .options import Approximation, GibbsDraws
from .records import RandomState, Records


class Model(ABC):
    """A distribution over the records of a domain; a value, never changed after it is made.

    Columns and levels are spoken of by name and label everywhere: ``model.marginal("lung", {"smoke": "yes"})``. With
    ``method="auto"`` answers are exact when the forecast allows it, and say what was done.
    """

    kind: ClassVar[str]
    directed: ClassVar[bool] = False
    domain: Domain
    card: Mapping[str, Any] | None

    if TYPE_CHECKING:  # a property of most families and a parameter of one, so the base class defines neither

        @property
        def potentials(self) -> CliqueVector:
            """Log tables on cliques that cover all columns; their sum is log P plus :attr:`log_partition`."""

    @property
    def compact(self) -> CliqueVector:
        """The potentials as inference takes them: those over the columns, or over more columns than these that are
        functions of them, where tables are smaller so. The columns of the domain come first."""
        return self.potentials

    # -- graph ---------------------------------------------------------------------------------------------------

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns of each potential."""
        return self.potentials.cliques

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of columns that interact directly; (parent, child) when directed."""
        return edges_of(self.domain, self.cliques)

    @property
    def graph(self) -> Any:
        """The dependency graph as a networkx ``Graph`` (``DiGraph`` when directed)."""
        import networkx as nx  # slow to import, and most uses of a model never need it

        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(self.domain.names)
        graph.add_edges_from(self.edges)
        return graph

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """The columns that make ``name`` independent of all the others, in domain order."""
        self.domain.index(name)
        return self.domain.clique({a if b == name else b for a, b in self.edges if name in (a, b)})

    @cached_property
    def forecast(self) -> Forecast:
        """What exact inference on this graph costs, known before any of it is done."""
        return queries.forecast(self)

    # -- probability of records ----------------------------------------------------------------------------------

    @cached_property
    def log_partition(self) -> float:
        """log Z, the logarithm of the sum of exp(potentials) over all records; exact, or refused by the forecast."""
        return queries.log_partition(self)

    def estimate_log_partition(
        self,
        *,
        random_state: RandomState = None,
        particles: int = 200,
        temperatures: int = 200,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> Estimate:
        """log Z by annealed importance sampling, with its standard error: for graphs that are too wide."""
        return queries.estimate_log_partition(self, random_state, particles, temperatures, memory_limit)

    def log_weight(self, records: object) -> NDArray[np.float64]:
        """log P(record) + log Z for each record: needs no inference at all."""
        codes = encode(records, self.domain)
        out = np.zeros(len(codes))
        for clique, factor in self.potentials.items():
            out += factor.values[tuple(codes[:, self.domain.index(name)] for name in clique)]
        return out

    def log_prob(self, records: object, *, log_partition: float | None = None) -> NDArray[np.float64]:
        """log P(record) for each record: codes (n, p), a frame with labels, a mapping of columns, or ``Records``.

        Labels are encoded as the domain says: one it does not know goes to the level named for values outside. When the
        graph is too wide for the exact log Z, pass ``log_partition=model.estimate_log_partition()``.
        """
        return self.log_weight(records) - float(self.log_partition if log_partition is None else log_partition)

    def full_conditional(self, name: str, records: object) -> NDArray[np.float64]:
        """P(name = · | all other columns of the record), an array (n, levels); the record's own value does not matter.

        Needs only the potentials around ``name``: no inference, and no look at whether the others are possible.
        """
        codes = encode(records, self.domain)
        out = np.zeros((len(codes), self.domain[name].size))
        for clique, factor in self.potentials.items():
            if name in clique:
                moved = np.moveaxis(factor.values, clique.index(name), -1)
                out += moved[tuple(codes[:, self.domain.index(n)] for n in clique if n != name)]
        highest = out.max(axis=1, keepdims=True)
        if np.any(np.isneginf(highest)):
            raise InputError(f"a record is impossible whatever its value of {name!r}, so nothing can be said given it")
        weights = np.exp(out - highest)
        normalised: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return normalised

    # -- questions -----------------------------------------------------------------------------------------------

    def marginal(
        self,
        names: Iterable[str] | str,
        given: Given | None = None,
        *,
        method: str = "auto",
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        **options: Unpack[Approximation],
    ) -> Answer:
        """P(names | given) as a labelled table with its axes in the order of ``names``.

        ``method`` is ``"exact"``, ``"loopy"``, ``"gibbs"`` or ``"auto"``. Options of the approximate methods:
        ``max_iterations``, ``tolerance`` and ``damping`` (loopy); ``chains``, ``sweeps``, ``burn_in`` and
        ``random_state`` (Gibbs).
        """
        return queries.marginal(self, names, given, method, memory_limit, options)

    def conditional(
        self,
        names: Iterable[str] | str,
        given: Given | Iterable[str] | str,
        *,
        method: str = "auto",
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        **options: Unpack[Approximation],
    ) -> Answer:
        """P(names | given): at given levels (a mapping), or the whole conditional table (names).

        In a conditional table the columns conditioned on come first, and rows that cannot happen are NaN. Method and
        options are those of :meth:`marginal`.
        """
        if isinstance(given, Mapping):
            return queries.marginal(self, names, given, method, memory_limit, options)
        return queries.conditional_table(self, names, given, method, memory_limit, options)

    def probability(
        self,
        event: Given,
        given: Given | None = None,
        *,
        method: str = "auto",
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        **options: Unpack[Approximation],
    ) -> float:
        """P(event | given), one number: ``model.probability({"lung": "yes"}, {"smoke": "yes"})``.

        Method and options are those of :meth:`marginal`.
        """
        return float(queries.event(self, (), event, given, method, memory_limit, options))

    def map(
        self,
        names: Iterable[str] | str | None = None,
        given: Given | None = None,
        *,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> Assignment:
        """The most probable joint value of ``names`` (of all columns not given, by default), others summed out."""
        return queries.most_probable_values(self, names, given, memory_limit)

    def most_probable(
        self, k: int, given: Given | None = None, *, memory_limit: int = DEFAULT_MEMORY_LIMIT
    ) -> list[Assignment]:
        """The k most probable joint values of all columns that are not given, best first."""
        return queries.most_probable(self, k, given, memory_limit)

    def ask(
        self,
        text: str,
        *,
        method: str = "auto",
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        **options: Unpack[Approximation],
    ) -> Answer | Assignment:
        """Answer a question in the query language: ``P(lung, bronc | smoke=yes)``, ``MAP(lung, tub | xray=yes)``,
        ``P(18 <= age < 65 | job)``, ``E(age | job=Sales)``, ``QUANTILE(income, 0.9 | known(income))``.

        Method and options are those of :meth:`marginal`; the most probable values are always exact.
        """
        question = language.resolve(language.parse(text), self.domain)
        answer = numbers.ask(self, question, method, memory_limit, options)
        caution = (self.card or {}).get("caution")
        return replace(answer, caution=str(caution)) if caution else answer

    def density(self, name: str) -> Density:
        """How the numbers of a column are spread within its bins: for records and questions alike."""
        if name not in self._densities:
            self._densities[name] = numbers.density_of(self, name)
        return self._densities[name]

    # -- samples -------------------------------------------------------------------------------------------------

    def sample(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        given: Given | None = None,
        method: str = "auto",
        where: str | None = None,
        labels: bool = False,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        **options: Unpack[GibbsDraws],
    ) -> Records:
        """Draw ``n`` records, with the values, types and column order of the original.

        ``method``: ``"exact"`` draws independent records; ``"rounded"`` rounds expected counts instead of drawing them
        (less variance, records not independent); ``"gibbs"`` approximates on graphs that are too wide; ``"auto"``
        is exact if the forecast allows it. ``given`` fixes columns, ``where`` restricts them in the words of the query
        language: ``"age >= 40, sex in {M}"``. Numbers and dates are drawn within their bins and periods (see
        :meth:`density`); with ``labels`` they are these. Options of Gibbs sampling: ``chains``, ``burn_in``, ``thin``.
        """
        return sampling.sample(self, n, random_state, given, method, labels, where, memory_limit, options)

    def complete(
        self,
        rows: object,
        random_state: RandomState = None,
        *,
        where: str | None = None,
        known: bool = False,
        labels: bool = False,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
    ) -> Records:
        """Public rows with what is absent drawn given what is there: a frame or a mapping with some of the columns, in
        which values may be absent. What is there stays as it is.

        Exact; rows with the same known values cost as much as one. ``where`` restricts what is drawn, as for
        :meth:`sample`; with ``known`` no missing value is drawn.
        """
        return completing.complete(self, rows, random_state, where, known, labels, memory_limit)

    # -- divergences ---------------------------------------------------------------------------------------------

    def entropy(self, *, samples: int | None = None, random_state: RandomState = None) -> float:
        """Shannon entropy in nats: exact, or with ``samples`` an :class:`Estimate` with its standard error."""
        return divergence.entropy(self, samples, random_state)

    def kl(self, other: Model, *, samples: int | None = None, random_state: RandomState = None) -> float:
        """KL(self ‖ other) in nats: exact, or with ``samples`` an :class:`Estimate`; ∞ if other calls impossible what
        can happen here."""
        return divergence.kl(self, other, samples, random_state)

    # -- other forms ---------------------------------------------------------------------------------------------

    def edge_strength(self) -> dict[tuple[str, str], float]:
        """A number for each edge, used for drawing: here the mutual information of its ends, in nats."""
        return queries.mutual_information(self)

    def plot(
        self,
        ax: Any = None,
        *,
        strength: Mapping[tuple[str, str], float] | None = None,
        positions: Mapping[str, tuple[float, float]] | None = None,
        title: str | None = None,
        random_state: int = 0,
    ) -> Any:
        """Draw the graph, thicker edges for stronger interactions; returns the matplotlib ``Axes``.

        ``strength`` (a number an edge) and ``positions`` replace those that the model finds itself. To save the
        drawing: ``model.plot().figure.savefig("graph.png")``.
        """
        return plotting.draw(self, ax, strength=strength, positions=positions, title=title, random_state=random_state)

    def to_networkx(self, *, strength: bool = False) -> Any:
        """The graph for networkx, with levels and tables; see :func:`discreet.models.interchange.to_networkx`."""
        return interchange.to_networkx(self, strength=strength)

    def to_pgmpy(self) -> Any:
        """The same distribution as a model of pgmpy: a Bayesian or Markov network. The card stays here."""
        return interchange.to_pgmpy(self)

    def to_pyagrum(self) -> Any:
        """The same distribution as a ``BayesNet`` or ``MarkovRandomField`` of pyAgrum. The card stays here."""
        return interchange.to_pyagrum(self)

    def with_card(self, card: Mapping[str, Any] | None) -> Self:
        """The same model carrying another release card, or none."""
        return replace(self, card=card)  # type: ignore[type-var]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file in the format that its ending asks for; :func:`discreet.open_model` reads all of them.

        ``.zip`` is the native file, which keeps everything: a JSON header and raw arrays, deterministic bytes. ``.bif``
        (networks only) and ``.uai`` are for other programs; they keep labels and numbers, and as they would lose what
        a release says about its privacy, a model with such a card is refused there (see
        :func:`discreet.io.export.save_bif`). A model that was learned without privacy (its card says so) is
        refused in every format: a file looks like a release.
        """
        write_model(self, path)

    def to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Header and arrays of the native file."""
        model, arrays = self._to_archive()
        card = None if self.card is None else dict(self.card)
        return {"kind": self.kind, "domain": self.domain.to_dict(), "card": card, "model": model}, arrays

    @abstractmethod
    def _to_archive(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What the family needs besides the domain and the card."""

    @classmethod
    @abstractmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of :meth:`to_archive`."""

    # -- for families --------------------------------------------------------------------------------------------

    def _relevant(self, names: Iterable[str]) -> CliqueVector:
        """Potentials that suffice for questions about ``names``; families that know better leave some out."""
        return self.potentials

    def _sample_forward(self, n: int, rng: np.random.Generator, rounded: bool) -> NDArray[Any] | None:
        """Codes drawn without inference, or None when the family has no such way."""
        return None

    @cached_property
    def _densities(self) -> dict[str, Density]:
        return {}

    @cached_property
    def _calibrated(self) -> Any:
        """Beliefs without evidence, computed once: most questions start here."""
        return queries.calibrate(self)

    def __eq__(self, other: object) -> bool:
        """Same family, domain, card and parameters, to the last bit."""
        if type(self) is not type(other) or not isinstance(other, Model):
            return NotImplemented
        (header, arrays), (header_, arrays_) = self.to_archive(), other.to_archive()
        same = header == header_ and arrays.keys() == arrays_.keys()
        return same and all(np.array_equal(arrays[key], arrays_[key]) for key in arrays)

    def __hash__(self) -> int:
        return hash((self.kind, self.domain.fingerprint, self.edges))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copies and worker processes get the parameters, not the cached beliefs."""
        return type(self).from_archive, self.to_archive()

    def __repr__(self) -> str:
        arrow = "→" if self.directed else "–"
        shown = ", ".join(f"{a}{arrow}{b}" for a, b in self.edges[:4]) + (", …" if len(self.edges) > 4 else "")
        levels = sorted(set(self.domain.shape))
        size = "no levels" if not levels else counted(levels[0], "level")
        size = f"{levels[0]}–{levels[-1]} levels" if len(levels) > 1 else size
        text = f"{type(self).__name__}: {counted(len(self.domain), 'column')} of {size}, "
        text += counted(len(self.edges), "edge")
        text += f" ({shown})" if shown else ""
        width = getattr(self, "width", math.nan)
        return text + (f", λ = {width:.4g}" if math.isfinite(width) else "") + (", with a card" if self.card else "")
