"""What more ε would buy, before a row is read; and whether that is what then happens."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet import ZCDP, ApproxDP, Curator, Domain, PrivacyUnit, PureDP, encode, networks, resolve
from discreet.cli import run
from discreet.errors import InputError
from discreet.evaluate import evaluate
from discreet.schema import parse_schema
from discreet.sweeps import spaced, sweep

ASIA = networks.load("asia").domain
ROW = PrivacyUnit()


@pytest.mark.chance
@pytest.mark.parametrize(
    ("name", "epsilon", "size"),
    [
        ("sachs", "0.3", 10_000),
        ("sachs", "1", 10_000),
        ("sachs", "1", 2000),
        ("child", "1", 10_000),
        pytest.param("child", "0.3", 10_000, marks=pytest.mark.slow),
        pytest.param("alarm", "1", 10_000, marks=pytest.mark.slow),
    ],
)
def test_the_forecast_of_the_default_is_what_happens_within_a_factor(name, epsilon, size):
    truth = networks.load(name)
    rows, budget = encode(truth.sample(size, random_state=3).to_frame(), truth.domain), ApproxDP(epsilon, "1e-6")
    spec = resolve(truth.domain)
    ((expected,),) = sweep(spec, truth.domain, ROW, budget, sizes=[size]).errors
    with Curator(rows, ROW, budget) as curator:
        model = spec.learn(curator).model
    seen = float(evaluate(rows, {"it": model}, triples=0, classifiers=False)["it"].pairs.mean())
    assert 1 / 1.5 < expected / seen < 1.5


@pytest.mark.chance
def test_known_tables_have_the_error_that_is_forecast():
    """Of a batch of noisy tables the mean error is what noise of this scale makes, exactly."""
    truth = networks.load("asia")
    rows = encode(truth.sample(2000, random_state=1).to_frame(), ASIA)
    cliques = [["smoke", "lung"], ["smoke", "bronc"], ["lung", "xray"], ["bronc", "dysp"]]
    spec = resolve(ASIA, family="field", cliques=cliques)
    ((expected,),) = sweep(spec, ASIA, ROW, PureDP("0.5"), sizes=[2000]).errors
    seen = []
    for _ in range(60):
        with Curator(rows, ROW, PureDP("0.5")) as curator:
            noisy = spec.prepare(ASIA, ROW, PureDP("0.5")).run(curator)
        tables = [m for m in noisy if m.clique]
        exact = rows.count([m.clique for m in tables])
        seen += [np.abs(m.values - x).sum() / 4000 for m, x in zip(tables, exact, strict=True)]
    assert expected == pytest.approx(np.mean(seen), rel=0.15)


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6"), ZCDP("0.1")], ids=str)
@pytest.mark.parametrize("options", [{}, {"family": "network"}, {"graph": "smoke -> lung"}], ids=str)
def test_more_budget_and_more_records_are_never_worse(budget, options):
    found = sweep(resolve(ASIA, **options), ASIA, ROW, budget, amounts=[0.1, 1, 10], sizes=[100, 1000, 10_000])
    errors = np.array(found.errors)
    assert errors.shape == (3, 3) and (errors > 0).all() and (errors <= 1).all()
    assert (np.diff(errors, axis=0) <= 0).all() and (np.diff(errors, axis=1) <= 0).all()
    assert found.symbol == ("ρ" if isinstance(budget, ZCDP) else "ε") and found.amounts == (0.1, 1, 10)
    assert found.plot().get_ylabel() == "expected total variation"
    assert json.dumps(found.to_dict())


def test_columns_that_are_left_open_are_counted_at_their_largest_and_that_is_said():
    spec, budget = resolve(ASIA), ApproxDP(1, "1e-6")
    assert "at most" not in sweep(spec, ASIA, ROW, budget, sizes=[1000]).what
    open_ = parse_schema('[columns.a]\nlevels = "discover"\n[columns.b]\nlevels = ["x", "y"]\n')
    said = sweep(resolve(open_), open_, ROW, budget, sizes=[1000]).what
    assert "at most, since what is to be found of a is counted at its largest (`most`, `at_most`)" in said


def test_ranges():
    assert spaced(0.1, 10) == (0.1, 0.22, 0.46, 1.0, 2.2, 4.6, 10.0) and spaced(3, 3) == (3,)
    for low, high in ((0, 1), (2, 1), (-1, 1), (1, float("inf"))):
        with pytest.raises(InputError, match=r"as in 0\.1:10"):
            spaced(low, high)
    with pytest.raises(InputError, match="at least 1"):
        sweep(resolve(ASIA), ASIA, ROW, PureDP(1), sizes=[0])
    with pytest.raises(InputError, match="discreet bounds"):
        two = Domain.of({"a": 2, "b": 2})
        sweep(resolve(two, family="spin", method="frank_wolfe"), two, ROW, PureDP(1))


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text('[columns.a]\nlevels = [0, 1, 2]\n\n[columns.b]\nlevels = ["x", "y"]\n')
    line = ["plan", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6"]
    assert run([*line, "--sweep", "epsilon=0.1:10"]) == 0
    out = capsys.readouterr().out
    assert "No row has been read" in out and "n = 1,000,000" in out and "rough forecast" in out
    assert run([*line, "--sweep", "epsilon=0.5", "--sweep", "records=100:1e4", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["sweep"]
    assert len(facts["records"]) == 7 and len(facts["expected_total_variation"]) == 1
    assert run([*line, "--approximate-size", "500", "--sweep", "epsilon=1:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sweep"]["records"] == [500.0]
    for wrong in ("delta=1:2", "epsilon=x:2", "epsilon=2:1", "records=0:5", "epsilon"):
        assert run([*line, "--sweep", wrong]) == 2, wrong
    assert run([*line, "--sweep", "epsilon=1:2", "--sweep", "epsilon=1:3"]) == 2
