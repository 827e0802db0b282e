"""Questions about numbers against brute force: every record of a small model, every number of every bin."""

import itertools
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from discreet.conditions import NumberLine, number_line
from discreet.dates import Dates
from discreet.domain import Attribute, Domain
from discreet.errors import EvidenceError, InputError, SchemaError
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.measurement import Measurements, Noise
from discreet.models import BayesianNetwork, MarkovRandomField
from discreet.models.convert import to_markov
from discreet.models.density import Density
from discreet.models.records import Records
from discreet.privacy.curator import ExactCurator
from discreet.privacy.query import Marginals
from discreet.release.uncertainty import noise_intervals
from discreet.schema import parse_schema
from discreet.tables.encode import encode

DOMAIN = Domain(
    (
        Attribute.categorical("job", ["sales", "nurse", "x y"]),
        Attribute.numeric("age", [17, 25, 30, 48, 60], integer=True, missing="unknown"),
        Attribute.numeric("hours", [1, 20, 50, 99], integer=True, heaps=[40, 35], missing="none", other="odd"),
        Attribute.categorical("visits", 4),
    )
)
PARENTS = {"age": ["job"], "hours": ["age"], "visits": ["job", "hours"]}


def network(seed=0):
    rng = np.random.default_rng(seed)
    tables = {}
    for name in DOMAIN:
        shape = [DOMAIN[n].size for n in (*PARENTS.get(name, []), name)]
        tables[name] = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    return BayesianNetwork(DOMAIN, PARENTS, tables)


MODEL = network()


def cells_of(model, name):
    """Numbers of each code of a column with their probabilities; None for a code that is no number."""
    line = number_line(model.domain[name])
    if line is None:
        return [[(label, 1.0)] for label in model.domain[name].labels]
    density, out = model.density(name), []
    taken = set(line.points.values())
    for code in range(model.domain[name].size):
        if code in line.points:
            out.append([(line.points[code], 1.0)])
        elif code < line.bins:
            first, last = line.edges[code], line.edges[code + 1] + (code == line.bins - 1)
            numbers = [x for x in np.arange(first, last) if x not in taken]
            p = [density.part(x, x + 1).share[code] for x in numbers]
            assert sum(p) == pytest.approx(1)
            out.append(list(zip(numbers, p, strict=True)))
        else:
            out.append([(None, 1.0)])
    return out


def everything(model):
    """All records as (probability, values, codes)."""
    cells = [cells_of(model, name) for name in model.domain]
    joint = np.exp(model.log_prob(np.array(list(np.ndindex(model.domain.shape)))))
    for codes, p in zip(np.ndindex(model.domain.shape), joint, strict=True):
        for combination in itertools.product(*(cells[j][c] for j, c in enumerate(codes))):
            values = {n: v for n, (v, _) in zip(model.domain, combination, strict=True)}
            yield p * np.prod([q for _, q in combination]), values, dict(zip(model.domain, codes, strict=True))


# Enumerated once: age and hours are independent of the rest within their bins, so numbers of one of them suffice.
ALL = None


def records():
    global ALL
    ALL = ALL or list(everything(MODEL))
    return ALL


def is_number(x):
    return x is not None


QUESTIONS = [
    ("P(age >= 40)", lambda v: is_number(v["age"]) and v["age"] >= 40, lambda v: True),
    ("P(age > 40 | job=sales)", lambda v: is_number(v["age"]) and v["age"] > 40, lambda v: v["job"] == "sales"),
    ("P(20 <= age < 33 | hours > 38)", lambda v: is_number(v["age"]) and 20 <= v["age"] < 33,
     lambda v: is_number(v["hours"]) and v["hours"] > 38),
    ("P(hours=40 | hours >= 36)", lambda v: v["hours"] == 40, lambda v: is_number(v["hours"]) and v["hours"] >= 36),
    ("P(hours < 40, age >= 28 | visits in {1, 3}, job != nurse)",
     lambda v: is_number(v["hours"]) and v["hours"] < 40 and is_number(v["age"]) and v["age"] >= 28,
     lambda v: v["visits"] in (1, 3) and v["job"] != "nurse"),
    ("P(age < 44 | age >= 22, age <= 51)", lambda v: v["age"] < 44,
     lambda v: is_number(v["age"]) and 22 <= v["age"] <= 51),
    ("P(known(hours) | visits > 1)", lambda v: is_number(v["hours"]), lambda v: v["visits"] > 1),
    ("P(job not in {'x y', sales} | visits != 2, age <= 30)", lambda v: v["job"] == "nurse",
     lambda v: v["visits"] != 2 and is_number(v["age"]) and v["age"] <= 30),
]  # fmt: skip


