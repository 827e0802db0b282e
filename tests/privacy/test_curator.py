"""The curator: it refuses before it looks, pays before it draws, and lets out nothing else."""

import itertools
import math
import sqlite3
import threading
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from untouchable import Untouchable

from discreet.domain import Attribute, Domain
from discreet.errors import BudgetError, InputError, LedgerError, NotAReleaseError
from discreet.measurement import Measurement, Measurements
from discreet.privacy.budget import ZCDP, ApproxDP, GaussianDP, PureDP
from discreet.privacy.calibration import amplified
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.queries.edge_tests import CorrelationTest
from discreet.privacy.queries.parities import PartnerResiduals
from discreet.privacy.query import CellSums, LargestSum, Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode

F = Fraction
DOMAIN = Domain.of({"smoke": ["yes", "no"], "visits": 3})
PAIR = Marginals(DOMAIN, [("smoke", "visits")])
SINGLES = Marginals(DOMAIN, [("smoke",), ("visits",)])
ROWS = {"smoke": ["yes"] * 30 + ["no"] * 70, "visits": [0, 1, 2, 2] * 25}
EXACT = np.array([[8, 8, 14], [17, 17, 36]])
BITS = Domain.of({"a": 2, "b": 2, "c": 2})
QUIET = PureDP(4000)  # so much budget that there is no noise
REJECT = 1e-6


def rows(**options):
    return encode(ROWS, DOMAIN, **options)


class Watched(Untouchable):
    """A table that writes down what was asked of it, and may fail."""

    def __init__(self, events, fails=False):
        super().__init__(DOMAIN)
        self.events, self.fails, self.table = events, fails, rows()

    def _pass_on(name):
        def method(self, *arguments):
            self.events.append(name)
            if self.fails:
                raise RuntimeError("the disk is gone")
            return getattr(self.table, name)(*arguments)

        return method

    count, stream, count_sparse = _pass_on("count"), _pass_on("stream"), _pass_on("count_sparse")
    split, sample = _pass_on("split"), _pass_on("sample")

    def without_persons(self):
        return self


ASKING = {
    "measure": lambda c, share: c.measure(PAIR, share),
    "select": lambda c, share: c.select(LargestSum(PAIR), share),
    "select two": lambda c, share: c.select(LargestSum(PAIR), share, k=2),
    "size": lambda c, share: c.size(share),
    "partition": lambda c, share: c.partition(3, share),
    "subsample": lambda c, share: c.subsample(0.5, share),
    "vote": lambda c, share: c.vote(lambda block: "x", 4, share, candidates=["x", "y"]),
}


# -- refusing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ASKING)
@pytest.mark.parametrize(
    ("budget", "share", "message"),
    [
        (PureDP(1), PureDP("1.0000001"), "does not suffice"),
        (PureDP(1), ZCDP(50), "pure budget|does not suffice"),
        (ZCDP(1), ZCDP(2), "does not suffice"),
        (ApproxDP(1, 1e-6), ApproxDP(50, 1e-6), "does not suffice|δ of its own"),
        (PureDP(1), "0.5", "a share is"),
        (PureDP(1), 0.5, "a share is"),
    ],
)
def test_it_refuses_before_it_touches_the_rows(what, budget, share, message):
    ledger = Ledger.in_memory(budget)
    curator = Curator(Untouchable(DOMAIN), budget=budget, ledger=ledger)
    with pytest.raises(BudgetError, match=message):
        ASKING[what](curator, share)
    assert curator.spent is None
    assert len(ledger.entries) == 1


MORE_WAYS = {
    **ASKING,
    "large cells": lambda c, share: c.large_cells(["smoke"], share),
    "open vote": lambda c, share: c.vote(lambda block: "x", 4, share),
    "vote for each": lambda c, share: c.vote_for_each(lambda block: "01", 2, 4, share),
    "vote and test": lambda c, share: c.vote_and_test(lambda block: "x", 4, share),
    "in sequence": lambda c, share: c.in_sequence(share),
    "in steps": lambda c, share: c.in_steps(share, F(1, 10**8)),
    "all of it set aside": lambda c, share: c.in_steps(share, F(1, 10**7)),
    "in Gaussian steps": lambda c, share: c.in_gaussian(share),
    "Gaussian steps, all of it set aside": lambda c, share: c.in_gaussian(share, F(1, 10**7)),
}
SHARES = [
    PureDP("0.01"),
    ZCDP("0.0001"),
    ApproxDP("0.01", "1e-7"),
    GaussianDP("0.0001"),
    GaussianDP("0.0001", "0.005"),
]


