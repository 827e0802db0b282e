"""What comes out of every call of the gateway has the law that its guarantee was computed for.

The formulas here are written down from the definitions, on two or three candidates, and share no code with the library
or its audits. Draws of the real gateway are compared with them by χ²; what a curator makes of the gateway's calls is
compared exactly, by going through everything that it can release.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.audit import output_law
from discreet.audit.transcripts import RecordingGateway, Transcript
from discreet.domain import Domain
from discreet.privacy.accounting import Cost
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.calibration import plan_selection, plan_threshold
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.levels import Released
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.query import GroupedScore, LargestSum, Marginals
from discreet.privacy.selection import Selection
from discreet.privacy.stability import StabilityTest, plan_stability
from discreet.privacy.unit import PrivacyUnit, Sensitivity
from discreet.progress import listening
from discreet.tables.memory import MemoryTable

GATEWAY = SecureGateway()
ONE = Sensitivity(1, 1, 1, 1)
DRAWS = 1_500
REJECT = 1e-6
THREE = Domain.of({"a": 3})


def table(*counts: int) -> MemoryTable:
    return MemoryTable(THREE, [np.repeat(np.arange(3), counts).astype(np.uint8)], threads=1)


def laplace(scale: float, reach: int = 60) -> dict[int, float]:
    """P(noise = z) = (1 − q)/(1 + q)·q^|z| with q = e^{−1/b}."""
    q = math.exp(-1 / scale)
    return {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach + 1)}


def agrees(outcomes: list[Any], law: dict[Any, float]) -> bool:
    """χ² of what was drawn against a law; rare outcomes are taken together."""
    seen = Counter(outcomes)
    if any(law.get(x, 0.0) <= 0.0 for x in seen):
        return False
    usual = [x for x, p in law.items() if p * len(outcomes) >= 8]
    chance = [law[x] for x in usual]
    rare = len(outcomes) - sum(seen[x] for x in usual)
    if stats.binomtest(rare, len(outcomes), min(1.0, max(0.0, 1 - sum(chance)))).pvalue < REJECT:
        return False
    expected = np.array(chance) / sum(chance) * (len(outcomes) - rare)
    return bool(len(usual) < 2 or stats.chisquare([seen[x] for x in usual], expected).pvalue > REJECT)


# -- noise on sums -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_large_tables_have_noise_of_their_own_in_every_cell(kind: Any) -> None:
    """Also where they are drawn in several pieces: no piece repeats another's."""
    noise = GATEWAY.add_noise(NoiseCall(kind, 50.0, ONE), np.zeros(50_000, dtype=np.int64)).astype(np.float64)
    for shift in (1, 2, 1 << 12, 1 << 13, 1 << 14, 1 << 15):
        assert abs(np.corrcoef(noise[shift:], noise[:-shift])[0, 1]) < 6 / math.sqrt(len(noise) - shift), shift


# -- selection ---------------------------------------------------------------------------------------------------------


def noisy_max(scores: tuple[int, ...], scale: float) -> dict[int, float]:
    """Every candidate has noise of its own; the first of the largest wins."""
    law = dict.fromkeys(range(len(scores)), 0.0)
    noise = laplace(scale, 30 if len(scores) == 2 else 14)
    for zs in itertools.product(noise, repeat=len(scores)):
        noisy = [s + z for s, z in zip(scores, zs, strict=True)]
        law[noisy.index(max(noisy))] += math.prod(noise[z] for z in zs)
    return {i: p / sum(law.values()) for i, p in law.items()}


def permute_and_flip(scores: tuple[int, ...], scale: float) -> dict[int, float]:
    law = dict.fromkeys(range(len(scores)), 0.0)
    for order in itertools.permutations(range(len(scores))):
        alive = 1.0
        for i in order:
            heads = math.exp((scores[i] - max(scores)) / scale)
            law[i] += alive * heads / math.factorial(len(scores))
            alive *= 1 - heads
    return law


def exponential(scores: tuple[int, ...], scale: float) -> dict[int, float]:
    weight = [math.exp((s - max(scores)) / scale) for s in scores]
    return {i: w / sum(weight) for i, w in enumerate(weight)}


SELECTIONS = {"noisy-max": noisy_max, "permute-and-flip": permute_and_flip, "exponential": exponential}