@pytest.mark.parametrize(("text", "event", "given"), QUESTIONS, ids=[q[0] for q in QUESTIONS])
def test_probabilities(text, event, given):
    total = sum(p for p, v, _ in records() if given(v))
    wanted = sum(p for p, v, _ in records() if given(v) and event(v)) / total
    for model in (MODEL, to_markov(MODEL)):
        answer = model.ask(text)
        assert float(answer) == pytest.approx(wanted, rel=1e-9)
        assert answer.title.replace(" ", "") == text.replace(" ", "").replace("'xy',sales", 'sales,"xy"')


NUMBERS = [
    ("age", "", lambda v: True),
    ("age", "job=nurse, hours >= 40", lambda v: v["job"] == "nurse" and is_number(v["hours"]) and v["hours"] >= 40),
    ("hours", "35 < hours <= 60", lambda v: is_number(v["hours"]) and 35 < v["hours"] <= 60),
    ("hours", "age < 28, known(hours)", lambda v: is_number(v["age"]) and v["age"] < 28),
    ("visits", "age >= 50", lambda v: is_number(v["age"]) and v["age"] >= 50),
]


@pytest.mark.parametrize(("name", "condition", "given"), NUMBERS)
def test_means_deviations_and_quantiles(name, condition, given):
    rows = [(v[name], p) for p, v, _ in records() if given(v) and is_number(v[name])]
    x, p = (np.array(column) for column in zip(*rows, strict=True))
    p = p / p.sum()
    bar = f" | {condition}" if condition else ""
    mean = p @ x
    assert float(MODEL.ask(f"E({name}{bar})")) == pytest.approx(mean, rel=1e-9)
    assert float(MODEL.ask(f"SD({name}{bar})")) == pytest.approx(np.sqrt(p @ (x - mean) ** 2), rel=1e-9)
    order = np.argsort(x)
    upto = np.cumsum(p[order])
    for q in (0, 0.1, 0.5, 0.77, 0.999):
        wanted = x[order][np.searchsorted(upto, max(q, 1e-12) - 1e-13)]
        assert float(MODEL.ask(f"QUANTILE({name}, {q}{bar})")) == wanted


def test_whole_tables():
    answer = MODEL.ask("E(age | job, visits >= 2)")
    assert answer.names == answer.given_names == ("job",) and answer.title == "E(age | job, visits >= 2)"
    for label, mean in answer:
        assert mean == pytest.approx(float(MODEL.ask(f"E(age | job='{label[0]}', visits >= 2)")))
    table = MODEL.ask("P(visits, age >= 30 | job, hours)")
    assert table.names == ("job", "hours", "visits")
    assert table["nurse", "40", 2] == pytest.approx(float(MODEL.ask("P(visits=2, age >= 30 | job=nurse, hours=40)")))
    np.testing.assert_allclose(np.asarray(MODEL.ask("P(age | job)")), MODEL.conditional("age", ["job"]).probabilities)