@pytest.mark.parametrize("what", MORE_WAYS)
@pytest.mark.parametrize("share", SHARES, ids=lambda share: repr(share.to_dict()))
@pytest.mark.parametrize("within", ["the whole", "Gaussian steps", "a sequence"])
def test_what_is_refused_is_not_booked(what, share, within):
    """In every notion of a share, whether it can be paid with it or not."""
    curator = Curator(rows(), budget=ApproxDP(1, "1e-6"), delta_for_tests="2e-7")
    asked = {
        "the whole": lambda: curator,
        "Gaussian steps": lambda: curator.in_gaussian(ApproxDP("0.5", "1.5e-7"), F(1, 10**8)),
        "a sequence": lambda: curator.in_sequence(ApproxDP("0.5", "1.5e-7")),
    }[within]()
    before = len(asked.bookings), len(curator.steps)
    try:
        MORE_WAYS[what](asked, share)
    except (BudgetError, InputError):
        assert (len(asked.bookings), len(curator.steps)) == before


BAD = {
    "noise": lambda c: c.measure(PAIR, PureDP(0.1), noise="uniform"),
    "weights": lambda c: c.measure(SINGLES, PureDP(0.1), weights=[1]),
    "nothing": lambda c: c.measure(Marginals(DOMAIN, []), PureDP(0.1)),
    "column": lambda c: c.large_cells(["smokes"], ApproxDP(0.1, 1e-7)),
    "no delta": lambda c: c.large_cells(["smoke"], PureDP(0.1)),
    "k = 0": lambda c: c.select(LargestSum(PAIR), PureDP(0.1), k=0),
    "k = 7": lambda c: c.select(LargestSum(PAIR), PureDP(0.1), k=7),
    "blocks": lambda c: c.partition(0, PureDP(0.1)),
    "half a block": lambda c: c.partition(1.5, PureDP(0.1)),
    "rate": lambda c: c.subsample(1.5, PureDP(0.1)),
    "no rate": lambda c: c.subsample(math.nan, PureDP(0.1)),
    "candidates": lambda c: c.vote(str, 2, PureDP(0.1), candidates=["x", "x"]),
    "no candidates": lambda c: c.vote(str, 2, PureDP(0.1), candidates=[]),
    "open vote without delta": lambda c: c.vote(str, 2, PureDP(0.1)),
    "size": lambda c: c.size(),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_requests_cost_nothing(what):
    ledger = Ledger.in_memory(PureDP(1))
    curator = Curator(Untouchable(DOMAIN), budget=PureDP(1), ledger=ledger)
    with pytest.raises((InputError, BudgetError)):
        BAD[what](curator)
    assert curator.spent is None
    assert curator.steps == ()
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("what", ASKING)
def test_a_ledger_that_cannot_pay_refuses_before_the_rows_are_touched(what):
    ledger = Ledger.in_memory(PureDP(1))
    ledger.charge(PureDP(0.75), PrivacyUnit())
    with pytest.raises(BudgetError, match="does not suffice"):
        ASKING[what](Curator(Untouchable(DOMAIN), budget=PureDP(0.5), ledger=ledger), PureDP(0.1))
    other = PrivacyUnit(relation="replace-one")
    with pytest.raises(BudgetError, match="do not add up"):
        ASKING[what](Curator(Untouchable(DOMAIN), other, PureDP(0.25), ledger), PureDP(0.1))
    assert ledger.spent == PureDP(0.75)


@pytest.mark.parametrize("what", [*ASKING, "large cells"])
def test_a_table_that_fails_costs_nothing(what):
    asking = {**ASKING, "large cells": lambda c, share: c.large_cells(["smoke"], ApproxDP(0.1, 1e-7))}
    budget = ApproxDP(1, 1e-6)
    ledger, events = Ledger.in_memory(budget), []
    curator = Curator(Watched(events, fails=True), budget=budget, ledger=ledger)
    with pytest.raises(RuntimeError, match="disk is gone"):
        asking[what](curator, PureDP(0.1))
    assert len(events) == 1
    assert curator.spent is None
    assert curator.steps == ()
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a budget"),
        ({"budget": 1.0}, "budget must be PureDP"),
        ({"budget": PureDP(1), "public_size": 3.5}, "public_size"),
        ({"budget": PureDP(1), "public_size": -1}, "public_size"),
        ({"budget": PureDP(1), "public_size": True}, "public_size"),
        ({"budget": PureDP(1), "unit": PrivacyUnit("who")}, "encode the rows with unit='who'"),
        ({"budget": ApproxDP(1, 1e-6), "delta_for_tests": 1e-6}, "delta_for_tests"),
        ({"budget": PureDP(1), "delta_for_tests": "x"}, "delta_for_tests"),
    ],
)
def test_curators_that_make_no_sense(options, message):
    with pytest.raises((BudgetError, InputError), match=message):
        Curator(Untouchable(DOMAIN), **options)


# -- the order of events ---------------------------------------------------------------------------------------------