@pytest.mark.parametrize("scores", [(1, -1), (0, 0), (3, 1), (1, 0, -1), (2, -2, 2)])
@pytest.mark.parametrize("kind", SELECTIONS)
def test_a_choice_among_two_or_three(kind: Any, scores: tuple[int, ...]) -> None:
    """The two signs of a vertex (s, −s) among them: each has noise of its own."""
    call = NoiseCall(kind, 1.5, ONE)
    drawn = [GATEWAY.select(call, np.array(scores)) for _ in range(DRAWS)]
    assert agrees(drawn, SELECTIONS[kind](scores, 1.5))
    assert not agrees(drawn, SELECTIONS[kind](tuple(4 * s + i for i, s in enumerate(scores)), 1.5))


def in_order(*selections: Selection) -> str:
    return " ".join("".join(map(str, s.indices)) for s in selections)


def chosen_in(outcome: Any) -> list[tuple[int, ...]]:
    """Back from the words above, as an audit keeps them."""
    return [tuple(map(int, word)) for word in outcome[1].strip("'").split()]


@pytest.mark.parametrize("counts", [(5, 4, 3), (0, 0, 2)])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("budget", [PureDP(3), ZCDP("0.4")], ids=str)
def test_the_best_k_one_after_the_other(counts: tuple[int, ...], k: int, budget: Budget) -> None:
    """Also when k is all of them: then the order is the answer, and it is as noisy."""
    if isinstance(budget, PureDP):
        scale, one = 2 / (float(budget.epsilon) / k), permute_and_flip
    else:
        scale, one = 1 / math.sqrt(2 * float(budget.rho) / k), exponential  # type: ignore[attr-defined]
    expected: dict[tuple[int, ...], float] = {}
    for order in itertools.permutations(range(3), k):
        left, p = list(range(3)), 1.0
        for i in order:
            p *= one(tuple(counts[j] for j in left), scale)[left.index(i)]
            left.remove(i)
        expected[order] = p
    score = LargestSum(Marginals(THREE, [("a",)]))
    law = output_law(lambda c: in_order(c.select(score, k=k)), table(*counts), PrivacyUnit(), budget)
    seen = {chosen_in(outcome)[0]: p for outcome, p in law.items() if p > 0}
    assert seen.keys() == {order for order, p in expected.items() if p > 0}
    assert all(seen[order] == pytest.approx(expected[order], rel=1e-6) for order in seen)


class TwoGroups(GroupedScore):
    """The three levels twice, as two groups; a unit may move both by all of it, or (``half``) each by half."""

    def __init__(self, joint: tuple[int, int], linfs: tuple[int, int] = (1, 3)) -> None:
        self.query = Marginals(THREE, [("a",)])
        self._joint, self._linfs = joint, linfs

    groups = (3, 3)
    candidates = tuple("abcdef")

    def scores(self, sums: Any) -> Any:
        return np.concatenate([sums[0], 3 * sums[0]])

    def linfs(self, unit: PrivacyUnit) -> tuple[int, ...]:
        return self._linfs

    def joint(self, unit: PrivacyUnit) -> tuple[Fraction, Fraction]:
        return Fraction(self._joint[0]), Fraction(self._joint[1])


def calls_of(ask: Any, budget: Budget, rows: MemoryTable | None = None, unit: PrivacyUnit | None = None) -> list[Any]:
    """What a curator asks of the gateway."""
    seen = Transcript()
    with Ledger.in_memory(budget) as ledger:
        ask(Curator(rows or table(5, 4, 3), unit, budget, ledger, gateway=RecordingGateway(seen, ledger)))
    return [r.call for r in seen.calls if r.call is not None]


def epsilon_of(rho: float) -> float:
    """ε with ε·tanh(ε/2) = ρ."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= rho else (low, middle)
    return low


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("joint", [(2, 2), (4, 3), (4, 1)])
def test_the_noise_of_many_choices_at_once(joint: tuple[int, int], k: int) -> None:
    """ε adds up by the changes themselves, and only the exponential mechanism's ρ by their squares."""
    linear, squared = joint
    score = TwoGroups(joint)
    expected = {
        ("pure", "auto"): (PureDP(2), [2 * d * k * linear / 2 for d in (1, 3)]),
        ("pure", "laplace"): (PureDP(2), [2 * d * k * linear / 2 for d in (1, 3)]),
        ("zcdp", "auto"): (ZCDP("0.5"), [d / math.sqrt(2 * 0.5 / (k * squared)) for d in (1, 3)]),
        ("zcdp", "laplace"): (ZCDP("0.5"), [2 * d / epsilon_of(0.5 / (k * linear)) for d in (1, 3)]),
    }
    for (_, mechanism), (budget, scales) in expected.items():
        calls = calls_of(lambda c, m=mechanism: c.select_each(score, k=k, mechanism=m), budget)
        assert [c.scale for c in calls] == pytest.approx(np.repeat(scales, k).tolist(), rel=1e-6), (budget, mechanism)
        kind = "noisy-max" if mechanism == "laplace" else "permute-and-flip" if "pure" in str(budget) else "exponential"
        assert {c.kind for c in calls} == {kind}
    rho = float(ApproxDP(1, 1e-6).to_zcdp().rho)
    calls = calls_of(lambda c: c.select_each(score, k=k), ApproxDP(1, 1e-6))
    assert calls[0].scale == pytest.approx(1 / math.sqrt(2 * rho / (k * squared)), rel=1e-6)


