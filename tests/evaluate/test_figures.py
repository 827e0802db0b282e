"""Every figure of an evaluation against the same figure computed by hand, from the rows one by one."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from discreet import Domain, encode, networks
from discreet.domain import Attribute
from discreet.errors import InputError
from discreet.evaluate import WARNING, evaluate, scores
from discreet.io.strictjson import PRIVATE_MARK
from discreet.models import BayesianNetwork
from discreet.models.marginals import from_sampling
from discreet.tables.open import open_table

DOMAIN = Domain(
    (
        Attribute.categorical("smoke", ["yes", "no"]),
        Attribute.categorical("children", [0, 1, 2, 3], missing="unknown"),
        Attribute.numeric("age", [0, 20, 40, 60, 100]),
        Attribute.categorical("ill", [0, 1]),
    )
)


def drawn(n, seed, dependent=True):
    """Rows as plain values; ``dependent``: whether columns have anything to do with each other."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, n)
    smoke = np.where(rng.random(n) < (0.2 + 0.5 * (age > 40) if dependent else 0.4), "yes", "no")
    children = np.minimum(rng.poisson(0.5 + 1.5 * (age > 30) if dependent else 1.0, n), 3).astype(object)
    children[rng.random(n) < 0.1] = None
    ill = (rng.random(n) < (0.1 + 0.6 * (smoke == "yes") if dependent else 0.3)).astype(int)
    return {"smoke": smoke.tolist(), "children": children.tolist(), "age": age.tolist(), "ill": ill.tolist()}


REAL, OTHER = drawn(3000, 1), drawn(2000, 2)
ROWS, SYNTHETIC = encode(REAL, DOMAIN), encode(OTHER, DOMAIN)


@pytest.fixture(scope="module")
def found():
    return evaluate(ROWS, {"other.csv": SYNTHETIC, "independent.csv": encode(drawn(2000, 3, False), DOMAIN)})


def codes(values):
    """The codes of rows, by hand."""
    edges = [20, 40, 60]
    out = []
    for smoke, children, age, ill in zip(*values.values(), strict=True):
        bin_ = sum(age >= e for e in edges)
        out.append((["yes", "no"].index(smoke), 4 if children is None else children, bin_, ill))
    return out


def proportions(rows, at):
    counts = Counter(tuple(row[i] for i in at) for row in rows)
    return {cell: n / len(rows) for cell, n in counts.items()}


def distance(a, b):
    return math.fsum(abs(a.get(cell, 0) - b.get(cell, 0)) for cell in {*a, *b}) / 2


def by_hand(k):
    real, other = codes(REAL), codes(OTHER)
    return {at: distance(proportions(real, at), proportions(other, at)) for at in combinations(range(4), k)}


def test_columns_pairs_and_triples_agree_with_a_count_by_hand(found):
    facts = found.to_dict()["releases"]["other.csv"]
    assert [c["TVComplement"] for c in facts["columns"]] == pytest.approx(
        [1 - d for d in by_hand(1).values()], abs=1e-12
    )
    assert [p["ContingencySimilarity"] for p in facts["pairs"]] == pytest.approx(
        [1 - d for d in by_hand(2).values()], abs=1e-12
    )
    assert [t["total variation"] for t in facts["triples"]] == pytest.approx(list(by_hand(3).values()), abs=1e-12)
    assert facts["k-marginal, k = 2"] == pytest.approx(1000 * (1 - np.mean(list(by_hand(2).values()))), abs=1e-9)
    assert facts["k-marginal, k = 3"] == pytest.approx(1000 * (1 - np.mean(list(by_hand(3).values()))), abs=1e-9)
    assert facts["Column Shapes"] == pytest.approx(1 - np.mean(list(by_hand(1).values())), abs=1e-12)


def test_numbers_agree_with_numpy(found):
    """Whole numbers are themselves, bins their middle, and absent values are left out."""
    facts = found.to_dict()["releases"]["other.csv"]
    numbers = {entry["column"]: entry for entry in facts["numbers"]}
    assert set(numbers) == {"children", "age", "ill"}
    middle = np.array([10.0, 30.0, 50.0, 80.0])
    real = [float(c) for c in REAL["children"] if c is not None], middle[[row[2] for row in codes(REAL)]]
    mine = [float(c) for c in OTHER["children"] if c is not None], middle[[row[2] for row in codes(OTHER)]]
    for name, a, b in zip(("children", "age"), real, mine, strict=True):
        assert numbers[name]["mean"]["real"] == pytest.approx(np.mean(a), abs=1e-12)
        assert numbers[name]["mean"]["synthetic"] == pytest.approx(np.mean(b), abs=1e-12)
        assert numbers[name]["deviation"]["real"] == pytest.approx(np.std(a), abs=1e-12)
        for q in scores.QUANTILES:
            at = np.quantile(a, q, method="inverted_cdf")
            assert numbers[name]["quantiles"][f"{q:g}"]["real"] == at
        similar = 1 - abs(np.mean(a) - np.mean(b)) / (max(a) - min(a))
        assert numbers[name]["mean"]["StatisticSimilarity"] == pytest.approx(similar, abs=1e-12)


