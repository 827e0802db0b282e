"""What cannot be finished is refused before anything is spent, however absurd the sizes are."""

from __future__ import annotations

import pytest

from discreet import ApproxDP, Curator, Domain, Ledger, PrivacyUnit, PureDP, encode, resolve
from discreet.errors import BudgetError, DiscreetError, InputError
from discreet.learn.certifying import Certifying
from discreet.learn.procedure import Whole
from discreet.measurement import MOST_RECORDS
from discreet.models import MarkovRandomField

COLUMNS = {name: ["no", "yes"] for name in "abcd"}
DOMAIN = Domain.of(COLUMNS)
ROWS = {name: ["no", "yes"] * 50 for name in COLUMNS} | {"who": [str(i // 4) for i in range(100)]}
REPLACED = PrivacyUnit(relation="replace-one")


@pytest.mark.parametrize("epsilon", ["1e-15", "1e-12", "1e-9", "1"])
@pytest.mark.parametrize("size", [None, 10**9, MOST_RECORDS, MOST_RECORDS + 1, 2**55, 10**19])
def test_a_search_is_finished_or_costs_nothing(epsilon: str, size: int | None) -> None:
    ledger = Ledger.in_memory(PureDP(2))
    unit = PrivacyUnit() if size is None else REPLACED
    try:
        with Curator(encode(ROWS, DOMAIN), unit, PureDP(epsilon), ledger, public_size=size) as curator:
            resolve(DOMAIN).learn(curator)
    except DiscreetError:
        assert ledger.spent is None or not float(ledger.spent.epsilon)
    else:
        assert size is None or size <= MOST_RECORDS


@pytest.mark.parametrize("max_rows", [2**20, 2**40, 2**55])
def test_so_it_is_with_very_many_rows_of_a_person(max_rows: int) -> None:
    ledger = Ledger.in_memory(ApproxDP(2, "1e-5"))
    unit = PrivacyUnit("who", max_rows=max_rows)
    try:
        with Curator(encode(ROWS, DOMAIN, unit="who"), unit, ApproxDP("0.1", "1e-6"), ledger) as curator:
            resolve(DOMAIN).learn(curator)
    except DiscreetError:
        assert ledger.spent is None or not float(ledger.spent.epsilon)
        assert max_rows > 2**20


def test_what_is_refused_is_named() -> None:
    with pytest.raises(InputError, match="at most 1,099,511,627,776 records"):
        resolve(DOMAIN).prepare(DOMAIN, REPLACED, PureDP(1), public_size=MOST_RECORDS + 1)
    with pytest.raises(BudgetError, match="does not fit whole numbers of 64 bits"):
        resolve(DOMAIN).prepare(DOMAIN, REPLACED, PureDP("1e-15"), public_size=10**9)


def test_weights_that_differ_a_lot_leave_room_for_fewer_records() -> None:
    pairs = [(f"a{i}", f"b{i}") for i in range(200)]
    domain = Domain.of({name: ["no", "yes"] for pair in pairs for name in pair})
    workload = tuple({"columns": list(p), "weight": 1000 if i else 1} for i, p in enumerate(pairs))
    one = Certifying(PureDP("0.1"), lambda released: MarkovRandomField(domain, []), workload)
    one.step(Whole(domain, REPLACED, PureDP(1), public_size=10**10))
    with pytest.raises(InputError, match="give weights that differ less"):
        one.step(Whole(domain, REPLACED, PureDP(1), public_size=10**11))
