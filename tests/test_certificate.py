"""The certificate as a value: intervals that cover and are never empty, words that fit the figures, any files."""

from __future__ import annotations

import copy
import itertools
import json
import math

import numpy as np
import pytest

from discreet import ZCDP, Curator, PureDP, Release, encode, networks, resolve
from discreet.errors import FileFormatError, InputError, NotAReleaseError
from discreet.release import Certificate
from discreet.release.nonnegative import nonnegative
from discreet.report import words as report_words
from discreet.report.card import card_yaml
from discreet.report.explore import Explorer
from discreet.report.page import report_html

PAIRS = [["a", "b"], ["a", "c"], ["b", "c"]]


def facts(distances=(40, 20, 30), *, scale=64.0, grid=64, records=1000.0, apart=0.2, **more):
    each = {"counts": [grid * d for d in distances], "noise": "gaussian", "scale": scale, "grid": f"1/{grid}"}
    return {
        "cliques": PAIRS,
        "every": 3,
        "workload": False,
        "records": records,
        "records_deviation": 0.0,
        "squares": [0.3, 0.3, 0.3],
        "from_independence": apart,
        "computed": "exactly",
        "each": {**each, "which": [0, 1, 2]},
        **more,
    }


# -- intervals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("laplace", [False, True], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("level", [0.8, 0.9, 0.999])
def test_intervals_of_what_cannot_be_negative(level, laplace):
    rng = np.random.default_rng(5)
    n = 20_000
    noise = rng.laplace(0, np.sqrt(0.5), n) if laplace else rng.normal(size=n)
    for truth in (0.0, 0.1, 0.7, 1.3, 2.0, 2.6, 3.5, 6.0, 30.0):
        lower, upper = nonnegative(truth + noise, np.ones(n), level, laplace=laplace)
        covered = float(np.mean((lower <= truth) & (truth <= upper)))
        assert covered > level - 5 * np.sqrt(level * (1 - level) / n)
        if not laplace:  # as it says; Laplace noise has the same likelihood ratio at all negative values
            assert covered < level + 5 * np.sqrt(level * (1 - level) / n) + 0.002
        assert (lower >= 0).all() and (upper > 0).all()
        assert (lower < upper).all()
    x = np.linspace(-6, 12, 500)
    lower, upper = nonnegative(x, np.ones(500), level, laplace=laplace)
    assert (np.diff(lower) >= -1e-9).all() and (np.diff(upper) >= -1e-9).all()  # more is never less
    # far from 0 they are the ordinary ones, and they follow the scale
    far = nonnegative(np.array([300.0]), np.array([10.0]), level, laplace=laplace)
    assert far[1] - 300 == pytest.approx(300 - far[0])


