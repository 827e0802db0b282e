"""Tests of stability: how far one record moves a level, by brute force; the threshold; the audits; planted bugs."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from discreet import open_table
from discreet.audit import all_tables, audit_replay, check_pair, failures, output_law
from discreet.audit.statistical import clopper_pearson
from discreet.domain import Domain
from discreet.errors import BudgetError, InputError
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.levels import distance_of, level_of
from discreet.privacy.mechanisms import SecureGateway, stability_threshold
from discreet.privacy.queries.edge_tests import CorrelationTest, DependenceTest, SpinTest, TripleSums
from discreet.privacy.queries.value_gradients import LinearGradients
from discreet.privacy.query import Marginals
from discreet.privacy.stability import StabilityTest
from discreet.privacy.unit import PrivacyUnit
from discreet.progress import listening
from discreet.tables.memory import MemoryTable

ADD, REPLACE = PrivacyUnit(), PrivacyUnit(relation="replace-one")
PERSON = PrivacyUnit("person", max_rows=2)
SWAPPED = PrivacyUnit("person", max_rows=2, relation="replace-one")
THREE = Domain.of({"a": 2, "b": 2, "c": 2})
FOUR = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
MIXED = Domain.of({"a": 2, "b": 3, "c": 2})
ROOMY = ApproxDP(2, 0.2)  # a threshold that tables of five rows can pass


def cases_on(domain):
    pairs = list(combinations(domain.names, 2))
    if max(domain.shape) > 2:
        return [DependenceTest(domain, [0.3] * len(pairs)), DependenceTest(domain, [0.2, 0.3, 0.4], conditional=False)]
    return [
        CorrelationTest(domain, pairs, 0.25),
        SpinTest(domain, 0.25),
        SpinTest(domain, 0.1, "conditional"),
        SpinTest(domain, 0.15, enough=2),
        DependenceTest(domain, [0.25] * len(pairs)),
    ][: 4 if len(domain) > 3 else 5]


def table_of(codes, domain):
    return MemoryTable(domain, [np.asarray(codes)[:, i].astype(np.uint8) for i in range(len(domain))], threads=1)


def levels(test, codes, domain, unit=ADD):
    return test.levels(table_of(codes, domain).sum, unit)


# -- levels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [THREE, FOUR, MIXED], ids=["binary", "four", "mixed"])
def test_no_record_moves_a_level_by_more_than_one(domain):
    """Many random tables with a few and with many rows of a kind, each with every possible record added, and removed
    again by replacing: by exact arithmetic, nothing is left to chance but which tables are looked at."""
    rng = np.random.default_rng(0)
    records = list(product(*(range(k) for k in domain.shape)))
    largest = {}
    for number in range(60):
        weights = rng.dirichlet(np.full(len(records), rng.choice([0.05, 0.3, 1.0])))
        counts = rng.multinomial(int(rng.choice([0, 1, 2, 5, 20, 200])), weights)
        rows = np.repeat(np.array(records), counts, axis=0).reshape(-1, len(domain))
        for which, test in enumerate(cases_on(domain)):
            before = levels(test, rows, domain)
            more = [np.vstack([rows, record]) for record in records]
            added = [levels(test, m, domain) for m in more]
            moved = max(np.abs(a - before).max() for a in added)
            swapped = [levels(test, m, domain, REPLACE) for m in more]
            moved_both = max(np.abs(a - b).max() for a, b in combinations(swapped, 2))
            assert moved <= 1 and moved_both <= 1, (number, which)
            largest[which] = max(largest.get(which, 0), moved, moved_both)
    assert set(largest.values()) == {1}  # attained: a bound that nothing reaches would hide a mistake


def test_the_bound_of_four_is_nearly_attained():
    """n records (1, 1) and then (−1, −1) move the scatter by 4n/(n + 1): a smaller constant would be wrong."""
    test = SpinTest(THREE, 0.001, "conditional")
    rows = np.ones((4000, 3), dtype=int)
    sums = [
        table_of(r, THREE).sum(DependenceTest(THREE, [0.5] * 3).query) for r in (rows, np.vstack([rows, [0, 0, 0]]))
    ]
    from discreet.privacy.queries.edge_tests import GRID, _dependence

    assert 3.99 < (_dependence(sums[1][0]) - _dependence(sums[0][0])) / GRID <= 4
    assert levels(test, rows, THREE).max() < 0  # constant columns: no edges


def test_levels_say_what_they_mean():
    """Against a direct computation with fractions."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (40, 3))
    rows[:, 1] = np.where(rng.random(40) < 0.85, rows[:, 0], 1 - rows[:, 0])
    z = 2 * rows - 1
    n, tau, higher = 40, Fraction(1, 4), Fraction(281, 1024)
    given = Fraction(0)
    for b in (-1, 1):
        inside = z[z[:, 2] == b]
        N = len(inside)
        scatter = Fraction(int((inside[:, 0] * inside[:, 1]).sum())) - Fraction(
            int(inside[:, 0].sum()) * int(inside[:, 1].sum()), N
        )
        given += abs(Fraction(math.floor(1024 * scatter), 1024))
    pair = int((z[:, 0] * z[:, 1]).sum())
    covariance = Fraction(math.floor(1024 * (pair - Fraction(int(z[:, 0].sum()) * int(z[:, 1].sum()), n))), 1024)
    wanted = min(
        math.ceil((pair - tau * n) / (1 + tau)) - 1,
        math.ceil((given - higher * n) / (4 + higher)) - 1,
        math.ceil((abs(covariance) - higher * n) / (4 + higher)) - 1,
    )
    found = levels(SpinTest(THREE, tau, "conditional"), rows, THREE)
    assert found[0] == wanted  # the pair (a, b), positive
    assert found[3] < 0  # negative