class Checking(SecureGateway):
    """Looks into the ledger file, from outside, whenever noise is drawn."""

    def __init__(self, path, events):
        self.path, self.events = path, events

    def _look(self, what):
        connection = sqlite3.connect(self.path)
        paid = connection.execute("SELECT count(*) FROM entries WHERE kind = 'charge'").fetchone()[0]
        connection.close()
        self.events.append((what, paid))

    def add_noise(self, call, values):
        self._look("noise")
        return super().add_noise(call, values)

    def select(self, call, scores):
        self._look("select")
        return super().select(call, scores)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda c: c.measure(PAIR, PureDP(0.5)), ["count", ("noise", 1)]),
        (lambda c: c.measure(SINGLES, PureDP(0.5)), ["count", ("noise", 1), ("noise", 1)]),
        (lambda c: c.select(LargestSum(PAIR), PureDP(0.5), k=2), ["count", ("select", 1), ("select", 1)]),
        (lambda c: c.large_cells(["smoke"], ApproxDP(0.5, 1e-7)), ["count_sparse", ("noise", 1)]),
        (lambda c: c.vote(lambda b: "x", 3, PureDP(0.5), candidates=["x"]), ["split", ("select", 1)]),
        (lambda c: c.vote(lambda b: "x", 3, ApproxDP(0.5, 1e-7)), ["split", ("noise", 1)]),
    ],
)
def test_the_charge_is_on_the_disk_before_noise_is_drawn(tmp_path, ask, expected):
    events = []
    budget = ApproxDP(1, 1e-6)
    ledger = Ledger.create(tmp_path / "order.ledger", budget)
    curator = Curator(Watched(events), budget=budget, ledger=ledger, gateway=Checking(ledger.path, events))
    ask(curator)
    assert events == expected


def test_the_whole_budget_is_charged_once(tmp_path):
    ledger = Ledger.create(tmp_path / "once.ledger", ZCDP(1))
    curator = Curator(rows(), budget=ZCDP(0.5), ledger=ledger, purpose="a study")
    assert ledger.spent is None
    for _ in range(5):
        curator.measure(PAIR, ZCDP("1/100"))
    (charge,) = [e for e in ledger.entries if e.kind == "charge"]
    assert charge.details["amount"] == {"notion": "zcdp", "rho": "1/2"}
    assert charge.details["purpose"] == "a study"
    assert charge.details["domain"] == DOMAIN.fingerprint
    assert curator.spent.rho <= F(1, 20)


# -- paying --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.3), ApproxDP(1, 1e-6)])
def test_a_budget_can_be_used_up_in_exact_shares(budget):
    curator = Curator(rows(), budget=budget)
    for share in budget.split([1, 2, 4]):
        curator.measure(SINGLES, share)
    assert curator.spent <= budget
    assert curator.remaining is None  # although scales are rounded up, which leaves crumbs
    with pytest.raises(BudgetError, match="the budget is gone"):
        curator.measure(PAIR)
    for share in budget.split([1, 9]):
        with pytest.raises(BudgetError):
            curator.measure(PAIR, share)


def test_shares_that_are_floats_exactly_use_up_everything():
    curator = Curator(rows(), budget=PureDP(1))
    for _ in range(4):
        curator.measure(PAIR, PureDP(0.25))
    assert curator.spent == PureDP(1)
    assert curator.remaining is None
    with pytest.raises(BudgetError, match="the budget is gone"):
        curator.measure(PAIR)


def test_the_default_share_is_all_that_remains():
    curator = Curator(rows(), budget=PureDP(1))
    curator.measure(PAIR, PureDP(0.5))
    (rest,) = curator.measure(PAIR)
    assert rest.noise.scale == 2.0
    assert curator.remaining is None


def test_several_curators_share_a_ledger(tmp_path):
    ledger = Ledger.create(tmp_path / "shared.ledger", PureDP(1))
    for _ in range(2):
        with Curator(rows(), budget=PureDP(0.5), ledger=Ledger.open(ledger.path)) as curator:
            curator.measure(PAIR)
    with pytest.raises(BudgetError), Curator(rows(), budget=PureDP("1/1000"), ledger=ledger) as third:
        third.measure(PAIR)
    assert ledger.remaining is None


def test_threads_cannot_overspend_one_curator():
    curator = Curator(rows(), budget=PureDP(1))
    answers, start = [], threading.Barrier(6)

    def ask():
        start.wait()
        for _ in range(15):
            try:
                answers.append(curator.measure(PAIR, PureDP("1/32")))
            except BudgetError:
                return

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(answers) == 32
    assert curator.remaining is None