def test_choices_at_once_are_drawn_one_by_one() -> None:
    """Exactly: two groups of three, all orders of each."""
    score = TwoGroups((2, 2))
    law = output_law(lambda c: in_order(*c.select_each(score, k=3)), table(2, 1, 0), PrivacyUnit(), PureDP(6))
    scales = [2 * d * 3 * 2 / 6 for d in (1, 3)]
    for outcome, p in law.items():
        expected = 1.0
        for group, scale, times in zip(chosen_in(outcome), scales, (1, 3), strict=True):
            left = [0, 1, 2]
            for i in group:
                scores = tuple(times * (2 - j) for j in left)
                expected *= permute_and_flip(scores, scale)[left.index(i)]
                left.remove(i)
        assert p == pytest.approx(expected, rel=1e-6)
    assert len(law) == 36


BOOKED: dict[str, Callable[[], tuple[NoiseCall, Cost]]] = {
    "permute-and-flip": lambda: plan_selection(3, PureDP("0.7")),
    "exponential": lambda: plan_selection(3, ZCDP("0.2")),
    "noisy-max": lambda: plan_selection(3, PureDP("0.7"), "laplace"),
    "threshold": lambda: plan_threshold(Sensitivity(2, 2, 1, 2), ApproxDP("0.7", "0.01")),
    "stability": lambda: plan_stability(ApproxDP("0.7", "0.01")),
}


@pytest.mark.parametrize("kind", BOOKED)
def test_what_is_booked_is_what_the_law_costs(kind: str) -> None:
    """From the scale that is used, by the theorems: ε = 2Δ/b of a choice, its ρ at least Δ²/(2b²); δ by the tail."""
    call, cost = BOOKED[kind]()
    assert call.kind == kind
    b = Fraction(call.scale)
    assert cost.epsilon is not None and cost.rho is not None
    if kind in SELECTIONS:
        epsilon = 2 * Fraction(3) / b
        assert cost.epsilon >= epsilon and cost.epsilon_delta == cost.rho_delta == 0
        least = Fraction(9) / (2 * b**2) if kind == "exponential" else epsilon * Fraction(math.tanh(float(epsilon) / 2))
        assert cost.rho >= least * (1 - Fraction(1, 10**12))
    else:
        assert cost.epsilon >= call.sensitivity.l1 / b
        assert cost.epsilon_delta == cost.rho_delta == Fraction("0.01")
        assert cost.rho >= cost.epsilon * Fraction(math.tanh(float(cost.epsilon) / 2)) * (1 - Fraction(1, 10**12))


# -- large counts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3, 6), (0, 5)])
def test_only_what_is_above_the_threshold_comes_out_and_with_its_noise(counts: tuple[int, int]) -> None:
    scale, threshold = 2.0, 4
    call = NoiseCall("threshold", scale, ONE, threshold)
    noise = laplace(scale)
    law: dict[Any, float] = {}
    for zs in itertools.product(noise, repeat=2):
        shown = tuple((k, c + z) for k, c, z in zip("xy", counts, zs, strict=True) if c + z > threshold)
        law[shown] = law.get(shown, 0.0) + noise[zs[0]] * noise[zs[1]]
    given = dict(zip("xy", counts, strict=True))
    drawn = [tuple(sorted(GATEWAY.release_large(call, given).items())) for _ in range(DRAWS)]
    assert agrees(drawn, law)
    assert all(n > threshold for outcome in drawn for _, n in outcome)