def test_triples_are_sums_of_products():
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 2, (30, 3))
    z = 2 * rows - 1
    triples, means = table_of(rows, THREE).sum(TripleSums(THREE))
    assert triples[1, 1] == (z[:, 0] * z[:, 2] * z[:, 1]).sum() and triples[2, -1] == (z[:, 1] * z[:, 2]).sum()
    assert means[0] == z[:, 0].sum() and means[-1] == 30


FIVE = Domain.of(dict.fromkeys("abcde", 2))


def levels_without_shortcuts(rows, tau, unit, enough=10**9):
    """The combined test from its definition, with fractions, for every pair and all one or two other columns."""
    z = 2 * rows.astype(int) - 1
    n, p = z.shape
    one, two = Fraction(int(tau * 1024) * 9 // 10, 1024), Fraction(int(tau * 1024) * 8 // 10, 1024)
    level = lambda g, record, t: math.ceil(g / unit.max_rows / (record + t)) - 1  # noqa: E731, add-remove
    corr = z.T @ z

    def given(i, j, columns):
        total = Fraction(0)
        for value in product((-1, 1), repeat=len(columns)):
            inside = z[(z[:, columns] == value).all(axis=1)]
            a = Fraction(int((inside[:, i] * inside[:, j]).sum()))
            a -= Fraction(int(inside[:, i].sum()) * int(inside[:, j].sum()), max(len(inside), 1))
            total += abs(Fraction(math.floor(1024 * a), 1024))
        return total

    found = []
    for sign in (1, -1):
        for i, j in combinations(range(p), 2):
            others = [k for k in range(p) if k not in (i, j)]
            apart = {k: level(tau * n - min(abs(int(corr[i, k])), abs(int(corr[j, k]))), 1, tau) for k in others}
            means = min(abs(int(z[:, i].sum())), abs(int(z[:, j].sum())))
            all_of = [level(sign * int(corr[i, j]) - tau * n, 1, tau)]
            all_of.append(max(level(given(i, j, []) - one * n, 4, one), level(tau * n - means, 1, tau)))
            all_of += [max(level(given(i, j, [k]) - one * n, 4, one), apart[k]) for k in others]
            all_of += [
                max(level(given(i, j, [k, m]) - two * n, 4, two), apart[k], apart[m], -enough)
                for k, m in combinations(others, 2)
            ]
            found.append(min(all_of))
    return found


def test_what_is_left_out_changes_no_level(monkeypatch):
    """Only what can matter is computed of dependences given two columns; against the definition, on tables with strong
    common causes (where it matters) and on others, and with passes of few pairs at a time."""
    from discreet.privacy.queries import edge_tests, two_columns

    monkeypatch.setattr(two_columns, "_AT_ONCE", 3)
    monkeypatch.setattr(two_columns, "_IN_CACHE", 2)
    asked = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        cause = rng.integers(0, 2, (int(rng.choice([3, 40, 300])), 2))
        rows = cause[:, rng.integers(0, 2, 5)] ^ (rng.random((len(cause), 5)) < rng.choice([0.02, 0.1, 0.3]))
        rows = np.hstack([cause, (rows[:, :3].sum(axis=1, keepdims=True) + rows[:, 3:] > 2)]) if seed % 2 else rows
        domain = FIVE if rows.shape[1] == 5 else FOUR
        tau = Fraction(int(rng.choice([100, 200, 300])), 1024)
        table = table_of(rows, domain)

        def ask(query, table=table):
            asked.append(type(query).__name__)
            return table.sum(query)

        wanted = levels_without_shortcuts(rows, tau, ADD)
        assert SpinTest(domain, tau).levels(ask, ADD).tolist() == wanted
        near = levels_without_shortcuts(rows, tau, ADD, enough=3)
        assert SpinTest(domain, tau, enough=3).levels(ask, ADD).tolist() == near
        with monkeypatch.context() as patch:  # as with more than 2²⁶ records: Python's own whole numbers
            patch.setattr(edge_tests, "_LARGEST_SQUARE", 0)
            assert SpinTest(domain, tau).levels(ask, ADD).tolist() == wanted
    assert asked.count("FourSums") > 3  # otherwise nothing was tried


def test_two_common_neighbours_are_seen_through():
    """a and b have three neighbours in common and no edge: what one of them leaves unexplained, a second one does not.
    The other pairs are edges still. 20,000 records, so that what is compared is no chance."""
    from discreet.models import generators

    model = generators.ising(5, [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)], weight=0.35)
    test = SpinTest(model.domain, 0.15)
    table = table_of(model.sample(20_000, random_state=0).codes, model.domain)
    together = test.levels(table.sum, ADD)[: len(test.pairs)]
    assert {pair for pair, level in zip(test.pairs, together, strict=True) if level >= 0} == set(model.edges)
    test.two = False
    alone = test.levels(table.sum, ADD)[0]
    assert together[0] < 2 * min(alone, 0) - 100