def test_closing_gives_back_what_was_not_used(tmp_path):
    ledger = Ledger.create(tmp_path / "back.ledger", ZCDP(1))
    with Curator(rows(), budget=ZCDP(1), ledger=ledger) as curator:
        curator.measure(PAIR, ZCDP(0.125), noise="gaussian")
        assert ledger.remaining is None
    assert curator.spent == ledger.spent == ZCDP(0.125)
    steps = next(e for e in ledger.entries if e.kind == "steps").details["steps"]
    assert [s["query"] for s in steps] == ["Marginals"]
    assert ledger.verify() == []
    curator.close()  # twice is harmless
    assert ledger.spent == ZCDP(0.125)


def test_a_curator_that_was_asked_nothing_costs_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "none.ledger", PureDP(1))
    with Curator(rows(), budget=PureDP(1), ledger=ledger):
        pass
    assert [e.kind for e in ledger.entries] == ["open"]


def test_a_crash_counts_as_spent(tmp_path):
    ledger = Ledger.create(tmp_path / "crash.ledger", PureDP(1))

    class Crashing(SecureGateway):
        def add_noise(self, call, values):
            raise KeyboardInterrupt

    curator = Curator(rows(), budget=PureDP(1), ledger=ledger, gateway=Crashing())
    with pytest.raises(KeyboardInterrupt):
        curator.measure(PAIR, PureDP(0.5))
    assert curator.spent == PureDP(0.5)
    assert ledger.spent == PureDP(1)


def test_an_approximate_charge_is_not_divided_afterwards():
    ledger = Ledger.in_memory(ApproxDP(1, 1e-6))
    with Curator(rows(), budget=ApproxDP(1, 1e-6), ledger=ledger) as curator:
        curator.measure(PAIR, PureDP(0.1))
    assert ledger.spent == ApproxDP(1, 1e-6)


def test_a_closed_curator_and_its_children_answer_no_more():
    curator = Curator(rows(), budget=PureDP(1))
    children = curator.partition(2, PureDP(0.5))
    grandchild = children[0].subsample(0.5, PureDP(0.1))
    curator.close()
    for c in (curator, *children, grandchild):
        with pytest.raises(BudgetError, match="closed"):
            c.measure(PAIR, PureDP(0.01))
        with pytest.raises(BudgetError, match="closed"):
            c.select(LargestSum(PAIR), PureDP(0.01))


def test_a_closed_ledger_is_no_way_around_paying(tmp_path):
    ledger = Ledger.create(tmp_path / "gone.ledger", PureDP(1))
    curator = Curator(rows(), budget=PureDP(1), ledger=ledger)
    ledger.close()
    with pytest.raises((LedgerError, sqlite3.Error)):
        curator.measure(PAIR)
    assert curator.spent is None


# -- answers -------------------------------------------------------------------------------------------------------


def test_measurements_are_the_counts_plus_the_noise_they_declare():
    (quiet,) = Curator(rows(), budget=QUIET).measure(PAIR)
    assert np.array_equal(quiet.counts, EXACT)
    assert quiet.clique == ("smoke", "visits")
    assert quiet.domain == DOMAIN
    one, three = Curator(rows(), budget=PureDP(2)).measure(SINGLES, weights=[1, 3])
    assert (one.noise.kind, one.noise.scale) == ("laplace", 2.0)
    assert three.noise.scale == pytest.approx(2 / 3)
    assert (one.label, three.label) == ("smoke", "visits")
    assert one.domain.names == ("smoke",)
    (gaussian,) = Curator(rows(), budget=ZCDP(0.5)).measure(PAIR, noise="gaussian")
    assert (gaussian.noise.kind, gaussian.noise.scale) == ("gaussian", 1.0)
    assert gaussian.origin == "release"


@pytest.mark.parametrize("unit", [PrivacyUnit(relation="replace-one"), PrivacyUnit("who", 5)])
def test_the_unit_sets_the_noise(unit):
    table = encode({**ROWS, "who": list(range(100))}, DOMAIN, unit="who")
    (m,) = Curator(table, unit, PureDP(1)).measure(PAIR)
    assert m.noise.scale == (2.0 if unit.column is None else 5.0)


def test_end_to_end_noise_has_the_declared_shape():
    """30,000 noisy cells: their spread is the declared one, and not 10 % off."""
    wide = Domain.of({"x": 300})
    table = encode({"x": list(range(300))}, wide)
    query = Marginals(wide, [("x",)])
    curator = Curator(table, budget=PureDP(100))
    noise = np.concatenate([curator.measure(query, PureDP(1))[0].counts - 1 for _ in range(100)])
    reach = 5
    q = math.exp(-1)
    law = (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))
    seen = np.array([(noise == z).sum() for z in range(-reach, reach + 1)])
    expected = np.append(law, 1 - law.sum()) * len(noise)
    assert stats.chisquare(np.append(seen, len(noise) - seen.sum()), expected).pvalue > REJECT
    q = math.exp(-1 / 1.1)
    law = (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1))
    wrong = np.append(law, 1 - law.sum()) * len(noise)
    assert stats.chisquare(np.append(seen, len(noise) - seen.sum()), wrong).pvalue < REJECT