def test_correlations_agree_with_numpy(found):
    facts = {tuple(e["columns"]): e for e in found.to_dict()["releases"]["other.csv"]["correlations"]}
    middle = np.array([10.0, 30.0, 50.0, 80.0])
    for values, side in ((REAL, "real"), (OTHER, "synthetic")):
        rows = [row for row in codes(values) if row[1] < 4]
        x, y = np.array([row[1] for row in rows], float), middle[[row[2] for row in rows]]
        assert facts["children", "age"][side] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
    entry = facts["children", "age"]
    assert entry["CorrelationSimilarity"] == pytest.approx(1 - abs(entry["real"] - entry["synthetic"]) / 2, abs=1e-12)


def test_cramers_v_agrees_with_chi_squared():
    table = np.array([[30.0, 10, 5], [20, 40, 15]]) / 120
    n, expected = 120, np.outer(table.sum(1), table.sum(0))
    chi = (n * (table - expected) ** 2 / expected).sum()
    assert scores.cramers_v(table) == pytest.approx(math.sqrt(chi / n), abs=1e-12)
    assert scores.cramers_v(np.array([[0.5, 0.5], [0, 0]])) == 0


def test_a_fresh_sample_is_as_far_away_as_it_says():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(40, 0.3))
    for n in (30, 1000):
        seen = np.mean([np.abs(rng.multinomial(n, p) / n - p).sum() / 2 for _ in range(4000)])
        assert from_sampling([p], n) == pytest.approx(seen, rel=0.03)


def test_models_are_compared_by_their_exact_tables():
    truth = networks.load("asia")
    rows = encode(truth.sample(500, random_state=1).to_frame(), truth.domain)
    found = evaluate(rows, {"asia": truth}, classifiers=False)
    assert found.releases[0].side.computed == "exactly"
    for clique in (("smoke",), ("smoke", "lung"), ("asia", "tub", "lung")):
        expected = truth.marginal(clique).probabilities
        assert np.allclose(found.table(found.releases[0].side, clique), expected, atol=1e-12)
    assert found.to_dict()["releases"]["asia"]["classifiers"] == []


def test_a_poor_method_is_seen_to_be_poor_and_where(found):
    good, poor = (found[name] for name in ("other.csv", "independent.csv"))
    assert found.verdict(good) == "good" and found.verdict(poor) == "poor"
    assert found.worst_pairs(poor, 1)[0][0] in {("smoke", "ill"), ("smoke", "age"), ("children", "age")}
    assert poor.pmse > 5 * good.pmse
    for target in good.classifiers:
        assert target.synthetic > target.real - 0.05
    ill = {t.target: t for t in poor.classifiers}["ill"] if "ill" in {t.target for t in poor.classifiers} else None
    assert ill is None or ill.synthetic < ill.real - 0.05


def test_hardly_nearer_than_independent_columns_is_poor_and_said(found):
    """A little of what there was to be learned; and where records are many, drawing is not to blame."""
    pair = Domain.of({"a": 2, "b": 2})
    rows = encode({"a": [0] * 5000 + [1] * 5000, "b": [0] * 4000 + [1] * 5000 + [0] * 1000}, pair)
    other = encode({"a": [0] * 5000 + [1] * 5000, "b": [0] * 2560 + [1] * 5000 + [0] * 2440}, pair)
    here = evaluate(rows, {"other": other}, classifiers=False)
    assert "other is poor." in (said := here.sentence(here["other"]))
    assert "independent columns would be hardly further" in said and "drawing" not in said