def test_a_level_changes_sign_where_the_distance_is_zero():
    margins = np.arange(-50, 51)
    found = level_of(margins, 7)
    assert ((found >= 0) == (margins > 0)).all()
    assert distance_of(found[margins == 7]) == 0 and distance_of(found[margins == 8]) == 1
    assert distance_of(found[margins == 0]) == 0 and distance_of(found[margins == -7]) == 1
    step = np.abs(level_of(margins[:, None], 7) - level_of(margins[None, :], 7))
    assert step[np.abs(margins[:, None] - margins[None, :]) <= 7].max() == 1


# -- the threshold -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.3, 0.02, 1e-6, 1e-12])
def test_the_threshold_is_the_least_one(epsilon, delta):
    tau = stability_threshold(1 / epsilon, Fraction(str(delta)))
    tail = lambda t: math.exp(-epsilon * (t + 1)) / (1 + math.exp(-epsilon))  # noqa: E731
    assert tail(tau) <= delta * (1 + 1e-9) and (tau == 0 or tail(tau - 1) > delta * (1 - 1e-9))


class TwoRecords(StabilityTest):
    """Whether more records have a = 1 than a = 0; a record moves the difference by 1."""

    def __init__(self, domain, times=1):
        self.query, self.times = Marginals(domain, [("a",)]), times

    @property
    def attributes(self):
        return self.query.attributes

    def levels(self, ask, unit):
        sums = ask(self.query)
        moved = unit.max_rows * (1 if unit.relation == "add-remove" else 2)
        return level_of(self.times * np.array([sums[0][1] - sums[0][0]]), moved)


def test_unstable_inputs_are_released_as_rarely_as_promised():
    """An input one record away from another answer, 5,000 runs at δ = 0.02 through the whole curator: the number of
    releases is binomial with mean 67 (P(noise > τ) = 0.0134, the largest atom-wise value below δ). Above 130 or below
    20 has probability under 1e-8. `bench structure` does 20,000 runs."""
    domain = Domain.of({"a": 2})
    table = table_of([[1], [0], [1]], domain)
    test, gateway = TwoRecords(domain), SecureGateway()
    hits = 0
    for _ in range(5_000):
        curator = Curator(table, ADD, ApproxDP(1, Fraction(2, 100)), gateway=gateway)
        hits += not curator.release_if_stable(test).refused
    tau = stability_threshold(1.0, Fraction(2, 100))
    assert 20 < hits < 130
    assert clopper_pearson(hits, 5_000, 1 - 1e-9, upper=False) <= math.exp(-tau - 1) / (1 + math.exp(-1)) <= 0.02