def test_an_answer_says_of_whom_it_is():
    part = float(MODEL.ask("P(known(age))"))
    answer = MODEL.ask("E(age)")
    assert answer.remark == f"of those whose age is known, {100 * part:.3g} % of records" and answer.remark in repr(
        answer
    )
    assert answer.to_dict()["remark"] == answer.remark and answer.to_dict()["cells"] == [
        {"levels": [], "mean": float(answer)}
    ]
    assert MODEL.ask("E(age | age > 20)").remark == MODEL.ask("E(visits)").remark == ""
    assert list(MODEL.ask("SD(age | job)").to_frame("pandas").columns) == ["job", "deviation"]


def test_what_cannot_be_is_said():
    zero = MarkovRandomField(
        Domain.of({"a": 2, "x": Attribute.numeric("x", [0, 1, 2])}),
        {("a", "x"): np.array([[0.0, -np.inf], [0.0, 0.0]])},
    )
    with pytest.raises(EvidenceError, match="a=0, x >= 1, has probability 0"):
        zero.ask("P(x | x >= 1, a=0)")
    with pytest.raises(EvidenceError, match=r"x < 0\.5, x > 0\.7, has probability 0"):
        zero.ask("P(a | x < 0.5, x > 0.7)")
    assert float(zero.ask("P(x < 0.5 | x >= 0.7)")) == 0
    assert float(zero.ask("P(x >= 1 | a=0)")) == 0
    assert zero.ask("MAP(a | x >= 1)")["a"] == 1 and zero.ask("MAP(a | x >= 1)").title == "MAP(a | x >= 1)"


@pytest.mark.parametrize("method", ["loopy", "gibbs"])
def test_approximations_answer_the_same_questions(method):
    tree = BayesianNetwork(
        DOMAIN.project(["job", "age"]), {"age": ["job"]}, {n: MODEL.tables[n] for n in ("job", "age")}
    )
    for text in ("P(age >= 40 | job != nurse)", "P(age < 30 | age >= 20)", "E(age | job)", "P(job | age > 33)"):
        exact, found = (np.asarray(tree.ask(text, method=m, random_state=0)) for m in ("exact", method))
        np.testing.assert_allclose(found, exact, rtol=1e-6 if method == "loopy" else 0.1)


# -- the density -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_density_is_continuous_and_keeps_the_mass_of_bins(seed):
    rng = np.random.default_rng(seed)
    edges = np.cumsum(rng.exponential(size=9))
    mass = rng.dirichlet(np.ones(8))
    density = Density(NumberLine(tuple(edges), {}, None), mass)
    pieces = density.whole
    b, height = pieces.coefficients, pieces.mass * mass[pieces.home] / (pieces.high - pieces.low)
    assert (b >= 0).all() and b.sum(axis=1) == pytest.approx(3)
    np.testing.assert_allclose((b[:, 2] * height)[:-1], (b[:, 0] * height)[1:])
    below = [(density.part(-np.inf, e).share * mass).sum() for e in edges]
    np.testing.assert_allclose(below, np.append(0, np.cumsum(mass)), atol=1e-12)
    cut = np.sort(rng.uniform(edges[0], edges[-1], 3))
    parts = (
        density.part(-np.inf, cut[0]).share + density.part(cut[0], cut[1]).share + density.part(cut[1], np.inf).share
    )
    np.testing.assert_allclose(parts, 1)


def test_smooth_masses_are_interpolated_as_scipy_does():
    edges = np.linspace(0, 10, 11)
    cumulated = (edges + edges**2 / 20) / 15
    mass = np.diff(cumulated)
    density = Density(NumberLine(tuple(edges), {}, None), mass)
    curve = PchipInterpolator(edges, cumulated)
    for x in np.linspace(0.1, 9.9, 50):
        assert (density.part(-np.inf, x).share * mass).sum() == pytest.approx(float(curve(x)), abs=1e-12)