def test_sums_on_a_grid_come_back_on_their_scale():
    query = CellSums(DOMAIN, "visits", np.array([[0.5], [-0.25], [1.0]]), grid=F(1, 4))
    (m,) = Curator(rows(), budget=QUIET).measure(query)
    assert m.clique is None
    assert m.values.tolist() == [25 * 0.5 - 25 * 0.25 + 50 * 1.0]


@pytest.mark.parametrize("budget", [PureDP(4000), ZCDP(10**7)])
def test_selection_finds_the_best_when_there_is_no_noise(budget):
    curator = Curator(rows(), budget=budget)
    best = curator.select(LargestSum(PAIR), k=3)
    assert best.indices == (5, 4, 3) or best.indices == (5, 3, 4)
    assert best.names[0] == "smoke × visits[5]"
    assert len(set(best.indices)) == 3


def test_selecting_k_costs_the_share_and_not_k_times_it():
    curator = Curator(rows(), budget=PureDP(1))
    chosen = curator.select(LargestSum(PAIR), PureDP(0.5), k=4)
    assert chosen.scale == 2 / (0.5 / 4)
    assert curator.spent == PureDP(0.5)


@pytest.mark.parametrize(
    "data",
    [
        {"smoke": [], "visits": []},
        {"smoke": ["yes"], "visits": [1]},
        {"smoke": ["yes"] * 50, "visits": [0] * 50},
        {"smoke": [None] * 5, "visits": ["?"] * 5},
    ],
    ids=["empty", "one row", "constant", "nulls"],
)
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.5), ApproxDP(2, 1e-6)])
def test_odd_tables_release_normally(data, budget):
    curator = Curator(encode(data, DOMAIN), budget=budget, delta_for_tests=0)
    share = budget.split([1] * 8)[0]
    (m,) = curator.measure(PAIR, share)
    assert m.counts.shape == (2, 3)
    assert curator.size(share).counts.shape == ()
    assert len(curator.select(LargestSum(PAIR), share).indices) == 1
    for block in curator.partition(4, share):
        assert block.measure(PAIR)[0].counts.shape == (2, 3)
    assert curator.subsample(0.1, share).measure(PAIR)[0].counts.shape == (2, 3)
    assert curator.vote(lambda b: "x", 3, share, candidates=["x", "y"]).winner in ("x", "y")
    if isinstance(budget, ApproxDP):
        alone = Curator(encode(data, DOMAIN), budget=budget)
        assert all(set(cell) <= {"yes", "no"} for cell in alone.large_cells(["smoke"]))


def test_the_number_of_records_is_paid_for_or_public():
    with pytest.raises(BudgetError, match="number of records is private"):
        Curator(Untouchable(DOMAIN), budget=PureDP(1)).size()
    curator = Curator(rows(), budget=QUIET)
    assert int(curator.size(PureDP(2048)).counts) == 100
    assert curator.spent == PureDP(2048)
    public = Curator(Untouchable(DOMAIN), budget=PureDP(1), public_size=123)
    stated = public.size()
    assert (int(stated.counts), stated.origin, stated.noise.kind) == (123, "public", "none")
    assert public.spent is None
    assert public.statement()["public_size"] == 123


def test_nothing_shown_holds_the_exact_number_of_records():
    n = 7919
    table = encode({"smoke": ["yes"] * n, "visits": [1] * n}, DOMAIN)
    curator = Curator(table, budget=PureDP(1))
    measurements = curator.measure(SINGLES)
    for shown in (repr(curator), repr(table), str(curator.statement()), str(curator.steps)):
        assert str(n) not in shown
    # The noise of a cell may be 0: then the measurements, and they alone, hold the number.
    assert str(n) not in repr(measurements) or str(n) in str([m.counts.tolist() for m in measurements])


def test_the_statement_says_what_was_done():
    domain = Domain.of({"smoke": Attribute.categorical("smoke", ["yes", "no"], peeked={"levels"})})
    curator = Curator(encode({"smoke": ["yes"]}, domain), budget=PureDP(1))
    measurements = curator.measure(Marginals(domain, [("smoke",)]), PureDP(0.5))
    statement = measurements.release
    assert statement["spent"] == {"notion": "pure", "epsilon": "1/2"}
    assert statement["budget"] == {"notion": "pure", "epsilon": "1"}
    assert statement["peeked"] == {"smoke": ["levels"]}
    assert statement["unit"]["relation"] == "add-remove"
    assert statement["domain"] == domain.fingerprint
    assert statement["origin"] == "release"
    assert [s["query"] for s in statement["steps"]] == ["Marginals"]