# -- audits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [ADD, REPLACE, PERSON, SWAPPED], ids=str)
@pytest.mark.parametrize("domain", [THREE, MIXED], ids=["binary", "mixed"])
def test_release_if_stable_passes_replay(domain, unit):
    for test in cases_on(domain):
        found = audit_replay(lambda c, test=test: c.release_if_stable(test), domain, unit, ROOMY, count=30)
        assert not failures(found), found


def test_exact_law_on_tiny_tables():
    """Everything that can come out on all pairs of tables of up to three records, with its probability."""
    domain = Domain.of({"a": 2})
    laws = {}
    budget = ApproxDP(1, Fraction(1, 10))
    for size in range(4):
        for rows in all_tables((2,), size):
            law = output_law(
                lambda c: c.release_if_stable(TwoRecords(domain)), table_of(rows.reshape(-1, 1), domain), ADD, budget
            )
            laws[size, int(rows.sum())] = law
    for (size, ones), law in laws.items():
        for more in ((size + 1, ones), (size + 1, ones + 1)):
            if more in laws:
                assert check_pair(law, laws[more], budget).passed
    assert not check_pair(laws[0, 0], laws[1, 1], ApproxDP(1, Fraction(1, 1000))).passed  # it could fail


def test_planted_bugs_are_caught():
    domain = Domain.of({"a": 2})
    caught = audit_replay(lambda c: c.release_if_stable(TwoRecords(domain, 2)), domain, ADD, ROOMY, count=30)
    assert any("sensitivity" in f.name for f in failures(caught))

    class Peeks(Curator):
        """A refusal that says which answer was refused."""

        def release_if_stable(self, test, share=None):
            out = super().release_if_stable(test, share)
            return out, bool(test.levels(self._rows.sum, self.unit)[0] >= 0)

    caught = audit_replay(
        lambda c: c.release_if_stable(TwoRecords(domain)), domain, ADD, ROOMY, count=30, make_curator=Peeks
    )
    assert failures(caught)

    class PersonPaidAsRow(CorrelationTest):
        def levels(self, ask, unit):
            return super().levels(ask, PrivacyUnit(relation=unit.relation))

    test = PersonPaidAsRow(THREE, combinations(THREE.names, 2), 0.25)
    assert failures(audit_replay(lambda c: c.release_if_stable(test), THREE, PERSON, ROOMY, count=80))


class LowThreshold(SecureGateway):
    """Releases at a threshold that is two steps too low."""

    def release_stable(self, call, levels, word):
        from dataclasses import replace

        return super().release_stable(replace(call, threshold=call.threshold - 2), levels, word)


def test_a_low_threshold_shows_in_the_release_rate():
    domain = Domain.of({"a": 2})
    table, test = table_of([[1], [0], [1]], domain), TwoRecords(domain)
    budget = ApproxDP(1, Fraction(2, 100))
    hits = sum(
        not Curator(table, ADD, budget, gateway=LowThreshold()).release_if_stable(test).refused for _ in range(4000)
    )
    assert clopper_pearson(hits, 4000, 1 - 1e-6, upper=False) > 0.02  # about 570 expected, 80 promised


# -- votes -------------------------------------------------------------------------------------------------------------


def majority(curator):
    """A learner: which of the columns have more ones than zeros in the block."""
    sums = curator.measure(Marginals(curator.domain, [(n,) for n in curator.domain.names]))
    return "".join("1" if s.values[1] > s.values[0] else "0" for s in sums)


@pytest.mark.parametrize("unit", [ADD, REPLACE, PERSON], ids=str)
def test_votes_pass_replay(unit):
    for ask in (lambda c: c.vote_for_each(majority, 3, 4), lambda c: c.vote_and_test(majority, 4)):
        found = audit_replay(ask, THREE, unit, ROOMY, count=30)
        assert not failures(found), found