@pytest.mark.parametrize("laplace", [False, True], ids=["gaussian", "laplace"])
def test_intervals_by_their_definition(laplace):
    """For each mean the likeliest values by ratio, until there is enough; an interval is all means that accept x."""
    wide, step = np.sqrt(2) if laplace else 1.0, 0.01  # of Laplace noise with scale 1
    x = np.arange(-15, 25, step)
    density = (lambda z: np.exp(-np.abs(z)) / 2) if laplace else (lambda z: np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
    at = np.searchsorted(x, np.array([-2.0, -0.5, 0.5, 1.4, 2.0, 3.0, 4.0, 5.0]))
    accepting = [[] for _ in at]
    for mean in np.arange(0, 9, 0.02):
        p = density(x - mean) * step
        ratio = density(x - mean) / density(x - np.maximum(x, 0))
        order = np.argsort(-np.round(ratio, 12), kind="stable")
        least = np.round(ratio, 12)[order[np.searchsorted(np.cumsum(p[order]), 0.9)]]
        for own, i in zip(accepting, at, strict=True):
            own += [mean] if np.round(ratio[i], 12) >= least else []
    lower, upper = nonnegative(x[at], np.full(len(at), wide), 0.9, laplace=laplace)
    assert lower == pytest.approx([min(own) for own in accepting], abs=0.03)
    assert upper == pytest.approx([max(own) for own in accepting], abs=0.03)


def test_no_noise_is_no_interval_and_a_level_is_a_probability():
    lower, upper = nonnegative(np.array([-1.0, 2.0]), np.zeros(2), 0.9)
    assert lower.tolist() == upper.tolist() == [0, 2]
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        nonnegative(np.zeros(1), np.ones(1), 1.0)


# -- figures and words -------------------------------------------------------------------------------------------------


def test_figures_follow_from_what_was_released():
    found = Certificate.from_dict(facts())
    assert found.mean == pytest.approx(30 / 2000)
    assert found.of(["c", "a"]).estimate == pytest.approx(0.01)
    low, high = found.mean_interval()
    assert low == pytest.approx(0.015 - 1.645 / np.sqrt(3) / 2000, abs=1e-6) and high - 0.015 == pytest.approx(
        0.015 - low
    )
    assert found.mean_at_most() == pytest.approx(high)
    assert list(found.fits()) == [("a", "b"), ("b", "c"), ("a", "c")]
    assert Certificate.from_dict(found.to_dict()) == found
    assert Certificate.from_dict(json.loads(json.dumps(facts()))) == found
    frame = found.to_frame("pandas")
    assert frame.columns.tolist() == ["columns", "total_variation", "lower", "upper"]
    assert frame["columns"].tolist() == ["a × b", "b × c", "a × c"]
    assert found.summary()["mean_total_variation"] == 0.015
    with pytest.raises(InputError, match="no figure for a × z"):
        found.of(["a", "z"])


def test_the_number_of_records_widens_intervals():
    sure = Certificate.from_dict(facts())
    unsure = Certificate.from_dict(facts(records_deviation=100.0))
    assert unsure.of(["a", "b"]).upper > sure.of(["a", "b"]).upper + 0.03
    assert unsure.mean_at_most() > sure.mean_at_most() + 0.03


def test_tables_share_the_doubt_about_the_number_of_records_by_their_columns():
    """Of all pairs of p columns the mean has 2/p of the variance of one, of tables without a common column 1/m."""

    def widening(cliques, squares=None, **more):
        m = len(cliques)
        each = {"counts": [0] * m, "noise": "gaussian", "scale": 1e-9, "grid": "1/64", "which": list(range(m))}
        own = {"cliques": cliques, "squares": squares or [0.3] * m, "each": each, "records_deviation": 100.0, **more}
        return Certificate.from_dict(facts(**own))._mean[1] * 2 * 1000 / 100

    for p in (2, 5, 16):
        pairs = [list(c) for c in itertools.combinations([f"x{i}" for i in range(p)], 2)]
        assert widening(pairs) ** 2 == pytest.approx(0.3 * 2 / p)
    assert widening([["a", "b", "c"]]) ** 2 == pytest.approx(0.3)
    assert widening([["a", "b"], ["c", "d"]], [0.3, 0.5]) ** 2 == pytest.approx((0.3 + 0.5) / 4)
    assert widening([["a"], ["b"]], weights=[3, 1]) ** 2 == pytest.approx(0.3 * 10 / 16)
    nested = math.sqrt(0.3 * 0.5) * 2 / math.sqrt(2 * 3)  # two columns in common, of two and three
    assert widening([["a", "b"], ["a", "b", "c"]], [0.3, 0.5]) ** 2 == pytest.approx((0.3 + 0.5 + 2 * nested) / 4)


def test_the_worst_is_named_only_if_it_stands_out():
    assert "The worst, a × b: 0.2000 (0.1992 to 0.2008) at 90 %." in str(Certificate.from_dict(facts((400, 20, 30))))
    quiet = Certificate.from_dict(facts((31, 29, 30), scale=64.0 * 20))
    assert quiet.outstanding == {} and "No single one stands out; none is further away than" in str(quiet)
    assert quiet.worst_at_most == pytest.approx(0.0155 + 2.39 * 0.01, abs=1e-3)


def test_what_would_bring_the_worst_pair_nearer_is_said():
    def said(found=None, **more):
        card = {"certificate": facts((400, 20, 30), apart=0.4, **more), "found_privately": found or {}}
        return " ".join(report_words.certificate_lines(card)[2:])

    assert said().startswith(
        "If a × b matters, give its columns fewer bins or levels, or edges that are publicly known"
    )
    assert said().endswith("; then name it in a new fit's --workload, so that more is spent on it.")
    assert "; those of b were found privately" in said({"b": ["edges", "range"], "c": ["edges"], "a": ["levels"]})
    assert "name it" not in said(from_independence=0.02, from_sampling=0.07)  # so few records are this far from all
    assert said(each=facts((31, 29, 30), scale=64.0 * 20)["each"]) == ""
    assert "name it" not in said(workload=True)
    assert "a × b was named in the --workload, but its table was too large for the noise" in said(workload=True)
    assert "name it in a new" in said(workload=True, paid={"budget": {}}), "bought later, of tables the fit knew not of"


def test_one_poor_table_that_was_named_is_not_told_to_be_named():
    each = {**facts((400,))["each"], "counts": [64 * 400], "which": [0]}
    more = {"cliques": [["a", "b"]], "squares": [0.3], "each": each, "every": 1, "workload": True}
    said = " ".join(report_words.certificate_lines({"certificate": facts((400,), apart=0.01, **more)}))
    assert "Certificate of fit (poor)" in said and "too large for the noise" in said and "name them" not in said


@pytest.mark.parametrize(
    ("distances", "scale", "apart", "verdict", "words"),
    [
        ((10, 12, 8), 64.0, 0.0, "good", "about 0.0050 away from the records on average"),
        ((100, 110, 120), 64.0, 0.2, "good", "about 0.055"),
        ((100, 110, 120), 64.0, 0.1, "poor", "Beware: that does not show a good model."),
        ((100, 110, 120), 64.0 * 400, 0.1, "unclear", "too large to tell"),
        ((100, 110, 120), 64.0, (0.1, 0.04), "fair", "a fresh sample of them would be 0.040 away"),
        ((100, 110, 120), 64.0, (0.1, 0.02), "poor", "not shown to be better"),
    ],
)
def test_a_bad_certificate_says_so_and_what_to_try(distances, scale, apart, verdict, words):
    apart, sampling = apart if isinstance(apart, tuple) else (apart, 0)
    found = Certificate.from_dict(facts(distances, scale=scale, apart=apart, from_sampling=sampling))
    assert found.verdict == verdict and words in str(found)
    assert ("larger budget" in str(found)) == (verdict == "poor")


def test_under_pure_dp_the_mean_is_a_number_of_its_own():
    total = {"counts": [64 * 90], "noise": "laplace", "scale": 64.0, "grid": "1/64", "which": []}
    one = {"counts": [64 * 50], "noise": "laplace", "scale": 64.0, "grid": "1/64", "which": [1]}
    found = Certificate.from_dict({**facts(), "total": total, "each": one})
    assert found.mean == pytest.approx(0.015) and list(found.fits()) == [("a", "c")]
    assert found.worst_at_most is None
    assert "picked as perhaps the furthest away, a × c: 0.025" in str(found)
    none = Certificate.from_dict({k: v for k, v in {**facts(), "total": total}.items() if k != "each"})
    assert none.fits() == {} and len(none.lines()) == 1


def test_some_of_many_pairs_and_a_workload_are_said():
    assert "pairs of columns (3 of 900 were compared) are" in str(Certificate.from_dict(facts(every=900)))
    assert "the tables asked for are" in str(Certificate.from_dict(facts(workload=True)))


@pytest.mark.parametrize(
    "change",
    [
        {"records": 0},
        {"records": "many"},
        {"squares": [0.3]},
        {"cliques": []},
        {"cliques": [[], [], []]},
        {"each": None},
        {"every": 2.5},
        {"records_deviation": float("inf")},
        {"squares": [0.3, -0.3, 0.3]},
        {"total": {"counts": [1, 2], "noise": "laplace", "scale": 1.0, "grid": "1", "which": []}},
        {"each": {"counts": [1, 2, 3], "noise": "laplace", "scale": 1.0, "grid": "1", "which": [0, 1, 7]}},
        {"each": {"counts": [1, 2, 3], "noise": "laplace", "scale": 1.0, "grid": "0", "which": [0, 1, 2]}},
        {"each": {"counts": [1, 2], "noise": "gaussian", "scale": 1.0, "grid": "1", "which": [0, 1]}},
        {"each": {"counts": [1.5, 2, 3], "noise": "gaussian", "scale": 1.0, "grid": "1", "which": [0, 1, 2]}},
        {"each": {"counts": [1, 2, 3], "noise": "laplace", "scale": 1.0, "grid": "1e999999999", "which": [0, 1, 2]}},
        {"each": {"counts": [1, 2, 10**400], "noise": "laplace", "scale": 1.0, "grid": "1", "which": [0, 1, 2]}},
        {"each": {"counts": [1, 2, 3], "noise": "wild", "scale": 1.0, "grid": "1", "which": [0, 1, 2]}},
    ],
    ids=str,
)
def test_a_file_that_makes_no_sense_is_refused(change):
    with pytest.raises(FileFormatError, match="certificate of fit is not well-formed"):
        Certificate.from_dict({**facts(), **change})
    with pytest.raises(FileFormatError, match="not well-formed"):
        Certificate.from_dict("a certificate")


def test_exact_distances_are_no_part_of_a_release():
    from discreet import PrivacyUnit
    from discreet.learn.certifying import certify_later
    from discreet.privacy.curator import ExactCurator

    asia = networks.load("asia")
    table = encode(asia.sample(200, random_state=1).to_pandas(), asia.domain)
    with Curator(table, budget=ZCDP("0.1")) as curator:
        release = Release.of(resolve(asia.domain, certify=0).learn(curator))
    exact = certify_later(release.model, PrivacyUnit(), ZCDP("0.1")).run(ExactCurator(table, budget=ZCDP("0.1")))
    with pytest.raises(NotAReleaseError, match="without protection"):
        release.certified(exact)


# -- coverage ----------------------------------------------------------------------------------------------------------


def test_intervals_cover_the_total_variation_from_the_records():
    """40 certificates of one model with 28 pairs: 90 % intervals, for a number of records that is private. The pairs of
    a run share its number of records, so that the bounds are wider than for 1,120 coins."""
    from discreet import PrivacyUnit
    from discreet.learn.certifying import certify_later
    from discreet.privacy.curator import ExactCurator
    from discreet.privacy.query import Marginals

    asia = networks.load("asia")
    table = encode(asia.sample(3000, random_state=2).to_pandas(), asia.domain)
    with Curator(table, budget=ZCDP("0.05")) as curator:
        release = Release.of(resolve(asia.domain, certify=0).learn(curator))
    covered = bounded = 0
    for run in range(40):
        budget = ZCDP("0.01") if run % 2 else PureDP(20)
        with Curator(table, budget=budget) as curator:
            found = release.certified(certify_later(release.model, PrivacyUnit(), budget).run(curator)).certificate
        if not run:
            exact = ExactCurator(table).measure(Marginals(asia.domain, found.cliques))
            tables = zip(found.cliques, (m.values / m.values.sum() for m in exact), strict=True)
            truth = {c: np.abs(p - release.model.marginal(c).probabilities).sum() / 2 for c, p in tables}
        covered += sum(fit.lower <= truth[c] <= fit.upper for c, fit in found.fits().items())
        bounded += float(np.mean(list(truth.values()))) <= found.mean_at_most()
    assert 0.85 < covered / (40 * 28) < 0.96
    assert bounded >= 32  # of 38 expected


# -- where it is shown -------------------------------------------------------------------------------------------------


def test_release_card_report_and_page_show_it(tmp_path):
    asia = networks.load("asia")
    with Curator(encode(asia.sample(500, random_state=1).to_pandas(), asia.domain), budget=ZCDP("0.1")) as curator:
        release = Release.of(resolve(asia.domain).learn(curator))
    release.save(tmp_path / "model.zip")
    again = Release.load(tmp_path / "model.zip")
    assert again.certificate == release.certificate and again.refit_agrees()
    (first, *_) = release.certificate.lines()
    yaml = card_yaml(again)
    assert first in yaml
    assert first in report_html(again.model, card_text=yaml)
    explorer = Explorer(again.model)
    try:
        assert first in explorer.page("x")
    finally:
        explorer._server.server_close()
    forged = copy.deepcopy(dict(release.card))
    forged["certificate"]["records"] = -1
    with pytest.raises(FileFormatError, match="certificate of fit"):
        _ = Release(release.model.with_card(forged)).certificate


def test_no_figure_leaves_what_a_total_variation_can_be():
    of_few = Certificate.from_dict(facts((14, 30, 400), records=8.0, scale=600.0))
    figures = [x for fit in of_few.fits().values() for x in (fit.estimate, fit.lower, fit.upper)]
    said = [*figures, of_few.mean, *of_few.mean_interval(), of_few.mean_at_most(), of_few.worst_at_most]
    assert min(said) >= 0 and max(said) == 1 and len(set(said)) > 2
    assert "about 1.00 away" in str(of_few)
    of_none = Certificate.from_dict(facts((400, 400, 400), records=2.0))
    assert of_none.mean == of_none.summary()["mean_total_variation"] == 1
    assert Certificate.from_dict(of_none.to_dict()) == of_none  # what was released is kept as it was
