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

from ...domain import Clique, Domain
from ...errors import InputError
from ...io.archive import Sign
from ...io.atomic import write_atomically
from ...privacy.stability import Stability
from ..graph_files import KIND, graph_digest


@dataclass(frozen=True)
class StructureResult:
    """A graph, or an honest refusal.

    ``cliques`` are the interactions: pairs for pairwise models, larger sets for t-wise ones; None after a refusal.
    ``evidence`` says of each what was *released* about it (a sign, noisy votes, a noisy coupling): nothing else is
    known outside. ``enough`` says, after a refusal, what would probably have been enough; it is computed from public
    things and from the released noisy distance, and it is an estimate.
    """

    domain: Domain
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
        return tuple(sorted(pairs, key=lambda pair: tuple(map(self.domain.index, pair))))

    @property
    def adjacency(self) -> NDArray[np.bool_]:
        out = np.zeros((len(self.domain), len(self.domain)), dtype=bool)
        for a, b in self.edges:
            out[self.domain.index(a), self.domain.index(b)] = out[self.domain.index(b), self.domain.index(a)] = True
        return out

    @property
    def spent(self) -> Any:
        """What was paid, as the curator stated it."""
        return self.card.get("spent")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what was released, and nothing else."""
        found = None if self.cliques is None else [list(I) for I in self.cliques]
        return {
            "kind": KIND,
            "refused": self.refused,
            "method": self.method,
            "columns": list(self.domain.names),
            "edges": None if self.cliques is None else [list(pair) for pair in self.edges],
            "interactions": found,
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
        write_atomically(Path(path), [json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"])

    def __str__(self) -> str:
        if self.cliques is None:
            return f"{self.method}: ⊥ (no graph). {self.reason}"
        shown = ", ".join("–".join(I) for I in self.cliques[:12])
        more = f" and {len(self.cliques) - 12} more" if len(self.cliques) > 12 else ""
        return f"{self.method}: {len(self.cliques)} interactions over {len(self.domain)} columns: {shown}{more}"


def maximal(sets: Iterable[Clique]) -> tuple[Clique, ...]:
    """The sets that no other one contains."""
    kept: list[Clique] = []
    for I in sorted(set(sets), key=lambda I: (-len(I), I)):
        if not any(set(I) < set(J) for J in kept):
            kept.append(I)
    return tuple(sorted(kept, key=lambda I: (len(I), I)))


def refusal(domain: Domain, method: str, out: Stability, card: Mapping[str, Any], what: str) -> StructureResult:
    """⊥: from the noisy distance and the threshold, both public.

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
    return StructureResult(domain, method, None, {}, reason, enough, card)
