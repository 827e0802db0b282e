"""Columns that are found privately: bins, ranges, heaps and levels, as the first steps of a procedure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from discreet import ApproxDP, Curator, Ledger, PrivacyUnit, PureDP, Release, encode, resolve
from discreet.conditions import number_line
from discreet.domain import Domain
from discreet.errors import BudgetError, InputError, SchemaError
from discreet.learn.discovery import BINS, LEVELS
from discreet.learn.quantiles import agreeing, found_bins
from discreet.learn.transcript import Transcript
from discreet.models.density import Density
from discreet.privacy.budget import ZCDP
from discreet.privacy.claims import contradictions
from discreet.schema import parse_schema, schema_text

SCHEMA = """
missing_values = ["?", "<NULL>"]
[columns.age]
bins = "private"
range = [0, 120]
integer = true
missing = "unknown"
[columns.pay]
bins = "private"
range = "private"
decimals = 2
[columns.job]
levels = "discover"
always = ["sailor"]
missing = "unknown"
strip = true
[columns.sex]
levels = ["F", "M"]
"""
DOMAIN = parse_schema(SCHEMA)
BUDGET = ApproxDP(2, 1e-6)


def people(n: int = 6000, seed: int = 0) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.3, 40, np.clip(rng.normal(45, 12, n), 18, 90)).round().astype(int)
    pay = np.where(rng.random(n) < 0.4, 0.0, np.round(rng.lognormal(7, 0.6, n), 2))
    job = rng.choice(["cook", "nurse", " clerk", "<NULL>"], n, p=[0.5, 0.3, 0.15, 0.05]).astype(object)
    job[:5] = [f"only one {i}" for i in range(5)]
    ages = [None if i % 50 == 0 else str(a) for i, a in enumerate(age)]
    return {"age": ages, "pay": pay.tolist(), "job": job.tolist(), "sex": rng.choice(["F", "M"], n).tolist()}


def learned(table, unit=None, budget=BUDGET, domain=DOMAIN, **options):
    with Curator(table, unit, budget) as curator:
        return resolve(domain, **{"certify": 0, **options}).learn(curator)


def test_bins_heaps_range_and_levels_are_found_and_said_to_be():
    rows = people()
    made = learned(encode(rows, DOMAIN))
    domain = made.model.domain
    age, pay, job = domain["age"], domain["pay"], domain["job"]
    assert 40.0 in age.heaps and 5 <= age.bins <= 32 and age.edges[0] == 0 and age.edges[-1] == 120
    assert pay.heaps == (0.0,) and pay.edges[0] >= 0 and 2048 <= pay.edges[-1] <= 2**15
    assert job.levels == ("sailor", "clerk", "cook", "nurse"), "nobody's own text, and spaces do not count"
    assert domain.found == {
        "age": ("edges", "heaps", "spread"),
        "pay": ("edges", "heaps", "range", "spread"),
        "job": ("levels",),
    }
    card = made.model.card
    assert card["found_privately"] == {name: list(what) for name, what in domain.found.items()}
    assert card["domain"] == domain.fingerprint and not domain.sought
    assert not contradictions(card)
    assert parse_schema(schema_text(domain)) == domain
    assert [s["step"].split(":")[0] for s in card["steps"] if "step" in s][:2] == [BINS, LEVELS]


def test_the_plan_shows_what_is_found_first_and_keeps_to_the_share(tmp_path):
    spec = resolve(DOMAIN, certify=0, discover=0.2)
    plan = spec.prepare(DOMAIN, PrivacyUnit(), BUDGET)
    names = [step.name for step in plan.steps]
    assert names[:2] == [f"{BINS}: 2 columns", f"{LEVELS}: 1 column"] and "Found privately first: age, pay, job" in str(
        plan
    )
    shares = [entry["part"] for entry in plan.to_dict()["steps"]]
    assert 0.18 < sum(shares[:2]) < 0.2 and sum(shares) <= 1
    made = learned(encode(people(500), DOMAIN), discover=0.2)
    assert [m.label for m in made.measurements][:4] == ["age", "pay", "job", "sex"]
    Release.of(made).save(tmp_path / "m.zip")
    kept = Release.load(tmp_path / "m.zip").model.domain
    assert kept == made.model.domain and kept["age"].spread == made.model.domain["age"].spread
    assert spec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [PureDP(4), ZCDP(0.5), ApproxDP(4, 1e-6)], ids=lambda b: b.notion)
def test_bins_are_found_under_every_notion_and_relation(budget, relation):
    domain = DOMAIN.project(["age", "pay", "sex"])
    made = learned(encode(people(), domain), PrivacyUnit(relation=relation), budget, domain)
    assert made.model.domain["age"].bins >= 2 and not contradictions(made.model.card)


@pytest.mark.parametrize("budget", [PureDP(4), ZCDP(0.5)], ids=lambda b: b.notion)
def test_levels_need_a_delta_and_the_error_says_the_way_out(budget):
    with pytest.raises(BudgetError, match=r"levels = \"discover\" \(column 'job'\) needs a δ.*--delta 1e-6"):
        resolve(DOMAIN).prepare(DOMAIN, PrivacyUnit(), budget)


@pytest.mark.parametrize("method", [None, "searched"])
def test_persons_are_found_columns_for_too(method):
    rows = people(3000)
    rows["who"] = [i // 3 for i in range(3000)]
    domain = DOMAIN.project(["age", "job", "sex"])
    options = {} if method is None else {"family": "network", "method": method}
    unit = PrivacyUnit("who", max_rows=2, relation="replace-one")
    made = learned(encode(rows, domain, unit="who"), unit, ApproxDP(8, 1e-6), domain, **options)
    assert "cook" in made.model.domain["job"].levels and not contradictions(made.model.card)


def test_a_run_that_was_stopped_goes_on_with_what_it_found(tmp_path):
    spec = resolve(DOMAIN, certify=0)
    procedure = spec.prepare(DOMAIN, PrivacyUnit(), BUDGET)

    def stop(released):
        raise KeyboardInterrupt

    stopped = dataclasses.replace(procedure, found_first=dataclasses.replace(procedure.found_first, then=stop))
    with Ledger.create(tmp_path / "ledger.db", BUDGET) as ledger:
        with pytest.raises(KeyboardInterrupt):
            stopped.run(Curator(encode(people(800), DOMAIN), budget=BUDGET, ledger=ledger), Transcript(tmp_path / "a"))
        assert Transcript(tmp_path / "a").answers == 2
        with Curator(encode(people(800), DOMAIN), budget=BUDGET, ledger=ledger) as again:
            released = procedure.run(again, Transcript(tmp_path / "a"))
        assert ledger.spent == BUDGET
    assert spec.conclude(released, DOMAIN).model.domain.found


def test_without_private_rows_nothing_is_found_and_nothing_fails():
    none = {name: [] for name in DOMAIN.names}
    domain = learned(encode(none, DOMAIN)).model.domain
    assert domain["job"].levels == ("sailor",) and domain["age"].edges == (0, 120)
    odd = {
        "age": ["x", None, 1e300],
        "pay": [float("inf"), float("nan"), "?"],
        "job": [b"x", 3.5, []],
        "sex": [1, 2, 3],
    }
    assert learned(encode(odd, DOMAIN)).model.domain["job"].levels == ("sailor",)


def test_who_asks_for_tables_alone_must_know_the_columns():
    with pytest.raises(InputError, match="are to be found privately"):
        from discreet.learn.tables import Tables

        Tables([("age",)]).plan(DOMAIN, PrivacyUnit(), PureDP(1))
    with pytest.raises(InputError, match="discover is the part of the budget"):
        resolve(DOMAIN, discover=0.9)


def test_heaps_that_are_public_are_kept_and_in_no_bin():
    entry = 'bins = "private"\nrange = [0, 40]\ninteger = true\nheaps = [7, 99]\nmost = 5\n'
    domain = parse_schema(f"[columns.x]\n{entry}[columns.y]\n{entry.replace('40', '99999')}")
    assert parse_schema(schema_text(domain)) == domain and domain.forecast["x"].heaps == (7, 99)
    rng = np.random.default_rng(0)
    rows = {name: np.where(rng.random(5000) < 0.5, 7, rng.integers(10, 40, 5000)) for name in "xy"}
    found = learned(encode(rows, domain), domain=domain).model.domain
    assert found["x"].heaps == found["y"].heaps == (7, 99) and "heaps" not in found["x"].found
    assert 2 <= found["x"].bins <= 5


def test_whole_numbers_that_are_found_are_numbers_again():
    domain = parse_schema('[columns.zone]\nlevels = "discover"\nat_most = 3\n[columns.b]\nlevels = [0, 1]\n')
    rng = np.random.default_rng(1)
    rows = {"zone": rng.choice([7, 10, 2, 99], 4000, p=[0.4, 0.3, 0.2, 0.1]), "b": rng.integers(0, 2, 4000)}
    found = learned(encode(rows, domain), domain=domain).model.domain["zone"]
    assert found.levels == (2, 7, 10) and found.other == "other"


# -- from noisy histograms to bins -----------------------------------------------------------------------------------


def test_histograms_are_made_to_agree_by_least_squares():
    rng = np.random.default_rng(2)
    sought = parse_schema('[columns.x]\nbins = "private"\nrange = [0, 1]\n')["x"].sought
    cells = len(sought.edges) - 1
    groups = sought.coarser
    sizes = [cells, *(int(g.max()) + 1 for g in groups)]
    sums = np.vstack(
        [
            np.eye(cells),
            *(np.equal.outer(np.arange(k), g).astype(float) for k, g in zip(sizes[1:], groups, strict=True)),
        ]
    )
    variances = [4.0, 1.0, 9.0][: len(sizes)]
    weights = np.repeat(1 / np.sqrt(variances), sizes)
    keep = np.flatnonzero(groups[-1] == 0)  # one part of the tree is as good as all of it
    rows = np.flatnonzero(sums[:, keep].any(axis=1))
    noisy = rng.normal(0, 3, len(sums))
    expected = np.linalg.lstsq(sums[np.ix_(rows, keep)] * weights[rows, None], noisy[rows] * weights[rows])[0]
    parts = np.split(noisy, np.cumsum(sizes)[:-1])
    made = agreeing(parts[0], parts[1:], groups, variances)
    np.testing.assert_allclose(made[keep], expected, atol=1e-8)


@pytest.mark.parametrize("entry", ["range = [0, 50]\ninteger = true", "range = [0, 1000]", 'range = "private"'])
def test_bins_have_equal_mass_without_noise(entry):
    sought = parse_schema(f'[columns.x]\nbins = "private"\n{entry}\nmost = 8\n')["x"].sought
    x = np.random.default_rng(0).gamma(4, 5, 20_000)
    x = np.clip(x.round() if sought.integer else x, 0, 50)
    counts = [np.histogram(x, sought.edges)[0].astype(float)]
    histograms = [np.append(counts[0], (x == 0).sum())] if sought.points else counts
    histograms += [np.bincount(g, counts[0]) for g in sought.coarser]
    bins = found_bins(sought, histograms, [1e-6] * len(histograms))
    mass = np.histogram(x, bins.edges)[0] / len(x)
    assert len(bins.edges) == 9 and mass.max() < 0.2 and mass.min() > 0.05


def noisy_histograms(sought, x, deviation, rng):
    cells = np.histogram(x[~np.isin(x, sought.points)], sought.edges)[0].astype(float)
    exact = [np.append(cells, [(x == p).sum() for p in sought.points])]
    exact += [np.bincount(g, cells) for g in sought.coarser]
    return [h + rng.normal(0, deviation, len(h)) for h in exact]


SHAPES = {
    "money of a few": lambda rng: np.where(rng.random(30_000) < 0.8, 0, rng.lognormal(8, 0.7, 30_000)),
    "round numbers": lambda rng: np.round(rng.lognormal(9.5, 0.5, 30_000), -3),
    "counts": lambda rng: rng.negative_binomial(0.9, 0.02, 30_000),
    "two groups": lambda rng: np.where(rng.random(30_000) < 0.5, rng.normal(5e3, 300, 30_000), 7e4),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_where_numbers_lie_within_bins_is_kept(shape):
    """Mean and deviation of a column with its exact counts of bins."""
    entry = f'bins = "private"\nrange = [0, {1000 if shape == "counts" else 100_000}]\ninteger = true\n'
    column = parse_schema(f"[columns.x]\n{entry}")["x"]
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = np.clip(np.round(SHAPES[shape](rng)), 0, column.sought.ends[1])
        noisy = noisy_histograms(column.sought, x, 30, rng)
        bins = found_bins(column.sought, noisy, [900.0] * len(noisy))
        found = dataclasses.replace(column, sought=None, edges=bins.edges, heaps=bins.heaps, spread=bins.spread)
        counts = encode({"x": x}, Domain((found,))).count([("x",)])[0]
        mean, variance = Density(number_line(found), counts / len(x)).moments()
        p = counts / len(x)
        ours = p @ mean
        errors.append((ours / x.mean() - 1, np.sqrt(p @ (variance + (mean - ours) ** 2)) / x.std() - 1))
    worst = np.abs(errors).mean(axis=0)
    assert worst[0] < 0.01 and worst[1] < 0.04, worst


def test_a_wide_bin_far_from_the_mean_is_cut_again():
    sought = parse_schema('[columns.x]\nbins = "private"\nrange = [0, 1000]\ninteger = true\n')["x"].sought
    rng = np.random.default_rng(0)
    x = np.append(np.clip(np.round(rng.normal(40, 3, 30_000)), 0, 1000), np.round(rng.uniform(200, 1000, 700)))
    bins = found_bins(sought, noisy_histograms(sought, x, 20, rng), [400.0] * 3)
    assert sum(e > 200 for e in bins.edges) >= 4 and len(bins.edges) <= 33


@pytest.mark.parametrize(
    "entry, words",
    [
        ('bins = "private"', "bins need a range"),
        ('bins = "public"\nrange = [0, 1]', 'bins is "private"'),
        ('bins = "private"\nrange = [1, 0]', "bins need a range"),
        ('bins = "private"\nrange = [0, 1]\nedges = [0, 1]', "both edges and bins"),
        ('bins = "private"\nrange = [0.5, 2]\ninteger = true', "must be whole too"),
        ('bins = "private"\nrange = "private"\nscale = -1', "scale is a positive number"),
        ('bins = "private"\nrange = [0, 1]\nheaps = ["x"]', "heaps must be a list of finite numbers"),
        ('bins = "private"\nrange = [0, 1]\nmost = 0', "most is a whole number from 1"),
        ("range = [0, 1]\nedges = [0, 1]", "range belongs to bins"),
        ('levels = "find"', 'levels is a list, or "discover"'),
        ('levels = "discover"\nedges = [0, 1]', "edges has no meaning"),
        ('levels = "discover"\nat_most = true', "at_most is a whole number"),
        ('levels = "discover"\nalways = "a"', "always is a list"),
        ('levels = ["a"]\nalways = ["a"]', "always belongs to levels"),
    ],
)
def test_what_cannot_be_found_is_said(entry, words):
    with pytest.raises(SchemaError, match=words):
        parse_schema(f"[columns.x]\n{entry}\n")


def test_a_text_that_no_file_can_hold_is_not_found():
    """Half a character: a release with it could not be saved, and all that was paid would be lost."""
    domain = parse_schema('[columns.t]\nlevels = "discover"\n[columns.s]\nlevels = ["F", "M"]\n')
    made = learned(encode({"t": ["\ud800", "cook"] * 500, "s": ["F", "M"] * 500}, domain), domain=domain)
    assert made.model.domain["t"].levels == ("cook",)


def test_histograms_without_noise_agree_in_silence():
    """As an attack sees them, which knows what no protection would give."""
    from discreet.learn.quantiles import agreeing

    fine, groups = np.array([3.0, 1.0, 0.0, 2.0]), (np.array([0, 0, 1, 1]),)
    with np.errstate(all="raise"):
        found = agreeing(fine, [np.array([4.0, 2.0])], groups, [0.0, 0.0])
    assert (found == fine).all()


def test_a_text_that_no_file_takes_is_no_level():
    from discreet.io.strictjson import PRIVATE_MARK
    from discreet.learn.discovery import _categories
    from discreet.schema import parse_schema

    column = parse_schema('[columns.t]\nlevels = "discover"\n')["t"]
    assert _categories(column, {f"it {PRIVATE_MARK}": 900, "cook": 500}).levels == ("cook",)
