"""Noisy tables that were made elsewhere: learned from like our own, and never taken for them."""

from __future__ import annotations

import json
import math
import sys
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from discreet import Curator, Domain, Marginals, Measurements, PrivacyUnit, PureDP, Release, encode, resolve
from discreet.claimed import NoisyTable
from discreet.cli import run
from discreet.errors import InputError, MissingPackageError, NotAReleaseError
from discreet.measurement import Measurement
from discreet.privacy.budget import ZCDP
from discreet.report.card import card_yaml
from discreet.report.words import guarantee

DOMAIN = Domain.of({"smoke": ["yes", "no"], "lung": ["yes", "no"], "age": 3})
EXACT = {
    ("lung", "smoke"): np.array([[90.0, 10.0], [210.0, 690.0]]),
    ("smoke", "age"): np.array([[100.0, 120.0, 80.0], [200.0, 300.0, 200.0]]),
}
CLAIM: dict[str, Any] = {"budget": ZCDP("0.5"), "unit": PrivacyUnit(), "source": "mbi 2.0, by hand"}


def noisy(scale: float, whole: bool) -> dict[tuple[str, str], np.ndarray]:
    rng = np.random.default_rng(8)
    moved = {columns: table + rng.normal(0, scale, table.shape) for columns, table in EXACT.items()}
    return {columns: np.rint(table) if whole else table for columns, table in moved.items()}


def claimed(whole: bool = False, scale: float = 2.0) -> Measurements:
    return Measurements.from_tables(DOMAIN, noisy(scale, whole), noise="gaussian", scale=scale, **CLAIM)


@pytest.mark.parametrize("whole", [True, False])
def test_numbers_noise_and_axes_are_kept(whole):
    tables = claimed(whole)
    given = noisy(2.0, whole)
    m = tables["smoke", "lung"]
    np.testing.assert_allclose(m.values, given["lung", "smoke"].T, atol=1e-6)  # axes in the order of the domain
    assert m.clique == ("smoke", "lung") and m.origin == "claimed"
    assert m.standard_deviation == pytest.approx(2.0, rel=1e-6)
    assert (m.grid == 1) == whole
    low, high = m.interval(0.9)
    np.testing.assert_allclose((high - low) / 2, 2 * 1.645, atol=1 if whole else 0.01)


def test_a_model_is_learned_from_them_and_every_word_says_whose_claim_it_is(tmp_path):
    tables = claimed()
    learned = resolve(DOMAIN, cliques=[list(c) for c in tables.cliques]).conclude(tables, DOMAIN)
    p = learned.model.probability({"lung": "yes"}, {"smoke": "yes"})
    assert abs(p - 90 / 300) < 0.05
    card = learned.model.card
    assert card["origin"] == "claimed" and card["source"] == "mbi 2.0, by hand"
    assert "verified neither" in card["caution"] and "mbi 2.0, by hand" in card["caution"]
    assert "verified neither" in str(learned.model.ask("P(lung | smoke=yes)"))
    assert guarantee(card)[0].startswith("A CLAIM, NOT VERIFIED")

    Release.of(learned).save(tmp_path / "model.zip")
    release = Release.load(tmp_path / "model.zip")
    assert release.refit_agrees() and release.has_intervals
    text = card_yaml(release)
    assert "A CLAIM, NOT VERIFIED" in text and "OpenDP's exact samplers" not in text and "Exact rational" not in text
    release.report(tmp_path / "page.html")
    assert "A CLAIM, NOT VERIFIED" in (tmp_path / "page.html").read_text()
    assert release.model.sample(5, 0).origin == "claimed"


def test_the_command_line_says_so_and_verify_refuses(tmp_path, capsys):
    tables = claimed(whole=True)
    tables.save(tmp_path / "tables.zip")
    learned = resolve(DOMAIN, cliques=[list(c) for c in tables.cliques]).conclude(tables, DOMAIN)
    Release.of(learned).save(tmp_path / "model.zip")
    for name in ("tables.zip", "model.zip"):
        assert run(["show", str(tmp_path / name)]) == 0
        assert "A CLAIM, NOT VERIFIED" in " ".join(capsys.readouterr().out.split())
        assert run(["verify", str(tmp_path / name), "--json"]) == 6
        said = json.loads(capsys.readouterr().out)
        assert not said["verified"] and any("the claim of whoever made" in p for p in said["problems"])
        assert not any("the guarantee follows" in line for line in said["statement"])
    assert run(["sample", str(tmp_path / "model.zip"), "-n", "3"]) == 0
    assert "the claim of whoever made" in " ".join(capsys.readouterr().err.split())


def test_a_file_gives_back_what_was_claimed(tmp_path):
    tables = claimed()
    tables.save(tmp_path / "tables.zip")
    again = Measurements.load(tmp_path / "tables.zip")
    assert again.is_claimed and not again.is_release and dict(again.release) == dict(tables.release)
    np.testing.assert_array_equal(again["smoke", "age"].counts, tables["smoke", "age"].counts)


