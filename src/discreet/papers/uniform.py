"""[CRJ20]'s baseline D-Ind: Algorithm 1 with equal budgets ε/n for all nodes (section 5.1, "Setup")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..learn.procedure import Procedure, Whole
from .compute_parameters import PublishedNetwork, node_requests


@dataclass(frozen=True)
class UniformNetwork(PublishedNetwork):
    """Learn a Bayesian network with equal shares for all columns, half for the family and half for the parents.

    Options: those of :class:`PublishedNetwork`.
    """

    method: ClassVar[str] = "uniform"
    passes: ClassVar[int] = 1

    def prepare(self, whole: Whole) -> Procedure:
        """A step for each column: the table of its family and that of its parents."""
        families = self.families(whole.domain)
        steps = [
            whole.measure(f"tables of {name}", request, why="Equal shares for all columns.")
            for name, request in node_requests(families, whole.budget, [1] * len(whole.domain), self.noise)
        ]
        return Procedure(self.method, whole, tuple(steps), families.notes()).with_cautions()