def test_independent_columns_are_poor_where_few_of_many_depend():
    """All pairs but those of neighbours are nearly independent: on average little is missed, but all there was."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(1400, 25))
    for i in range(1, 25):
        z[:, i] = 0.8 * z[:, i - 1] + 0.6 * z[:, i]
    codes = np.clip(((z + 2) * 1.5).astype(int), 0, 5)
    wide = Domain.of({f"x{i}": 6 for i in range(25)})

    def side(values):
        return encode({f"x{i}": values[:, i] for i in range(25)}, wide)

    found = evaluate(
        side(codes[:700]),
        {"apart": side(rng.permuted(codes[:700], axis=0)), "fresh": side(codes[700:])},
        triples=0,
        classifiers=False,
    )
    said = found.sentence(found["apart"])
    assert "drawing has its part: 700 records are about" in said and "independent columns would be hardly" not in said
    mean, alone, fresh = found._means(found["apart"])
    assert fresh < alone < mean < 2 * fresh
    assert found.verdict(found["apart"]) == "poor" and found.verdict(found["fresh"]) == "good"
    unrelated = rng.integers(0, 6, size=(1400, 25))
    again = evaluate(side(unrelated[:700]), {"fresh": side(unrelated[700:])}, triples=0, classifiers=False)
    assert again.verdict(again["fresh"]) == "good"


def test_files_and_memory_give_the_same(tmp_path, found):
    for name, values in (("rows.csv", REAL), ("other.csv", OTHER)):
        lines = [
            ",".join(values),
            *(",".join("" if v is None else str(v) for v in r) for r in zip(*values.values(), strict=True)),
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files = [open_table(tmp_path / name, DOMAIN) for name in ("rows.csv", "other.csv")]
    again = evaluate(files[0], {"other.csv": files[1]}, targets=["ill"]).to_dict()["releases"]["other.csv"]
    before = found.to_dict()["releases"]["other.csv"]
    for key in ("columns", "pairs", "triples", "correlations", "numbers"):
        assert again[key] == before[key]
    assert [c["target"] for c in again["classifiers"]] == ["ill"]


def test_every_form_says_that_it_must_not_be_published(found):
    assert found.to_dict()[PRIVATE_MARK] == WARNING and str(found).startswith(WARNING)
    assert "must not be published" in WARNING


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match="nothing to compare"):
        evaluate(ROWS, {})
    with pytest.raises(InputError, match="other columns or levels"):
        evaluate(ROWS, {"x": networks.load("asia")})
    found = Domain([Attribute("a", edges=(0, 1, 2), found=frozenset({"edges"}))])
    with pytest.raises(InputError, match=r"own by itself.*records of several under one schema"):
        evaluate(ROWS, {"x": encode({"a": [0.5]}, found)})
    with pytest.raises(InputError, match="holds no rows"):
        evaluate(ROWS, {"x": encode({n: [] for n in DOMAIN}, DOMAIN)})
    with pytest.raises(InputError):
        evaluate(ROWS, {"x": SYNTHETIC}, targets=["nope"])


def test_what_cannot_be_compared_is_refused_before_a_row_is_read(monkeypatch):
    """Each of two releases has found bins of its own: nothing is counted before that is said."""
    read = []
    monkeypatch.setattr("discreet.evaluate.evaluation.rows_side", lambda *_, **__: read.append(1))
    own = [Domain([Attribute("a", edges=(0, at, 2), found=frozenset({"edges"}))]) for at in (0.5, 1)]
    first, second = (encode({"a": [0.1, 1.5]}, domain) for domain in own)
    with pytest.raises(InputError, match=r"second has other bins .* own by itself"):
        evaluate(first, {"first": first, "second": second})
    assert not read


def test_one_column_few_rows_and_constant_columns_are_no_reason_to_fail():
    one = Domain.of({"a": 2})
    found = evaluate(encode({"a": [0, 1]}, one), {"x": encode({"a": [0, 0]}, one)})
    assert "Its column is 0.5 away" in str(found)
    two = Domain.of({"a": 2, "b": 3})
    rows = encode({"a": [0] * 60, "b": [1] * 60}, two)
    uniform = BayesianNetwork(two, {"a": (), "b": ()}, {"a": np.full(2, 0.5), "b": np.full(3, 1 / 3)}, None)
    found = evaluate(rows, {"uniform": uniform})
    assert found.to_dict()["releases"]["uniform"]["correlations"][0]["real"] is None
    assert "fewer than 40 rows" in str(evaluate(encode({"a": [0, 1], "b": [1, 2]}, two), {"uniform": uniform}))


def test_plots_are_axes(found):
    from discreet.evaluate.plots import distances, heat_map

    axes = heat_map(found, "other.csv")
    assert axes.get_title() == "other.csv" and len(axes.get_xticklabels()) == len(DOMAIN)
    lines = distances(found).get_lines()
    assert len(lines) == 4 and float(lines[0].get_ydata()[0]) == found["other.csv"].pairs.max()
    with pytest.raises(InputError, match="matplotlib Axes"):
        heat_map(found, "other.csv", ax="plot.png")