@pytest.mark.parametrize("masses", [[0, 0, 0], [1, 0, 0], [0, 1e-300, 1], [1, 1, 1], [1e-18, 1, 1e-18]])
@pytest.mark.parametrize("edges", [[0, 1, 2, 3], [0, 1e-9, 1e9, 1e300], [-1e308, 0, 1, 1e308], [-3, -2.5, 0, 7]])
@pytest.mark.parametrize("decimals", [None, 2])
def test_odd_masses_and_edges(masses, edges, decimals):
    density = Density(NumberLine(tuple(map(float, edges)), {}, decimals), np.array(masses, dtype=float))
    x = density.draw(np.repeat([0, 1, 2], 50), np.random.default_rng(0))
    assert np.isfinite(x).all()
    for bin_ in range(3):
        mine = x[50 * bin_ : 50 * bin_ + 50]
        assert (mine >= edges[bin_]).all() and (mine <= edges[bin_ + 1]).all()
        if bin_ < 2 and density.on_grid:
            assert (mine < edges[bin_ + 1]).all()
    if max(np.abs(edges)) < 1e300:
        mean, variance = density.moments()
        assert np.isfinite(mean).all() and (variance >= 0).all()


def test_numbers_drawn_and_numbers_answered_are_the_same():
    codes = np.repeat(np.arange(DOMAIN["hours"].size), 40_000)
    density = MODEL.density("hours")
    rng = np.random.default_rng(1)
    x = density.draw(codes, rng)
    mean, variance = density.moments()
    for code in range(DOMAIN["hours"].size):
        mine = x[codes == code]
        if code >= 5:
            assert np.isnan(mine).all()
            continue
        assert np.isnan(mean[code]) == False and np.all(mine == np.floor(mine))  # noqa: E712
        assert mine.mean() == pytest.approx(mean[code], abs=5 * np.sqrt(variance[code] / len(mine)) + 1e-9)
        assert mine.var() == pytest.approx(variance[code], rel=0.05, abs=1e-9)
        assert (code in (3, 4)) == (set(np.unique(mine)) <= {35.0, 40.0}), "heaps are exact, and nowhere else"
    some = density.draw(codes, rng, 30, 45)
    assert set(np.unique(some[codes == 1])) == set(range(30, 45)) - {35, 40}


@pytest.mark.parametrize("bins", [6, 12, 32])
@pytest.mark.parametrize("shape", ["exponential", "normal", "lognormal"])
def test_a_long_last_bin_does_not_spoil_mean_and_deviation(shape, bins):
    """Equal-mass bins up to a public end that is far out, as one would declare it."""
    rng = np.random.default_rng(0)
    draw = {"exponential": rng.exponential, "normal": rng.standard_normal, "lognormal": rng.lognormal}[shape]
    x = 1000 * (draw(size=50_000) if shape != "lognormal" else rng.lognormal(0, 0.6, 50_000))
    edges = np.quantile(x, np.linspace(0, 1, bins + 1))
    edges[-1] = 2 * x.max()
    mass = np.histogram(x, edges)[0] / len(x)
    density = Density(NumberLine(tuple(edges), {}, None), mass)
    mean, variance = density.moments()
    total = mass @ mean
    assert total == pytest.approx(x.mean(), rel=0.03, abs=0.03 * x.std())
    found = np.sqrt(mass @ (variance + (mean - total) ** 2))
    # What falls off more slowly than exponentially is further out than the bins before tell.
    assert found == pytest.approx(x.std(), rel=0.08 if bins == 6 else 0.06 if shape == "lognormal" else 0.03)
    low, high = edges[:-1], edges[1:]
    flat = np.sqrt(mass @ ((high - low) ** 2 / 12 + ((low + high) / 2 - mass @ ((low + high) / 2)) ** 2))
    assert abs(flat - x.std()) > 3 * abs(found - x.std())


def test_a_fine_grid_is_as_good_as_cell_by_cell():
    attribute = Attribute.numeric("x", [0, 10, 1000, 5000], decimals=2)
    mass = np.array([0.5, 0.3, 0.2])
    fine = Density(number_line(attribute), mass)
    x = fine.draw(np.repeat([0, 1, 2], 50_000), np.random.default_rng(0))
    assert np.all(np.round(x, 2) == x) and x.min() >= 0 and x.max() <= 5000
    for code, (mean, variance) in enumerate(zip(*fine.moments(), strict=True)):
        mine = x[50_000 * code : 50_000 * (code + 1)]
        assert mine.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / 50_000))
        assert mine.var() == pytest.approx(variance, rel=0.03)