def test_only_what_is_above_a_gaussian_threshold_comes_out() -> None:
    scale, threshold = 3.0, 4
    weight = {z: math.exp(-(z**2) / (2 * scale**2)) for z in range(-60, 61)}
    noise = {z: w / sum(weight.values()) for z, w in weight.items()}
    law: dict[Any, float] = {}
    for z, p in noise.items():
        shown = 5 + z if 5 + z > threshold else None
        law[shown] = law.get(shown, 0.0) + p
    call = NoiseCall("gaussian-threshold", scale, ONE, threshold, Fraction(1, 10))
    assert agrees([GATEWAY.release_large(call, {"x": 5}).get("x") for _ in range(DRAWS)], law)


def test_cells_without_records_are_not_drawn_for() -> None:
    """A threshold protects keys of one unit; keys of nobody must not come out at all."""
    released = Counter(
        key for _ in range(200) for key in Curator(table(40, 0, 0), PrivacyUnit(), ApproxDP(1, 0.4)).large_cells(["a"])
    )
    assert set(released) == {(THREE["a"].labels[0],)}


@pytest.mark.parametrize("sensitivity", [ONE, Sensitivity(2, 2, 1, 2), Sensitivity(6, 12, 3, 4)])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.05", "0.4"), ("1", "1e-6"), ("3", "0.01"), ("0.01", "0.02")])
def test_thresholds_meet_what_their_proof_asks(sensitivity: Sensitivity, epsilon: str, delta: str) -> None:
    """p = P(noise > τ − Δ∞): at most δ/Δ₀, so that no key shows, and 1 − e^{−1/b}, so that silence tells little."""
    call, _ = plan_threshold(sensitivity, ApproxDP(epsilon, delta))
    q = math.exp(-1 / call.scale)

    def above(t: int) -> float:
        return sum(p for z, p in laplace(call.scale, 40 * math.ceil(call.scale)).items() if z > t - sensitivity.linf)

    assert call.threshold is not None
    most = min(float(delta) / sensitivity.l0, 1 - q)
    assert above(call.threshold) <= most
    assert above(call.threshold - 1) > most or call.threshold == sensitivity.linf  # and no higher than it must be


def test_how_many_keys_there_are_is_not_told_while_noise_is_drawn() -> None:
    said: list[Any] = []
    with listening(lambda *told: said.append(told)):
        GATEWAY.release_large(NoiseCall("threshold", 1.0, ONE, 100), {str(i): 1 for i in range(40_000)})
    assert said == []


# -- tests of stability ------------------------------------------------------------------------------------------------


class Fixed(StabilityTest):
    """Levels that no record moves: what comes out is noise and nothing else."""

    def __init__(self, *levels: int) -> None:
        self._levels = np.array(levels, dtype=np.int64)

    @property
    def attributes(self) -> Any:
        return THREE.attributes

    def levels(self, ask: Any, unit: PrivacyUnit) -> Any:
        return self._levels


@pytest.mark.parametrize("levels", [(0, -1), (5, 4, -3), (9, 12), (-8, 7)])
def test_a_test_of_stability_shows_its_noisy_distance_and_signs_above_the_threshold(levels: tuple[int, ...]) -> None:
    epsilon, delta = 0.5, 0.05
    scale = 1 / epsilon
    q = math.exp(-epsilon)
    threshold = next(t for t in itertools.count() if q ** (t + 1) / (1 + q) <= delta)
    distance = min(x if x >= 0 else -x - 1 for x in levels)
    signs = tuple(x >= 0 for x in levels)
    law = {(distance + z, signs if distance + z > threshold else None): p for z, p in laplace(scale, 80).items()}
    call = calls_of(lambda c: c.release_if_stable(Fixed(*levels)), ApproxDP("0.5", "0.05"))[0]
    assert (call.scale, call.threshold) == (scale, threshold)
    drawn = []
    for _ in range(DRAWS):
        out = GATEWAY.release_stable(call, np.array(levels), "")
        drawn.append((out.noisy_distance, None if out.signs is None else tuple(out.signs.tolist())))
    assert agrees(drawn, law)
    refused = {d for d, s in drawn if s is None}
    assert not refused or max(refused) <= threshold
    assert len({d for d, _ in drawn}) > 5


def test_a_refusal_holds_nothing_but_the_noisy_distance() -> None:
    call = NoiseCall("stability", 1.0, ONE, 2**61)
    out = GATEWAY.release_stable(call, np.array([7, 9]), "the word")
    assert vars(out).keys() == {"noisy_distance", "signs", "word"}
    assert out.signs is None and out.word is None
    seen = {GATEWAY.release_stable(call, np.array([7, 9]), "").noisy_distance for _ in range(60)}
    assert len(seen) > 3, "the exact distance came out"
    assert isinstance(out, Released)


# -- votes -------------------------------------------------------------------------------------------------------------