# -- blocks and samples ----------------------------------------------------------------------------------------------


def test_blocks_are_disjoint_and_cover_all_rows():
    blocks = ExactCurator(rows()).partition(5)
    assert len(blocks) == 5
    counts = [b.measure(PAIR)[0].counts for b in blocks]
    assert np.array_equal(sum(counts), EXACT)
    assert all(c.sum() < 100 for c in counts)


def test_every_block_may_spend_the_whole_share():
    curator = Curator(rows(), budget=PureDP(1))
    blocks = curator.partition(3, PureDP(0.5))
    assert curator.spent == PureDP(0.5)
    for block in blocks:
        assert block.budget == PureDP(0.5)
        block.measure(PAIR)
        with pytest.raises(BudgetError):
            block.measure(PAIR, PureDP("1/1000"))
    assert curator.spent == PureDP(0.5)
    curator.measure(PAIR, PureDP(0.5))
    assert curator.remaining is None
    assert [s["query"] for s in curator.steps] == ["partition"] + ["Marginals"] * 4
    assert [s.get("in") for s in curator.steps] == [None] + ["block or sample"] * 3 + [None]


def test_blocks_of_blocks_spend_within_their_block():
    curator = Curator(rows(), budget=ZCDP(1))
    (block,) = curator.partition(1, ZCDP(0.5))
    inner = block.partition(2, ZCDP(0.25))
    inner[0].measure(PAIR, ZCDP(0.25), noise="gaussian")
    with pytest.raises(BudgetError):
        inner[0].measure(PAIR, ZCDP(0.25))
    block.measure(PAIR, ZCDP(0.25), noise="gaussian")
    with pytest.raises(BudgetError):
        block.measure(PAIR, ZCDP("1/1000"))
    assert curator.remaining == ZCDP(0.5)


def test_blocks_are_charged_to_the_ledger_of_their_curator(tmp_path):
    ledger = Ledger.create(tmp_path / "blocks.ledger", PureDP(1))
    with Curator(rows(), budget=PureDP(1), ledger=ledger) as curator:
        for block in curator.partition(3, PureDP(0.25)):
            block.measure(PAIR)
    assert len([e for e in ledger.entries if e.kind == "charge"]) == 1
    assert ledger.spent == PureDP(0.25)


@pytest.mark.parametrize(
    ("share", "unit"),
    [
        (PureDP(0.5), PrivacyUnit()),
        (ApproxDP(0.5, 1e-7), PrivacyUnit()),
        (ZCDP(0.01), PrivacyUnit()),
        (PureDP(0.5), PrivacyUnit(relation="replace-one")),
    ],
)
def test_samples_get_the_amplified_share(share, unit):
    budget = ApproxDP(1, 1e-6)
    curator = Curator(rows(), unit, budget, delta_for_tests=5e-7)
    sample = curator.subsample("1/10", share)
    assert sample.budget == amplified(share, F(1, 10), unit)
    if unit.relation == "add-remove" and isinstance(share, PureDP):
        assert float(sample.budget.epsilon) == pytest.approx(math.log(1 + 10 * math.expm1(0.5)))
    assert curator.spent <= budget
    sample.measure(PAIR)


def test_samples_have_the_right_size():
    table = encode({"smoke": ["yes"] * 20_000, "visits": [0] * 20_000}, DOMAIN)
    kept = int(ExactCurator(table).subsample(0.3).measure(Marginals(DOMAIN, [()]))[0].counts)
    assert stats.binomtest(kept, 20_000, 0.3).pvalue > REJECT


# -- persons -------------------------------------------------------------------------------------------------------

PEOPLE = encode(
    {"smoke": ["yes"] * 20 + ["no"] * 3, "visits": [0] * 23, "who": ["ann"] * 20 + ["bob", "bob", None]},
    DOMAIN,
    unit="who",
)


def test_a_person_counts_with_at_most_so_many_rows():
    for most, expected in ((1, (1, 1)), (2, (2, 2)), (5, (5, 2)), (50, (20, 2))):
        (m,) = Curator(PEOPLE, PrivacyUnit("who", most), QUIET).measure(Marginals(DOMAIN, [("smoke",)]))
        assert tuple(m.counts) == expected


def test_rows_of_a_person_are_chosen_once_for_a_curator():
    table = encode({"smoke": ["yes", "no"] * 10, "visits": [0] * 20, "who": ["ann"] * 20}, DOMAIN, unit="who")
    outcomes = Counter()
    for _ in range(40):
        curator = Curator(table, PrivacyUnit("who"), PureDP(10_000))
        answers = {tuple(curator.measure(Marginals(DOMAIN, [("smoke",)]), QUIET)[0].counts) for _ in range(2)}
        assert len(answers) == 1
        outcomes.update(answers)
    assert set(outcomes) == {(1, 0), (0, 1)}