def test_dates_are_compared_by_their_days():
    domain = Domain((Attribute.of_dates("day", Dates("month", date(2024, 1, 10), date(2024, 3, 31))),))
    flat = MarkovRandomField(domain, {("day",): np.log([0.2, 0.5, 0.3])})
    assert float(flat.ask("P(day < 2024-02-01)")) == pytest.approx(0.2)
    assert float(flat.ask("P(day >= 2024-01-10)")) == pytest.approx(1)
    inside = float(flat.ask("P(2024-02-10 <= day <= 2024-02-20)"))
    assert 0 < inside < 0.5
    assert inside == pytest.approx(sum(float(flat.ask(f"P(2024-02-{d} <= day <= 2024-02-{d})")) for d in range(10, 21)))
    with pytest.raises(InputError, match="holds dates"):
        flat.ask("E(day)")


def test_intervals_of_numbers_are_not_cut_to_probabilities():
    measured = ExactCurator(encode(MODEL.sample(3000, 0).to_frame(), DOMAIN)).measure(Marginals(DOMAIN, [("age",)]))
    noisy = Measurements([replace(m, noise=Noise("laplace", 30.0)) for m in measured], measured.release)
    learner = NoiseAwareField([("age",)])
    model = learner.estimate(noisy, DOMAIN.project("age"))
    found = noise_intervals(learner.estimate, noisy, model, draws=8, random_state=0)
    mean = found.ask("E(age)")
    assert mean.lower < mean.estimate < mean.upper and mean.lower > 17 and mean.half_width < 5
    assert mean.answer.figure == "mean" and "of those whose age is known" in repr(mean)
    for text in ("SD(age)", "QUANTILE(age, 0.9)"):
        assert found.ask(text).upper > 1
    assert 0 <= found.ask("P(age >= 55)").lower <= found.ask("P(age >= 55)").upper <= 1


@pytest.mark.parametrize(
    ("entry", "step", "kind"),
    [
        ("edges = [0, 20, 47, 100]\nstep = 5\nheaps = [40]", 5, "int"),
        ("edges = [0, 1, 3.3, 9]\nstep = 0.15", 0.15, "float"),
        ("edges = [-3, 0.1, 2]\nstep = 0.25", 0.25, "float"),
    ],
)
def test_numbers_that_are_multiples_of_a_step(entry, step, kind, tmp_path):
    domain = parse_schema(f"[columns.x]\n{entry}\n")
    attribute = domain["x"]
    assert Attribute.from_dict("x", attribute.to_dict()) == attribute
    records = Records(domain, np.arange(3000)[:, None] % attribute.size).with_numbers(1)
    drawn = records["x"]
    assert drawn.dtype.kind == kind[0] and np.allclose(drawn / step, np.round(drawn / step), atol=1e-9)
    assert [attribute.code(x) for x in drawn.tolist()] == records.codes[:, 0].tolist(), "in the bin they were drawn for"
    records.to_csv(tmp_path / "x.csv")
    digits = max(len(text.partition(".")[2]) for text in (tmp_path / "x.csv").read_text().split()[1:])
    assert digits == (0 if kind == "int" else 2)
    density = Density(number_line(attribute), np.ones(attribute.size))
    mean, variance = density.moments()
    for code in range(attribute.size):
        own = drawn[records.codes[:, 0] == code].astype(float)
        assert abs(own.mean() - mean[code]) <= 5 * np.sqrt(variance[code] / len(own)) + 1e-9
    assert density.quantile(np.full(attribute.size, 1 / attribute.size), 0.5)[0] in drawn