def test_votes_find_what_is_there():
    rows = np.tile([1, 0, 1], (3000, 1))
    table = table_of(rows, THREE)
    out = Curator(table, ADD, ApproxDP(1, 1e-6)).vote_for_each(majority, 3, 60)
    assert out.signs is not None and out.signs.tolist() == [True, False, True]
    word = Curator(table, ADD, ApproxDP(1, 1e-6)).vote_and_test(majority, 60).word
    assert word == "101"
    assert Curator(table, ADD, ApproxDP(1, 1e-6)).vote_and_test(majority, 10).refused  # ten votes can never be enough


def test_a_learner_that_fails_inside_votes_no():
    def failing(curator):
        raise RuntimeError("secret")

    out = Curator(table_of([[0, 0, 0]], THREE), ADD, ROOMY).vote_for_each(failing, 3, 60)
    assert out.signs is not None and not out.signs.any()


# -- steps in sequence -------------------------------------------------------------------------------------------------


def test_steps_in_sequence_add_up():
    table = table_of(np.zeros((5, 3), dtype=int), THREE)
    curator = Curator(table, ADD, ApproxDP(1, 1e-6))
    inner = curator.in_sequence()
    count, rest = PureDP(Fraction(1, 10)), ApproxDP(Fraction(9, 10), 1e-6)
    inner.measure(Marginals(THREE, [()]), count)
    inner.release_if_stable(CorrelationTest(THREE, [("a", "b")], 0.25), rest)
    with pytest.raises(BudgetError):
        inner.measure(Marginals(THREE, [()]), count)
    with pytest.raises(BudgetError):
        curator.measure(Marginals(THREE, [()]))

    def both(c):
        inside = c.in_sequence()
        first, second = PureDP(Fraction(1, 2)), ApproxDP(Fraction(3, 2), ROOMY.delta)
        return inside.measure(Marginals(THREE, [()]), first), inside.release_if_stable(SpinTest(THREE, 0.25), second)

    for unit in (ADD, REPLACE, PERSON):
        assert not failures(audit_replay(both, THREE, unit, ROOMY, count=40))


def test_refusals_and_errors():
    table = table_of(np.zeros((5, 3), dtype=int), THREE)
    with pytest.raises(BudgetError, match="needs a δ"):
        Curator(table, ADD, ZCDP(0.1)).release_if_stable(SpinTest(THREE, 0.25))
    with pytest.raises(InputError, match="threshold"):
        SpinTest(THREE, 1.5)
    with pytest.raises(InputError, match="two levels"):
        SpinTest(MIXED, 0.5)
    out = Curator(table, ADD, ApproxDP(1, 1e-6)).release_if_stable(SpinTest(THREE, 0.25))
    assert out.refused and out.signs is None and out.word is None
    assert ExactCurator(table).release_if_stable(SpinTest(THREE, 0.25), ROOMY).signs is not None


def test_how_often_a_test_reads_the_rows_is_not_reported(tmp_path):
    """The number of passes may depend on exact levels, and a file reports the progress of each pass."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, 2, 300)
    columns = [first, first ^ (rng.random(300) < 0.1), first ^ (rng.random(300) < 0.1), rng.integers(0, 2, 300)]
    path = tmp_path / "rows.csv"
    lines = [",".join(FOUR.names), *(",".join(str(int(v)) for v in row) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    heard = []
    with listening(lambda *event: heard.append(event)):
        table = open_table(path, FOUR)
        Curator(table, ADD, PureDP(1)).measure(Marginals(FOUR, [("a",)]))
        assert heard  # this table does report
        heard.clear()
        Curator(table, ADD, ApproxDP(1, Fraction(1, 10**6))).release_if_stable(SpinTest(FOUR, 0.2))
    assert heard == []


def test_gradients_at_other_weights_have_the_sensitivity_of_those_weights():
    domain = Domain.of({"x": 2, "y": 2})

    def gradients(v):
        return LinearGradients(lambda m: m, 10.0, domain, "y", {"x": [-1, 1]}, 1, v, 0.1)

    warm = gradients([[1, 0]])
    warm.row_sensitivity("add-remove")
    for v in ([[50, 0]], [[0, 0]]):
        for relation in ("add-remove", "replace-one"):
            assert warm.at(v).row_sensitivity(relation) == gradients(v).row_sensitivity(relation)