def test_persons_go_to_one_block_with_all_their_rows():
    n = 60
    table = encode(
        {"smoke": ["yes"] * 3 * n, "visits": [0, 1, 2] * n, "who": [p for p in range(n) for _ in range(3)]},
        DOMAIN,
        unit="who",
    )
    curator = ExactCurator(table, PrivacyUnit("who", 3))
    sizes = []
    for block in curator.partition(4):
        visits = block.measure(Marginals(DOMAIN, [("visits",)]))[0].counts
        assert len(set(visits.tolist())) == 1
        sizes.append(int(visits[0]))
    assert sum(sizes) == n


def test_a_unit_column_does_not_matter_when_rows_are_protected():
    (m,) = Curator(PEOPLE, budget=QUIET).measure(Marginals(DOMAIN, [("smoke",)]))
    assert tuple(m.counts) == (20, 2)
    with pytest.raises(InputError, match="made with 'who'"):
        Curator(PEOPLE, PrivacyUnit("patient"), PureDP(1))


def test_rows_of_one_person_have_coins_of_their_own_where_rows_are_protected():
    """One row must move no other: with its person's coin, all rows of a person would come and go together."""
    rows = 400
    table = encode({"smoke": ["yes"] * rows, "visits": [1] * rows, "who": ["one"] * rows}, DOMAIN, unit="who")
    count = Marginals(DOMAIN, [()])
    blocks = Curator(table, budget=QUIET).partition(2)
    assert all(120 < int(b.measure(count)[0].counts) < 280 for b in blocks)
    assert 120 < int(Curator(table, budget=QUIET).subsample("0.5").measure(count)[0].counts) < 280
    votes = Curator(table, budget=ApproxDP(4000, 0.5)).vote(lambda b: str(b.measure(count)[0].counts > 0), 2)
    assert set(votes.counts) == {"True"}


PAID = {
    "groups": lambda c: c.select_each(PartnerResiduals(BITS, np.zeros((3, 3)))),
    "large cells": lambda c: c.large_cells(["a", "b"]),
    "stable": lambda c: c.release_if_stable(CorrelationTest(BITS, [("a", "b")], 0.25)),
    "candidates": lambda c: c.vote(lambda b: "x", 3, candidates=["x", "y"]),
    "open vote": lambda c: c.vote(lambda b: "x", 3),
    "vote for each": lambda c: c.vote_for_each(lambda b: "10", 2, 3),
    "vote and test": lambda c: c.vote_and_test(lambda b: "x", 3),
}


@pytest.mark.parametrize("what", PAID)
def test_what_is_asked_at_once_is_paid(what):
    """The budget is gone with one such answer, in the account and in the ledger, and nothing more is answered."""
    budget = ApproxDP(1, 0.01)
    with Ledger.in_memory(budget) as ledger:
        curator = Curator(encode(np.ones((9, 3), dtype=int), BITS), budget=budget, ledger=ledger)
        PAID[what](curator)
        assert curator.spent is not None
        assert ledger.spent == budget and ledger.remaining is None
        assert len(curator.steps) == len(curator.bookings) == 1
        assert curator.bookings[0].costs
        with pytest.raises(BudgetError):
            curator.measure(Marginals(BITS, [("a",)]), PureDP("0.1"))


# -- large cells and votes -------------------------------------------------------------------------------------------


def test_large_cells_are_found_by_their_labels():
    table = encode({"smoke": ["yes"] * 500 + ["no"], "visits": [2] * 501}, DOMAIN)
    shown = Curator(table, budget=ApproxDP(1, 1e-6)).large_cells(["visits", "smoke"])
    assert set(shown) == {("yes", "2")}
    assert abs(shown[("yes", "2")] - 500) < 60


def test_large_cells_of_a_table_that_no_memory_holds():
    wide = Domain.of({f"c{i}": 2 for i in range(70)})
    table = encode(np.ones((800, 70), dtype=int), wide)
    for relation in ("add-remove", "replace-one"):
        curator = Curator(table, PrivacyUnit(relation=relation), ApproxDP(1, 1e-6))
        assert set(curator.large_cells(wide.names)) == {("1",) * 70}


def test_large_cells_of_nothing_is_the_number_of_records():
    for data, expected in ((ROWS, {()}), ({"smoke": [], "visits": []}, set())):
        assert set(Curator(encode(data, DOMAIN), budget=ApproxDP(2, 1e-6)).large_cells([])) == expected


def test_a_lone_record_stays_hidden():
    table = encode({"smoke": ["yes"], "visits": [2]}, DOMAIN)
    assert all(Curator(table, budget=ApproxDP(1, 1e-9)).large_cells(["smoke", "visits"]) == {} for _ in range(200))


