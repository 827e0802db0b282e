"""What a structure learner returns: a graph with what was released about it, or a refusal that says what would help."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import markup
from ...domain import Clique, Domain
from ...errors import FileFormatError, InputError
from ...io.archive import Sign
from ...io.atomic import write_atomically
from ...io.strictjson import refuse_private
from ...measurement import Measurements, Noise
from ...privacy.budget import Budget, part_of
from ...privacy.stability import Stability
from ..cards import card_of
from ..graph_files import KIND, graph_digest, saved_graph
from ..planned import PlannedTable
from ..procedure import Asks, Found, Step, Whole

STABILITY = "test of stability"


@dataclass(frozen=True)
class StructureResult:
    """A graph, or an honest refusal.

    ``cliques`` are the interactions: pairs for pairwise models, larger sets for t-wise ones; None after a refusal.
    ``evidence`` says of each what was *released* about it (a sign, noisy votes, a noisy coupling): nothing else is
    known outside. ``enough`` says, after a refusal, what would probably have been enough; it is computed from public
    things and from the released noisy distance, and it is an estimate. ``card`` says who is protected and, step by
    step, what was spent on what.
    """

    columns: Clique
    method: str
    cliques: tuple[Clique, ...] | None
    evidence: Mapping[Clique, Any] = field(default_factory=dict)
    reason: str = ""
    enough: Mapping[str, float] = field(default_factory=dict)
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        return self.cliques is None

    @property
    def edges(self) -> tuple[Clique, ...]:
        """All pairs inside the interactions: the graph in which every interaction is a clique."""
        if self.cliques is None:
            raise InputError(f"there is no graph: {self.reason}")
        pairs = {pair for I in self.cliques for pair in combinations(I, 2)}
        return tuple(sorted(pairs, key=lambda pair: tuple(map(self.columns.index, pair))))

    @property
    def adjacency(self) -> NDArray[np.bool_]:
        out = np.zeros((len(self.columns), len(self.columns)), dtype=bool)
        for pair in self.edges:
            i, j = map(self.columns.index, pair)
            out[i, j] = out[j, i] = True
        return out

    @property
    def spent(self) -> Any:
        """What was paid, as the curator stated it."""
        return self.card.get("spent")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what was released, and nothing else."""
        return {
            "kind": KIND,
            "refused": self.refused,
            "method": self.method,
            "columns": list(self.columns),
            "edges": None if self.cliques is None else [list(pair) for pair in self.edges],
            "interactions": None if self.cliques is None else [list(I) for I in self.cliques],
            "evidence": [{"columns": list(I), **facts} for I, facts in self.evidence.items()],
            "reason": self.reason,
            "enough": dict(self.enough),
            "release": dict(self.card),
        }

    def save(self, path: str | Path, *, sign: Sign | None = None) -> None:
        """A JSON file that can be published, a refusal too; ``discreet fit --graph`` reads it. ``sign``: a ledger's
        ``signer``."""
        if self.card.get("origin") != "release":
            raise InputError("this graph was learned without protection: it is no release, and cannot be saved as one")
        document = json.loads(json.dumps(self.to_dict()))  # as it will be read again
        if sign is not None:
            document["signature"] = sign(graph_digest(document))
        text = json.dumps(document, indent=1, ensure_ascii=False)
        refuse_private(text)
        write_atomically(Path(path), [text.encode() + b"\n"])

    @classmethod
    def load(cls, path: str | Path) -> StructureResult:
        """Read a file written by :meth:`save`. (It may be the wrong one: what stands in it is never quoted.)"""
        document = saved_graph(Path(path))
        try:
            cliques = None if document["refused"] else tuple(tuple(I) for I in document["interactions"])
            evidence = {tuple(facts.pop("columns")): facts for facts in map(dict, document["evidence"])}
            words = [*document["columns"], document["method"], document["reason"]]
            known = all({*I} <= {*document["columns"]} for I in cliques or ()) and {*evidence} <= {*(cliques or ())}
            if not all(isinstance(w, str) for w in words) or not known or document["release"]["origin"] != "release":
                raise ValueError("not what a release of a graph holds")
            enough = {str(name): float(amount) for name, amount in document["enough"].items()}
            card = dict(document["release"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise FileFormatError(f"{path} is not a well-formed file of a graph; save the graph again") from None
        columns = tuple(document["columns"])
        return cls(columns, document["method"], cliques, evidence, document["reason"], enough, card)

    def _repr_html_(self) -> str:
        if self.cliques is None:
            enough = ", ".join(f"{name}: {amount:g}" for name, amount in self.enough.items())
            return markup.table(
                f"{self.method}: no graph", notes=[self.reason, f"Probably enough: {enough}" if enough else ""]
            )
        facts = {I: ", ".join(f"{k}: {v}" for k, v in dict(self.evidence.get(I, {})).items()) for I in self.cliques}
        caption = f"{self.method}: {len(self.cliques)} interactions over {len(self.columns)} columns"
        rows = [["–".join(I), told] for I, told in facts.items()]
        return markup.table(caption, ["interaction", "what was released about it"], rows, labels=2)

    def __str__(self) -> str:
        if self.cliques is None:
            return f"{self.method}: ⊥ (no graph). {self.reason}"
        shown = ", ".join("–".join(I) for I in self.cliques[:12])
        more = f" and {len(self.cliques) - 12} more" if len(self.cliques) > 12 else ""
        return f"{self.method}: {len(self.cliques)} interactions over {len(self.columns)} columns: {shown}{more}"


def maximal(sets: Iterable[Clique]) -> tuple[Clique, ...]:
    """The sets that no other one contains."""
    kept: list[Clique] = []
    for I in sorted(set(sets), key=lambda I: (-len(I), I)):
        if not any(set(I) < set(J) for J in kept):
            kept.append(I)
    return tuple(sorted(kept, key=lambda I: (len(I), I)))


def check_columns(domain: Domain) -> None:
    if len(domain) < 2:
        raise InputError(f"a graph needs at least two columns, there are {len(domain)}")


# -- tests and votes, and what they found as plain data ----------------------------------------------------------------


def tested(whole: Whole, name: str, share: Budget, scale: float, asks: Asks, mechanism: str = STABILITY) -> Step:
    """A step that lets one noisy number out (with Laplace noise of this scale) and, above a threshold, a graph."""
    part, noise = float(part_of(share, whole.budget)), Noise("laplace", scale)
    return Step(name, share, (PlannedTable((), 1, part, noise, name=name, mechanism=mechanism),), asks)


def graph_found(evidence: Mapping[Clique, Mapping[str, Any]], **facts: Any) -> Found:
    """A graph came out: its interactions, and what was released about each."""
    return {**facts, "interactions": [[*I] for I in evidence], "evidence": [{**known} for known in evidence.values()]}


def nothing_found(reason: str, enough: Mapping[str, float], **facts: Any) -> Found:
    """⊥ came out."""
    return {**facts, "interactions": None, "evidence": [], "reason": reason, "enough": {**enough}}


def refusal(out: Stability, what: str, **facts: Any) -> Found:
    """⊥, from the noisy distance and the threshold, both public.

    The distance grows in proportion to the number of records (to the number of blocks for votes), and the threshold
    falls with 1/ε, so the same factor applies to both. Three scales of noise are asked for on top.
    """
    wanted = out.threshold + 1 + 3 * out.scale
    reason = (
        f"The graph was not released: the test needs a noisy distance above {out.threshold} from the nearest input "
        f"with another graph, and found {out.noisy_distance}. "
    )
    enough: dict[str, float] = {"distance": math.ceil(wanted)}
    if out.noisy_distance > 2 * out.scale:  # otherwise it may well be 0: nothing can be said
        factor = max(wanted / out.noisy_distance, 1.0)
        enough["times as many records"] = enough["times as large an epsilon"] = round(factor, 2)
        reason += (
            f"About {factor:.1f} times as many {what}, or {factor:.1f} times the ε, would probably have been enough."
        )
    else:
        reason += (
            "Some pair lies at the threshold itself, as far as the noise lets one see: more records help if their "
            "number is small; if it is not, a threshold (min_weight) away from the dependences in the data does. A "
            "retry costs again."
        )
    return nothing_found(reason, enough, noisy_distance=out.noisy_distance, **facts)


def result_of(measurements: Measurements, domain: Domain | None, method: str) -> StructureResult:
    """The graph that a test or a vote found, or its refusal, with its card."""
    found = measurements.found
    if "interactions" not in found:
        raise InputError(f"these measurements do not say which graph was found, so {method} did not make them")
    columns = (domain or measurements.domain).names
    cliques = None if found["interactions"] is None else tuple(tuple(I) for I in found["interactions"])
    evidence = dict(zip(cliques or (), found["evidence"], strict=True))
    facts = {name: found[name] for name in ("test", "noisy_distance", "blocks") if name in found}
    card = card_of(measurements, method, **facts)
    return StructureResult(columns, method, cliques, evidence, found.get("reason", ""), found.get("enough", {}), card)