def test_a_step_is_said_in_one_way():
    assert Attribute.numeric("x", [0, 9], step=1) == Attribute.numeric("x", [0, 9], integer=True)
    assert Attribute.numeric("x", [0, 9], step=0.01) == Attribute.numeric("x", [0, 9], decimals=2)
    private = parse_schema('[columns.x]\nbins = "private"\nrange = [0, 1000000]\nstep = 50\n')["x"]
    assert all(e % 50 == 0 for e in private.edges) and private.integer
    for wrong in ({"step": 0}, {"step": -5}, {"step": 5, "decimals": 2}, {"step": 0.5, "integer": True}):
        with pytest.raises(SchemaError, match="step"):
            Attribute.numeric("x", [0, 9], **wrong)
    with pytest.raises(SchemaError, match="step belongs to a column with edges"):
        Attribute.categorical("x", 2, step=5)
    for wrong in ("range = [0, 9]\nstep = 0", 'range = "private"\nstep = 5', "range = [0, 9.5]\nstep = 5"):
        with pytest.raises(SchemaError, match=r"step|whole"):
            parse_schema(f'[columns.x]\nbins = "private"\n{wrong}\n')


def test_where_numbers_lie_within_a_bin_can_be_known():
    """Of [0, 100), a quarter is below 10, and nothing between 20 and 90."""
    entry = "edges = [0, 100, 200]\ninteger = true\nspread = [[10, 0.25], [20, 0.5], [90, 0.5]]\n"
    column = parse_schema(f"[columns.x]\n{entry}")["x"]
    assert Attribute.from_dict("x", column.to_dict()) == column
    density = Density(number_line(column), np.array([0.5, 0.5]))
    x = density.draw(np.zeros(40_000, dtype=int), np.random.default_rng(0))
    assert not np.any((x >= 20) & (x < 90)) and x.min() == 0 and x.max() == 99
    assert np.mean(x < 10) == pytest.approx(0.25, abs=0.01) and np.mean(x < 20) == pytest.approx(0.5, abs=0.01)
    mean, variance = density.moments()
    assert mean[0] == pytest.approx(x.mean(), rel=0.01) and np.sqrt(variance[0]) == pytest.approx(x.std(), rel=0.01)
    assert density.part(20, 90).share[0] == 0 and density.part(10, 95).share[0] > 0.25
    assert density.quantile(np.array([[1.0, 0.0]]), 0.25)[0] == 9
    part = density.draw(np.zeros(4000, dtype=int), np.random.default_rng(0), 5, 95)
    assert (
        part.min() == 5
        and part.max() == 94
        and np.mean(part < 20) == pytest.approx(np.mean(x[(x >= 5) & (x < 95)] < 20), abs=0.03)
    )


@pytest.mark.parametrize(
    "spread",
    ["[[0, 0.5]]", "[[100, 0.5]]", "[[200, 0.5]]", "[[-1, 0.5]]", "[[5, 1.5]]", "[[5, -0.1]]", "[[5, nan]]",
     "[[nan, 0.5]]", "[[5, 0.5], [4, 0.6]]", "[[5, 0.5], [6, 0.4]]", "[[5]]", "[5, 0.5]", "0.5", '["5", "0.5"]',
     "[[5, true]]", "[[inf, 0.5]]", '"ab"', "[[[5], 0.5]]"],
)  # fmt: skip
def test_a_spread_that_no_bins_can_have_is_refused(spread):
    with pytest.raises(SchemaError, match=r"column 'x'.*spread"):
        parse_schema(f"[columns.x]\nedges = [0, 100, 200]\nspread = {spread}\n")


@pytest.mark.parametrize("entry", ['levels = ["a"]', 'bins = "private"\nrange = [0, 9]', 'dates = {by = "weekday"}'])
def test_a_spread_belongs_to_edges(entry):
    with pytest.raises(SchemaError, match=r"column 'x'.*spread belongs to"):
        parse_schema(f"[columns.x]\n{entry}\nspread = [[5, 0.5]]\n")
