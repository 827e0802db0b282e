"""What can be learned from so many records under such a budget: the bounds put together into an answer for people.

    from discreet.papers.theory import advise
    print(advise(p=64, edge_weight=0.35, epsilon=1, delta=1e-6, n=10_000))

Three kinds of numbers stand side by side and are never mixed: what *every* method needs (lower bounds, proved), what
*ours* needed (calibrated on our own experiments), and what the paper's theorem asks for (order only).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...arguments import check_positive, check_whole
from ...errors import InputError
from . import lower, upper
from .bound import NOTION_NAMES, Bound, Goal, Notion, probability, readable
from .calibration import FEWEST_IF_CROWDED, MEASURED_COLUMNS, Calibration, calibrated, family_factor
from .composition import rho_within

GOALS: tuple[Goal, ...] = ("graph", "parameters")
NEIGHBOURS = 3  # edges a column that the default width allows for
EXPECTED = "Theorem 5.1 is about methods whose largest error is at most α in expectation, not with probability 2/3."
VERDICTS = {
    "impossible": "no: fewer than every method needs",
    "yes": "yes, by our experiments",
    "borderline": "perhaps: near what ours needed",
    "unlikely": "not with our methods",
}


@dataclass(frozen=True)
class Question:
    """What was asked, with defaults filled in."""

    p: int
    edge_weight: float
    width: float
    k: int
    t: int
    alpha: float
    epsilon: float | None
    delta: float | None
    rho: float | None
    n: int | None
    width_is_assumed: bool

    def notions(self) -> tuple[Notion, ...]:
        given: list[Notion] = ["none"]
        if self.delta is not None:
            given.append("approx")
        if self.rho is not None:
            given.append("zcdp")
        if self.epsilon is not None:
            given.append("pure")
        return tuple(given)

    def budget(self, notion: Notion) -> str:
        if notion == "approx":
            return f"(ε, δ) = ({self.epsilon:g}, {self.delta:g})"
        if notion == "zcdp":
            return f"zCDP, ρ = {self.rho:.3g}"
        return f"pure, ε = {self.epsilon:g}" if notion == "pure" else NOTION_NAMES["none"]


@dataclass(frozen=True)
class Answer:
    """One goal under one notion: what every method needs, what ours needed, what the theorem asks, and a verdict."""

    goal: Goal
    notion: Notion
    budget: str
    lower: Bound
    ours: Bound
    paper: Bound | None
    method: str
    verdict: str | None

    def to_dict(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"goal": self.goal, "notion": self.notion, "budget": self.budget, "method": self.method}
        entry |= {"every_method_needs": self.lower.to_dict(), "ours_needs": self.ours.to_dict()}
        entry["paper"] = None if self.paper is None else self.paper.to_dict()
        return entry | ({} if self.verdict is None else {"verdict": self.verdict})


@dataclass(frozen=True)
class Advice:
    """The answers for every goal and notion; ``str`` says them in words, ``to_dict`` for scripts."""

    question: Question
    answers: tuple[Answer, ...]
    remarks: tuple[str, ...]

    def answer(self, goal: Goal, notion: Notion) -> Answer:
        for found in self.answers:
            if (found.goal, found.notion) == (goal, notion):
                return found
        known = ", ".join(f"{a.goal} under {a.notion}" for a in self.answers)
        raise InputError(f"no answer for {goal!r} under {notion!r}; there are {known}")

    def headings(self) -> tuple[str, ...]:
        asked = self.question.n
        heads = ("goal", "privacy", "every method needs", "ours needed", "the paper's theorem")
        return (*heads, f"with n = {asked:,}", "method") if asked is not None else (*heads, "method")

    def rows(self) -> list[tuple[str, ...]]:
        """A small table: one row an answer."""
        out = []
        for a in self.answers:
            goal = a.goal if a.goal == "graph" else f"{a.goal} to {self.question.alpha:g}"
            paper = "—" if a.paper is None else readable(a.paper.value)
            cells = (goal, a.budget, readable(a.lower.value), readable(a.ours.value), paper)
            verdict = () if a.verdict is None else (VERDICTS[a.verdict],)
            out.append((*cells, *verdict, a.method))
        return out

    def words(self) -> list[str]:
        """The answers as sentences."""
        sentences = [_sentence(self.question, a) for a in self.answers]
        return [_opening(self.question), *self.summary(), *sentences, *self.remarks]

    def summary(self) -> list[str]:
        """What the given number of records allows, in a sentence for each goal; nothing if no number was given."""
        return [_summary(self, goal) for goal in GOALS] if self.question.n is not None else []

    def to_dict(self) -> dict[str, Any]:
        q = self.question
        asked: dict[str, Any] = {"p": q.p, "edge_weight": q.edge_weight, "width": q.width, "k": q.k, "t": q.t}
        asked |= {"alpha": q.alpha, "epsilon": q.epsilon, "delta": q.delta, "rho": q.rho, "n": q.n}
        return {
            "question": asked,
            "answers": [a.to_dict() for a in self.answers],
            "remarks": list(self.remarks),
        }

    def __str__(self) -> str:
        return "\n".join(self.words())


def advise(
    p: int,
    *,
    edge_weight: float,
    width: float | None = None,
    k: int = 2,
    t: int = 2,
    alpha: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    n: int | None = None,
) -> Advice:
    """How many records each goal needs under each notion of privacy, and what ``n`` of them allow.

    Parameters
    ----------
    p, k, t:
        How many columns, levels a column, and the order of interactions. (k, t) is (2, 2) for an Ising model; k > 2
        with t = 2 a pairwise model; t > 2 with k = 2 a binary field.
    edge_weight:
        η, the least weight of an edge that is to be found.
    width:
        λ, a bound on the weights around a column; three edges of weight η by default.
    alpha:
        How near the parameters should come; by default 0.1, or half the edge weight if that is less.
    epsilon, delta, rho:
        The budget. With (ε, δ), all notions are answered: zCDP at the ρ that (ε, δ) allows, pure DP at ε.
    n:
        How many records there are (publicly known or guessed; it is compared, never kept).
    """
    question = _checked(p, edge_weight, width, k, t, alpha, epsilon, delta, rho, n)
    answers = tuple(_answer(question, goal, notion) for goal in GOALS for notion in question.notions())
    expected = any(a.lower.item == "Theorem 5.1" for a in answers)
    return Advice(question, answers, _remarks(question) + ((EXPECTED,) if expected else ()))


def _checked(
    p: int,
    edge_weight: float,
    width: float | None,
    k: int,
    t: int,
    alpha: float | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    n: int | None,
) -> Question:
    check_whole(2, p=p, k=k, t=t)
    check_positive(edge_weight=edge_weight)
    if k > 2 and t > 2:
        raise InputError(
            f"the paper has no bounds for both k={k} levels and interactions of order t={t}; one must be 2"
        )
    if t > p:
        raise InputError(f"interactions of order t={t} need at least as many columns, got p={p}")
    reach = NEIGHBOURS * edge_weight if width is None else width
    check_positive(width=reach)
    if reach < edge_weight:
        raise InputError(
            f"the width bounds the sum of weights at a column, so it is at least {edge_weight}, got {width}"
        )
    near = min(0.1, edge_weight / 2) if alpha is None else alpha
    check_positive(alpha=near)
    if epsilon is None and delta is not None:
        raise InputError("delta goes with epsilon: give both, or rho")
    check_positive(or_none=True, epsilon=epsilon, rho=rho)
    if delta is not None and epsilon is not None:
        probability(delta=delta)
        rho = rho_within(epsilon, delta) if rho is None else rho
    if n is not None:
        check_whole(1, n=n)
    return Question(p, edge_weight, reach, k, t, near, epsilon, delta, rho, n, width is None)


# -- the numbers -----------------------------------------------------------------------------------------------------


def _answer(q: Question, goal: Goal, notion: Notion) -> Answer:
    needed, ours = _lower(q, goal, notion), _ours(q, goal, notion)
    verdict = None if q.n is None else _verdict(q.n, needed.value, ours.value)
    return Answer(goal, notion, q.budget(notion), needed, ours, _paper(q, goal, notion), ours.holds, verdict)


def _verdict(n: int, needed: float, ours: float) -> str:
    if n < needed:
        return "impossible"
    if n >= 1.5 * ours:
        return "yes"
    return "borderline" if n >= 0.6 * ours else "unlikely"


def _lower(q: Question, goal: Goal, notion: Notion) -> Bound:
    """The largest of the proved lower bounds that apply: a private method is a method."""
    if goal == "graph":
        found = [lower.graph_without_privacy(q.p, q.edge_weight, k=q.k)]
        if notion == "zcdp":
            assert q.rho is not None
            found.append(lower.theorem_7_1_zcdp(q.p, q.rho))
        if notion == "pure":
            assert q.epsilon is not None
            found.append(lower.theorem_7_1_pure(q.p, q.edge_weight, q.epsilon, k=q.k))
        return max(found, key=lambda b: b.value)
    found = [lower.parameters_without_privacy(q.p, q.alpha, q.width, k=q.k)]
    if notion == "approx":
        assert q.epsilon is not None and q.delta is not None
        if q.width >= lower.FINGERPRINTED and q.k % 2 == 0:  # its instances are among the models in question
            found.append(lower.theorem_5_1(q.p, q.alpha, q.epsilon, q.delta))
    if notion == "zcdp":
        assert q.rho is not None
        found.append(lower.parameters_zcdp(q.p, q.alpha, q.width, q.rho, k=q.k))
    if notion == "pure":
        assert q.epsilon is not None
        found.append(lower.parameters_pure(q.p, q.alpha, q.width, q.epsilon, k=q.k))
    return max(found, key=lambda b: b.value)


def _paper(q: Question, goal: Goal, notion: Notion) -> Bound | None:
    """What the paper's theorem asks for, in order; None where it has none (pure DP, parameters without privacy)."""
    alpha = q.edge_weight / 2 if goal == "graph" else q.alpha
    if notion == "none" and goal == "graph":
        if q.t > 2:
            return upper.theorem_6_4(q.p, q.t, q.width, q.edge_weight)
        return upper.theorem_6_2(q.p, q.k, q.width, q.edge_weight)
    if notion == "approx" and goal == "graph":
        assert q.epsilon is not None and q.delta is not None
        if q.t > 2:
            return upper.theorem_6_5(q.p, q.t, q.width, q.edge_weight, q.epsilon, q.delta)
        return upper.theorem_6_3(q.p, q.k, q.width, q.edge_weight, q.epsilon, q.delta)
    if notion in ("approx", "zcdp"):
        assert q.rho is not None
        if q.t > 2:
            return upper.theorem_4_7(q.p, q.t, q.width, alpha, q.rho)
        if q.k > 2:
            return upper.theorem_3_11(q.p, q.k, q.width, alpha, q.rho)
        return upper.theorem_3_8(q.p, q.width, alpha, q.rho)
    return None