def test_a_vote_among_candidates():
    def mostly(block):
        smokers = block.measure(Marginals(DOMAIN, [("smoke",)]))[0].counts
        return "no" if smokers[1] else "yes"

    curator = Curator(rows(), budget=PureDP(20))
    vote = curator.vote(mostly, 5, candidates=["yes", "no", "neither"])
    assert (vote.winner, dict(vote.counts), vote.threshold) == ("no", {}, None)
    assert curator.remaining is None


@pytest.mark.parametrize(
    "learner",
    [
        lambda block: None,
        lambda block: 1 / 0,
        lambda block: 42,
        lambda block: "not a candidate",
        lambda block: block.measure(Marginals(DOMAIN, [("nowhere",)])),
    ],
)
def test_learners_that_fail_abstain(learner):
    vote = Curator(rows(), budget=PureDP(1)).vote(learner, 4, candidates=["x", "y"])
    assert vote.winner in ("x", "y")  # noise decides; nothing of the failure is seen
    open_vote = Curator(rows(), budget=ApproxDP(1, 1e-6)).vote(lambda b: None, 400)
    assert open_vote.winner is None
    assert dict(open_vote.counts) == {}


def test_an_open_vote_shows_outcomes_with_many_votes_only():
    curator = Curator(rows(), budget=ApproxDP(2, 1e-6))
    words = itertools.cycle(["graph one"] * 7 + ["graph two"] * 3)
    vote = curator.vote(lambda block: next(words), 300)
    assert vote.winner == "graph one"
    assert set(vote.counts) == {"graph one", "graph two"}
    assert min(vote.counts.values()) > vote.threshold
    numbers = itertools.count()
    rare = Curator(rows(), budget=ApproxDP(1, 1e-6)).vote(lambda block: f"word {next(numbers)}", 50)
    assert rare.winner is None
    with pytest.raises(BudgetError):
        curator.measure(PAIR, PureDP(0.01))


def test_a_vote_shows_its_learner_each_row_once():
    seen = []
    Curator(rows(), budget=PureDP(1)).vote(lambda b: seen.append(b.measure(PAIR)[0].counts), 7, candidates=["x"])
    assert len(seen) == 7
    assert np.array_equal(sum(seen), EXACT)


# -- exact curators --------------------------------------------------------------------------------------------------


def test_an_exact_curator_answers_exactly_and_never_refuses():
    curator = ExactCurator(rows())
    for _ in range(3):
        (m,) = curator.measure(PAIR, PureDP("1/1000"))
        assert np.array_equal(m.counts, EXACT)
        assert (m.origin, m.noise.kind, m.noise.variance) == ("exact", "none", 0)
    assert curator.select(LargestSum(PAIR)).indices == (5,)
    assert curator.large_cells(["smoke"], ApproxDP(1, 1e-6)) == {("yes",): 30, ("no",): 70}
    assert len(curator.steps) == 5
    assert curator.spent is None


def test_nothing_exact_can_be_saved(tmp_path):
    curator = ExactCurator(rows())
    sources = [curator, *curator.partition(2), curator.subsample(0.5), curator.partition(2)[0].subsample(0.5)]
    for source in sources:
        measurements = source.measure(PAIR)
        assert not measurements.is_release
        with pytest.raises(NotAReleaseError, match="no privacy guarantee"):
            measurements.save(tmp_path / "exact.zip")
    honest = Curator(rows(), budget=PureDP(1)).measure(PAIR)
    with pytest.raises(NotAReleaseError):
        Measurements([*honest, curator.measure(SINGLES)[0]], honest.release).save(tmp_path / "mixed.zip")
    with pytest.raises(NotAReleaseError):
        Measurements(honest, curator.statement()).save(tmp_path / "mixed.zip")
    for paid_elsewhere in (curator.measure(SINGLES)[0], Curator(rows(), budget=PureDP(1)).measure(SINGLES)[0]):
        with pytest.raises(InputError, match="not public knowledge"):
            honest.plus(paid_elsewhere)
    assert list(tmp_path.iterdir()) == []


def test_a_release_survives_being_saved(tmp_path):
    curator = Curator(rows(), budget=ZCDP(0.5))
    measurements = curator.measure(SINGLES).plus(Measurement.public(DOMAIN, (), 100))
    measurements.save(tmp_path / "release.zip")
    again = Measurements.load(tmp_path / "release.zip")
    assert again.release == measurements.release
    assert again.release["spent"]["notion"] == "zcdp"
    for one, other in zip(measurements, again, strict=True):
        assert np.array_equal(one.counts, other.counts)
        assert (one.noise, one.clique, one.domain, one.origin) == (
            other.noise,
            other.clique,
            other.domain,
            other.origin,
        )
