"""What tests and votes need of a curator: its account, its rows and its gateway of noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..domain import Domain
from ..tables.base import Asked, IntArray, Table
from .accounting import Cost
from .budget import Budget
from .mechanisms import Gateway
from .query import Query
from .unit import PrivacyUnit


class Holder(Protocol):
    """Holds rows, and pays for what is let out of them. Every curator is one."""

    unit: PrivacyUnit
    _gateway: Gateway

    @property
    def _rows(self) -> Table: ...

    @property
    def domain(self) -> Domain: ...

    @property
    def _source_of_all(self) -> Table: ...

    def _counting(self, table: Table) -> Table: ...

    def _share(self, share: Budget | None) -> Budget: ...

    def _check(self, costs: Sequence[Cost]) -> None: ...

    def _spend(self, costs: Sequence[Cost], step: Mapping[str, Any]) -> object: ...

    def require(self, asked: Asked) -> None: ...

    def _sum(self, query: Query) -> tuple[IntArray, ...]: ...

    def _exact(self, block: Table) -> Holder: ...