def _ours(q: Question, goal: Goal, notion: Notion) -> Bound:
    """The least of what our methods needed; under (ε, δ) a zCDP method at the ρ it allows is one of them, and a
    stronger notion's method may be used under a weaker one."""
    notions: dict[Notion, tuple[Notion, ...]] = {
        "none": ("none",), "approx": ("approx", "zcdp", "pure"), "zcdp": ("zcdp",), "pure": ("pure",),
    }  # fmt: skip
    crowded = q.p < FEWEST_IF_CROWDED and q.width > 1.5 * q.edge_weight
    methods = [m for other in notions[notion] for m in calibrated(goal, other) if not (crowded and other == "approx")]
    found = [(made, _predicted(q, made)) for made in methods]
    made, value = min(found, key=lambda pair: pair[1])
    item = f"our experiments ({made.settings} settings, fit within a factor {made.worst:.1f})"
    return Bound(item, "", "upper", goal, notion, _formula(made), value, "calibrated", _method(made, q))


def _predicted(q: Question, made: Calibration) -> float:
    budget: dict[str, Any] = {"rho": q.rho, "epsilon": q.epsilon, "delta": q.delta}
    n = made.records(p=q.p, weight=q.edge_weight, width=q.width, alpha=q.alpha, **budget)
    return n * family_factor(made.notion, q.k, q.t)