class Blocks(MemoryTable):
    """Goes into blocks of one record each, so that every block's vote is known."""

    def split(self, blocks: int, key: bytes) -> Any:
        return tuple(self._take(np.array([i])) for i in range(blocks))


def voters(*counts: int) -> Blocks:
    return Blocks(THREE, [np.repeat(np.arange(3), counts).astype(np.uint8)], threads=1)


def first_level(block: Curator) -> str:
    return "xyz"[int(np.argmax(block.measure(Marginals(THREE, [("a",)]))[0].counts))]


def _plain_blocks(curator: Curator) -> Curator:
    curator._prepared = curator._source
    return curator


def test_what_votes_ask_of_the_gateway() -> None:
    """Counts of candidates; a histogram of words; the lead of the first; the majority's margin for each question."""
    rows = voters(5, 3, 1)
    seen = Transcript()
    budget = ApproxDP(8, 0.1)
    with Ledger.in_memory(budget) as ledger:
        gateway = RecordingGateway(seen, ledger)

        def fresh() -> Curator:
            return _plain_blocks(Curator(rows, PrivacyUnit(), budget, gateway=gateway))

        fresh().vote(first_level, 9, candidates=["z", "x", "y"])
        fresh().vote(first_level, 9)
        fresh().vote_and_test(first_level, 9)
        fresh().vote_for_each(lambda b: {"x": "10", "y": "11", "z": "00"}[first_level(b)], 2, 9)
    selected, histogram, lead, each = (r for r in seen.calls if r.call is not None)
    assert selected.values.tolist() == [1, 5, 3]
    assert histogram.values == {"x": 5, "y": 3, "z": 1}
    assert (lead.values[0].tolist(), lead.values[1]) == ([(5 - 3 - 1) // 2], "x")
    assert each.values[0].tolist() == [(2 * 8 - 9 - 1) // 2, (2 * 3 - 9 - 1) // 2]
    # One block's vote goes from one word to another: two counts move by one each.
    assert histogram.call.sensitivity == Sensitivity(2, 2, 1, 2)
    assert histogram.call.scale == pytest.approx(2 / 8)
    assert selected.call.sensitivity.linf == 1


@pytest.mark.parametrize("blocks", [3, 4, 9, 10])
def test_one_vote_moves_every_level_by_one_at_most(blocks: int) -> None:
    """All splits of votes, and all that one vote more or less can make of them; a sign changes at distance 0 alone."""
    for yes in range(blocks):
        old, new = ((2 * v - blocks - 1) // 2 for v in (yes, yes + 1))
        assert new - old <= 1
    asked = {}
    for yes in range(blocks + 1):
        rows = voters(yes, blocks - yes, 0)
        seen = Transcript()
        with Ledger.in_memory(ApproxDP(1, 0.1)) as ledger:
            curator = Curator(rows, PrivacyUnit(), ApproxDP(1, 0.1), gateway=RecordingGateway(seen, ledger))
            _plain_blocks(curator).vote_for_each(lambda b: "1" if first_level(b) == "x" else "0", 1, blocks)
        asked[yes] = int(seen.calls[-1].values[0][0])
        assert (asked[yes] >= 0) == (2 * yes > blocks)
    assert all(abs(asked[v + 1] - asked[v]) <= 1 for v in range(blocks))


def test_the_lead_and_its_word_change_together() -> None:
    """All divisions of seven votes among three words, and all that one vote changed can make of them."""
    found = {}
    for a, b in itertools.product(range(8), repeat=2):
        if a + b > 7:
            continue
        seen = Transcript()
        budget = ApproxDP(1, 0.1)
        with Ledger.in_memory(budget) as ledger:
            gateway = RecordingGateway(seen, ledger)
            curator = Curator(voters(a, b, 7 - a - b), PrivacyUnit(), budget, gateway=gateway)
            _plain_blocks(curator).vote_and_test(first_level, 7)
        levels, word = seen.calls[-1].values
        found[a, b, 7 - a - b] = (int(levels[0]), word)
    for one, other in itertools.product(found, repeat=2):
        if sum(abs(x - y) for x, y in zip(one, other, strict=True)) == 2:
            (level, word), (again, same) = found[one], found[other]
            assert abs(level - again) <= 1
            assert word == same or level == again == 0


def test_the_largest_of_groups_is_their_largest() -> None:
    assert TwoGroups((2, 2), (5, 3)).linf(PrivacyUnit()) == TwoGroups((2, 2), (3, 5)).linf(PrivacyUnit()) == 5
