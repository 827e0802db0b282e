"""± where levels were taken together, where hardly any record is behind an answer, and where bins are all there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from discreet import ApproxDP, Curator, Domain, Release, encode
from discreet.domain import Attribute
from discreet.language import Resolved, parse
from discreet.language import resolve as meaning
from discreet.models import GroupedField, MarkovRandomField
from discreet.privacy.curator import ExactCurator
from discreet.privacy.query import Marginals
from discreet.release.interval import Interval, Survival
from discreet.release.left_open import by_whole_bins
from discreet.release.research import ResearchGateway
from discreet.release.together import Together
from discreet.release.uncertainty import NoiseIntervals
from discreet.release.within import variance_within
from discreet.spec import resolve


class Seeded(ResearchGateway):
    """Noise that is the same in every run, for releases of invented records."""

    origin = "release"


def _town_and_kind(seed: int, records: int = 2000):
    rng = np.random.default_rng(seed)
    behind = rng.integers(0, 3, records)
    p = rng.dirichlet(np.ones(20)) * np.exp(rng.normal(0, 0.7, (3, 20)))
    p /= p.sum(1, keepdims=True)
    town = (p[behind].cumsum(1) < rng.random(records)[:, None]).sum(1).clip(0, 19)
    kind = np.where(rng.random(records) < 0.7, behind, rng.integers(0, 3, records))
    domain = Domain.of({"town": [f"t{i}" for i in range(20)], "kind": 3})
    table = encode({"town": [f"t{i}" for i in town], "kind": kind}, domain)
    with Curator(table, budget=ApproxDP(1, "1e-6"), gateway=Seeded(seed)) as curator:
        return table, Release.of(resolve(domain).learn(curator))


def _ask(intervals: NoiseIntervals, text: str) -> Interval:
    found = intervals.ask(text)
    assert not isinstance(found, Survival)
    return found


def test_levels_that_were_taken_together_are_covered_as_others_are() -> None:
    """Without room for that, cells of both columns had .64 and conditional ones .64 (columns .88; nominal .9)."""
    hits: dict[str, list[np.ndarray]] = {"town": [], "both": [], "given": []}
    for seed in range(16):
        table, release = _town_and_kind(seed)
        model, domain = release.model, release.model.domain
        if not isinstance(model, GroupedField):
            continue
        codes = np.asarray(model.groups["town"].codes)
        shared = np.bincount(codes)[codes] > 1
        (counts,) = ExactCurator(table).measure(Marginals(domain, [("town", "kind")]))
        both = counts.values / counts.values.sum()
        intervals = release.intervals(draws=15)
        often = shared & (both.sum(1) > 0.03)
        given = _ask(intervals, "P(kind | town)")
        hits["town"].append(intervals.marginal("town").covers(both.sum(1))[shared])
        hits["both"].append(intervals.marginal(("town", "kind")).covers(both)[shared].reshape(-1))
        hits["given"].append(given.covers(both / np.maximum(both.sum(1, keepdims=True), 1e-9))[often].reshape(-1))
        assert "levels of town with few records were taken together" in given.note
        assert "± makes room for as much as groups differ" in given.note
        common = domain["town"].labels[int(np.argmax(model.marginal("town").probabilities * shared))]
        assert "the answer does not allow for it" in intervals.map("kind", {"town": common}).note
        assert "taken together" not in _ask(intervals, "P(town)").note
    covered = {name: np.concatenate(own).mean() for name, own in hits.items()}
    assert len(hits["town"]) > 10
    assert min(covered.values()) > 0.83, covered


def test_a_level_alone_in_its_group_has_no_more_scatter_and_no_words() -> None:
    _, release = _town_and_kind(0)
    model = release.model
    assert isinstance(model, GroupedField)
    codes = np.asarray(model.groups["town"].codes)
    alone = np.bincount(codes)[codes] == 1
    assert alone.any()
    joint = model.marginal(("town", "kind")).probabilities
    variance = variance_within(model, 2000, joint, ("town", "kind"), {})
    assert (variance[alone] == 0).all() and (variance[~alone][joint[~alone] > 0] > 0).all()
    held = [f"t{i}" for i in range(20)]
    own = joint.sum(1)
    first, second = (int(np.argmax(np.where(which, own, 0))) for which in (alone, ~alone))
    for level in (first, second):
        fixed = variance_within(model, 2000, joint[level], ("kind",), {"town": held[level]})
        np.testing.assert_allclose(fixed, variance[level], atol=1e-12)
    intervals = release.intervals(draws=2)
    event = _ask(intervals, f"P(kind=1 | town={held[second]})")
    assert float(event.half_width) == pytest.approx(_ask(intervals, f"P(kind | town={held[second]})").half_width[1])
    assert "taken together" not in _ask(intervals, f"P(kind | town={held[first]})").note
    assert "taken together" in _ask(intervals, f"P(kind | town={held[second]})").note


def parsed(text: str, domain: Domain) -> Resolved:
    return meaning(parse(text), domain)


def _claims() -> NoiseIntervals:
    """An amount in a single bin that three of 5,000 records have; whole years in bins of ten."""
    domain = Domain(
        (
            Attribute.numeric("amount", [0, 10_000], decimals=2, missing="missing"),
            Attribute.numeric("age", [0, 10, 20, 30], integer=True),
            Attribute.categorical("reason", ["often", "seldom"]),
        )
    )
    tables = {
        ("amount",): np.log([0.0006, 0.9994]),
        ("age",): np.log([0.3, 0.5, 0.2]),
        ("reason",): np.log([0.999, 0.001]),
    }
    model = MarkovRandomField(domain, tables)
    together = Together((frozenset(domain.names),))
    return NoiseIntervals(model, model, (model, model), 0.9, None, 5000.0, 50.0, together)


@pytest.mark.parametrize("condition", ["", " | reason", " | reason=often"])
def test_a_number_of_hardly_any_record_is_as_open_as_its_bins(condition: str) -> None:
    mean = _ask(_claims(), f"E(amount{condition})")
    assert (mean.lower == 0).all() and (mean.upper == 10_000).all()
    assert {half for _, half in mean.texts()} == {"5,000"}
    assert "hardly any record with a known amount" in mean.note or "3 records have" in mean.note
    assert float(np.max(_ask(_claims(), f"QUANTILE(amount, 0.5{condition})").upper)) == pytest.approx(10_000)
    deviation = _ask(_claims(), f"SD(amount{condition})")
    assert (deviation.lower == 0).all() and (deviation.upper == 5000).all()


def test_rows_of_a_condition_that_hardly_any_record_meets_are_noted() -> None:
    assert "1 of 2 rows says something of hardly any record (one of some 5)" in _ask(_claims(), "P(age | reason)").note
    assert "only some 5 records have" in _ask(_claims(), "P(age | reason=seldom)").note
    louder = replace(_claims(), deviation=1600.0)
    assert "noise hides 1,600 in a cell" in _ask(louder, "P(age | reason=seldom)").note
    assert not _ask(_claims(), "P(age | reason=often)").note and not _ask(_claims(), "P(age)").note


def test_whole_numbers_are_shown_whole_and_what_bins_leave_open_is_said() -> None:
    quantile = _ask(_claims(), "QUANTILE(age, 0.5)")
    assert quantile.texts() == [("14", "0")]
    assert quantile.answer is not None and "anything from 10 to 19, which ± does not cover" in quantile.answer.remark
    mean = _ask(_claims(), "E(age)")
    assert mean.answer is not None and "anything from 9.0 to 18.2, which" in mean.answer.remark
    part = Interval(np.array(87.0), np.array(85.9), np.array(88.1), 0.9, places=0)
    assert part.texts() == [("87", "2")]
    exact = _ask(_claims(), "QUANTILE(age, 0.5 | 12 <= age < 13)")
    assert exact.texts() == [("12", "0")] and exact.answer is not None and "bins" not in exact.answer.remark


def _found() -> NoiseIntervals:
    """Numbers of a range that was found, and hardly any noise."""
    domain = Domain(
        (
            Attribute.numeric("pay", [8192, 16384, 65536, 131072], found=frozenset({"edges", "range"})),
            Attribute.numeric("rent", [0, 14000, 20000], other="other"),
            Attribute.categorical("sex", ["F", "M"]),
        )
    )
    joint = np.array([[0.05, 0.1], [0.4, 0.2], [0.05, 0.2]])
    tables = {("pay", "sex"): np.log(joint), ("rent",): np.log([0.05, 0.9, 0.05])}
    model = MarkovRandomField(domain, tables)
    return NoiseIntervals(model, model, (model, model), 0.9)


@pytest.mark.parametrize(
    ("question", "words", "without"),
    [
        ("P(rent < 1000)", "rent < 1000 goes through [0, 14000): it may be anything from 0.000 to 0.050, which ±", ""),
        ("P(rent < 14000)", "", "goes through"),
        ("P(sex | pay < 20000)", "goes through [16384, 65536): a row's may be anything from 0.14 to 0.82", ""),
        ("P(sex=F, rent < 14000 | pay < 16384)", "", "anything"),
        ("P(pay < 200000)", "[65536, 131072], where numbers beyond 8192 to 131072 count: it may be anything", ""),
        ("E(pay)", "numbers beyond 8192 to 131072 count in the end bins; the mean leaves their size out", "anything"),
        ("E(pay | sex)", "the mean leaves their size out", "anything"),
        ("SD(pay)", "the deviation leaves their size out", "anything"),
        ("E(pay | 20000 <= pay < 60000)", "anything from 20,000 to 60,000", "leaves"),
        ("QUANTILE(pay, 0.9)", "so that it may be 65536 or more, which ± does not cover", "anything"),
        ("QUANTILE(pay, 0.1)", "so that it may be 16384 or less, which", "anything"),
        ("QUANTILE(pay, 0.5)", "it may be anything from 16,400 to 65,500", "beyond"),
        ("E(rent)", "it may be anything from 13,260 to 19,680, which ± does not cover", "if any"),
    ],
)
def test_what_bins_leave_open(question: str, words: str, without: str) -> None:
    answer = _ask(_found(), question).answer
    assert answer is not None and words in answer.remark, answer.remark
    assert not without or without not in answer.remark


def test_what_whole_bins_leave_of_a_probability() -> None:
    """P(F | pay < 20000) lies between those of all that may be meant and all that may not: counted out by hand."""
    model = _found().model
    low, high = by_whole_bins(model, parsed("P(sex | pay < 20000)", model.domain))
    assert low == pytest.approx([0.05 / (0.05 + 0.1 + 0.2), 0.1 / (0.1 + 0.05 + 0.4)])
    assert high == pytest.approx(1 - low[::-1])
    low, high = by_whole_bins(model, parsed("P(pay < 20000 | sex)", model.domain))
    assert low == pytest.approx([0.05 / 0.5, 0.1 / 0.5]) and high == pytest.approx([0.45 / 0.5, 0.3 / 0.5])
    low, high = by_whole_bins(model, parsed("P(pay < 70000, sex=F | pay >= 20000, rent < 14000)", model.domain))
    assert (float(low), float(high)) == (0, pytest.approx(0.45 / (0.45 + 0.2)))
    text = parsed("P(pay=20000 | pay < 70000)", model.domain)
    assert [float(x) for x in by_whole_bins(model, text)] == pytest.approx([0.6 / 1.0, 0.6 / 0.75])


def test_large_numbers_are_rounded_to_the_second_digit_of_their_noise() -> None:
    def texts(x: float, half: float) -> tuple[str, str]:
        return Interval(np.array(x), np.array(x - half), np.array(x + half), 0.9).texts()[0]

    assert texts(38698.85, 554.17) == ("38,700", "550")
    assert texts(45.31, 1.21) == ("45.3", "1.2")
    assert texts(0.12345, 0.0123) == ("0.123", "0.012")
    assert texts(-0.4, 12.0) == ("0", "12")


def test_a_column_that_is_asked_about_may_be_given_in_part() -> None:
    """Levels that the condition leaves out have no ±; the others have that of the answer without them."""
    _, release = _town_and_kind(1)
    intervals = release.intervals(draws=2)
    some = _ask(intervals, "P(town | town in {t0, t1, t2}, kind=1)")
    assert (some.half_width[:3] > 0).all() and not some.upper[3:].any() and not some.lower[3:].any()
    assert float(some.estimate.sum()) == pytest.approx(1)