def _formula(made: Calibration) -> str:
    signal = "tanh²η" if made.goal == "graph" else "((1−tanh²η)α²)"
    text = f"{made.statistical:.2g} ln(p) e^({made.crowding:.2g}(λ−η))/{signal}"
    if made.notion == "none":
        return text
    strength = {"zcdp": "√ρ", "pure": "ε", "approx": "(ε/ln(1/δ))"}[made.notion]
    power = f" p^{made.exponent:.2g}" if made.exponent else ""
    return f"{text} + {made.private:.2g}{power} e^({made.private_crowding:.2g}(λ−η))/(tanh η · {strength})"


def _method(made: Calibration, q: Question) -> str:
    if q.k > 2:
        return made.method.replace("SpinField", "PairwiseField")
    return made.method.replace("SpinField", f"SpinField of order {q.t}") if q.t > 2 else made.method


# -- the words -------------------------------------------------------------------------------------------------------


def _opening(q: Question) -> str:
    levels = "binary columns" if q.k == 2 else f"columns of {q.k} levels"
    order = f", interactions of order up to {q.t}" if q.t > 2 else ""
    assumed = f" (assumed: {NEIGHBOURS} such edges a column)" if q.width_is_assumed else ""
    return f"{q.p:,} {levels}{order}, edges of weight at least {q.edge_weight:g}, width {q.width:.3g}{assumed}."