def test_our_own_tables_cannot_be_mixed_in_and_pass_for_a_claim():
    with Curator(encode({"smoke": ["yes"], "lung": ["no"], "age": [0]}, DOMAIN), budget=PureDP(1)) as curator:
        ours = curator.measure(Marginals(DOMAIN, [("smoke",)]))
    mixed = Measurements([*claimed(), *ours], ours.release)
    assert not mixed.is_release and not mixed.is_claimed
    with pytest.raises(NotAReleaseError):
        mixed.to_archive()
    exact = Measurement(
        "age", np.array([1, 2, 3]), claimed()[0].noise, DOMAIN.project(["age"]), ("age",), origin="exact"
    )
    worse = Measurements([*claimed(), exact], claimed().release)
    with pytest.raises(NotAReleaseError):
        worse.to_archive()
    model = resolve(DOMAIN, cliques=[["smoke", "lung"], ["smoke", "age"]]).estimate(worse, DOMAIN)
    assert model.card["origin"] == "exact"
    with pytest.raises(NotAReleaseError):
        Release(model).save("model.zip")


def test_the_same_table_twice_and_totals():
    twice = [NoisyTable("age", [1, 2, 3], "laplace", 1.5), NoisyTable(("age",), [2, 2, 2], "gaussian", 1.0)]
    tables = Measurements.from_tables(DOMAIN, [*twice, NoisyTable((), 6, "laplace", 1.0)], **CLAIM)
    assert [m.label for m in tables] == ["age", "age (2)", "total"]
    assert [m.noise.kind for m in tables] == ["laplace", "gaussian", "laplace"]


@pytest.mark.parametrize(
    ("tables", "how", "words"),
    [
        ({"age": [1, 2]}, {"noise": "laplace", "scale": 1}, r"shape \(2,\); by the schema it must be \(3,\)"),
        ({"age": [1, 2, math.nan]}, {"noise": "laplace", "scale": 1}, "not finite"),
        ({"age": [1, 2, 1e300]}, {"noise": "laplace", "scale": 1}, "too large"),
        ({"age": ["a", "b", "c"]}, {"noise": "laplace", "scale": 1}, "does not consist of numbers"),
        ({"age": [1, 2, 3]}, {"noise": "laplace", "scale": 0}, "scale above 0"),
        ({"age": [1, 2, 3]}, {"noise": "uniform", "scale": 1}, "'laplace', 'gaussian' or 'none'"),
        ({"age": [1, 2, 3]}, {"noise": "none", "scale": 1}, "has no noise"),
        ({"age": [1, 2, 3]}, {}, "say which noise"),
        ({}, {"noise": "laplace", "scale": 1}, "no tables"),
        ([[1, 2, 3]], {}, "NoisyTable"),
        ({"age": [1, 2, 3]}, {"noise": "laplace", "scale": 1, "source": " "}, "source says"),
        ({"age": [1, 2, 3]}, {"noise": "laplace", "scale": 1, "budget": 1.0}, "say what is claimed: budget"),
    ],
)
def test_what_cannot_be_is_refused_in_words(tables, how, words):
    with pytest.raises(InputError, match=words):
        Measurements.from_tables(DOMAIN, tables, **{**CLAIM, **how})


# -- mbi ---------------------------------------------------------------------------------------------------------------


class DatavectorQuery:
    """As mbi names the query of a whole table."""


class SlicedQuery:
    pass


@dataclass
class LinearMeasurement:
    """With the fields of mbi's."""

    noisy_measurement: Any
    clique: tuple[str, ...]
    stddev: float = 1.0
    query: Any = field(default_factory=DatavectorQuery)


def test_there_and_back_again(monkeypatch):
    stand_in = types.ModuleType("mbi")
    stand_in.LinearMeasurement = LinearMeasurement
    monkeypatch.setitem(sys.modules, "mbi", stand_in)
    tables = claimed()
    theirs = tables.to_mbi()
    assert [m.clique for m in theirs] == [("smoke", "lung"), ("smoke", "age")]
    assert theirs[0].noisy_measurement.shape == (4,) and theirs[0].stddev == pytest.approx(2.0, rel=1e-6)
    again = Measurements.from_mbi(DOMAIN, theirs, noise="gaussian", **CLAIM)
    for one, other in zip(tables, again, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    laplace = Measurements.from_mbi(DOMAIN, theirs, noise="laplace", **CLAIM)
    assert laplace[0].standard_deviation == pytest.approx(2.0, rel=1e-4)
    sliced = LinearMeasurement(np.zeros(2), ("age",), 1.0, SlicedQuery())
    with pytest.raises(InputError, match=r"no whole table.*SlicedQuery"):
        Measurements.from_mbi(DOMAIN, [sliced], noise="gaussian", **CLAIM)


def test_public_tables_and_other_sums_do_not_go_to_mbi():
    known = Measurement.public(DOMAIN, "age", [300, 420, 280])
    assert [m["clique"] for m in claimed().plus(known).for_mbi()] == [("smoke", "lung"), ("smoke", "age")]


def test_without_mbi_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(MissingPackageError, match="pip install 'mbi'"):
        claimed().to_mbi()


def test_mbi_itself_takes_them_and_gives_them_back():
    mbi = pytest.importorskip("mbi", reason="mbi is not in the test environment; a stand-in is used above")
    tables = claimed()
    theirs = tables.to_mbi()
    domain = mbi.Domain(DOMAIN.names, DOMAIN.shape)
    model = mbi.estimation.MirrorDescent().estimate(domain, theirs)
    found = np.asarray(model.project(("smoke", "lung")).datavector()).reshape(2, 2)
    np.testing.assert_allclose(found / found.sum(), EXACT["lung", "smoke"].T / 1000, atol=0.02)
    again = Measurements.from_mbi(DOMAIN, theirs, noise="gaussian", **CLAIM)
    np.testing.assert_allclose(again[0].values, tables[0].values, atol=1e-3)  # jax may hold 32 bits