def _summary(advice: Advice, goal: Goal) -> str:
    q = advice.question
    what = "the graph" if goal == "graph" else f"every parameter to within {q.alpha:g}"
    said = {"yes": "can be learned", "borderline": "may come out right", "unlikely": "is out of reach of our methods",
            "impossible": "is impossible"}  # fmt: skip
    parts = []
    for verdict, words in said.items():
        under = [a.budget for a in advice.answers if a.goal == goal and a.verdict == verdict]
        if under:
            parts.append(f"{words} with {_listed(under)}")
    return f"From {q.n:,} records {what} " + "; ".join(parts) + "."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _sentence(q: Question, a: Answer) -> str:
    goal = "The graph" if a.goal == "graph" else f"Every parameter to within {q.alpha:g}"
    need = f"ours needed about {readable(a.ours.value)} records; every method needs {readable(a.lower.value)}"
    text = f"{goal}, {a.budget}: {need} ({a.lower.item})."
    return text if a.verdict is None else f"{text} With {q.n:,}: {VERDICTS[a.verdict]}."


def _remarks(q: Question) -> tuple[str, ...]:
    out = [
        "What every method needs is proved. What ours needed is fitted to our own experiments on matchings and "
        "3-regular graphs, 9 runs of 10, and not proved. The paper's theorems are orders of growth with their hidden "
        "constants set to one.",
    ]
    low, high = MEASURED_COLUMNS
    outside = []
    if not low <= q.p <= high:
        outside.append(f"p = {q.p:,} (measured {low} to {high})")
    if not 0.2 <= q.edge_weight <= 0.6:
        outside.append(f"the edge weight {q.edge_weight:g} (measured 0.25 to 0.5)")
    if q.width > 1.5:
        outside.append(f"the width {q.width:.3g} (measured up to 1.05)")
    if q.k > 5 or q.t > 3:
        outside.append(f"k = {q.k}, t = {q.t} (measured k ≤ 5, t ≤ 3)")
    if outside:
        out.append("Extrapolated, so take it with care: " + "; ".join(outside) + ".")
    if q.width > 1.5 * q.edge_weight:
        out.append(
            "Graphs with loops need two to three times as many records as matchings with the same weights (measured on "
            "3-regular graphs and grids), which the width accounts for; more where short loops have opposite signs."
        )
    if q.delta is not None and q.n is not None and q.delta * q.n > 0.1:
        out.append(f"δ = {q.delta:g} is large for {q.n:,} records: take it well below 1/n, or it protects few of them.")
    if math.isinf(upper.theorem_3_8(q.p, q.width, q.alpha, 1.0).value):
        out.append("The width is so large that the paper's bounds are beyond all numbers.")
    return tuple(out)
