"""The membership attack: below the promise for honest learners, above it for planted bugs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import planted
import pytest

from discreet import ApproxDP, Curator, Domain, PrivacyUnit, PureDP, resolve
from discreet.audit.attack import Attack, attack, attack_spec, most_true_alarms, promised_advantage
from discreet.audit.attack_page import attack_html
from discreet.errors import InputError
from discreet.methods import METHODS
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.query import Marginals

DOMAIN = Domain.of({"a": 3, "b": 2})
ROW, FOUR = PrivacyUnit(), PrivacyUnit("person", max_rows=4)
RUNS = 200
SLOW = ("stable_mode",)  # half a second a run, by blocks that vote: its parts are audited by themselves


class QuarterOfTheNoise(SecureGateway):
    def add_noise(self, call: NoiseCall, values: Any) -> Any:
        return super().add_noise(NoiseCall(call.kind, call.scale / 4, call.sensitivity), values)


def measure(query):
    return lambda curator: curator.measure(query)


def every_table_with_the_whole_budget(curator):
    """Composition is forgotten: each of eight tables is paid for as if it were the only one."""
    out = []
    for _ in range(8):
        again = Curator(curator._source, curator.unit, curator.budget)
        out.append(again.measure(Marginals(curator.domain, [("a",)])))
    return out


def made_with(gateway):
    return lambda table, unit, budget: Curator(table, unit, budget, gateway=gateway)


PLANTED = {
    "a person of four rows paid as one row": (measure(planted.HalfSensitivity(DOMAIN, [("a",)])), FOUR, {}),
    "composition forgotten": (every_table_with_the_whole_budget, ROW, {}),
    "a quarter of the noise": (measure(Marginals(DOMAIN, [("a",)])), ROW, {"make": made_with(QuarterOfTheNoise())}),
    "private n used as public": (planted.private_n_used_as_public, ROW, {}),
    "early stop on private data": (planted.early_stop_on_private_data, ROW, {}),
    "reused noise": (planted.reused_noise, ROW, {}),
    "error echoing a value": (planted.error_echoing_a_value, ROW, {}),
    "data-derived domain": (planted.domain_from_data, ROW, {}),
    "the same noise again": (measure(Marginals(DOMAIN, [("a",)])), ROW, {"make": made_with(planted.SameNoiseAgain())}),
}


# Replay finds the others in every run (test_planted_bugs.py).
OFTEN = ("composition forgotten", "a quarter of the noise", "early stop on private data")


@pytest.mark.chance
@pytest.mark.parametrize("name", [n if n in OFTEN else pytest.param(n, marks=pytest.mark.slow) for n in PLANTED])
def test_a_planted_bug_exceeds_the_promise(name):
    fit, unit, more = PLANTED[name]
    found = attack(fit, DOMAIN, unit, PureDP(1), runs=RUNS, **more)
    assert found.epsilon_at_least > 1 and not found.passed, found
    assert not found.finding.passed and "BEWARE" in str(found)


@pytest.mark.chance
@pytest.mark.parametrize("budget", [PureDP("0.5"), PureDP(2), ApproxDP(1, "1e-6")], ids=str)
@pytest.mark.parametrize("unit", [ROW, PrivacyUnit(relation="replace-one"), FOUR], ids=str)
def test_an_honest_table_stays_below_the_promise(unit, budget):
    assert attack(measure(Marginals(DOMAIN, [("a",)])), DOMAIN, unit, budget, runs=60).passed


@pytest.mark.chance
def test_the_attack_is_strong():
    """Of one noisy count the likelihood ratio is as good as any attack can be: it reaches most of the promise."""
    found = attack(measure(Marginals(DOMAIN, [("a",)])), DOMAIN, ROW, PureDP(2), runs=600)
    assert found.passed and found.advantage > 0.75 * found.promise, found


@pytest.mark.chance
def test_a_specification_beside_no_protection():
    spec = resolve(DOMAIN, family="network", graph="a -> b")
    found = attack_spec(spec, DOMAIN, ROW, PureDP(1), runs=40)
    assert found.passed and found.unprotected == 1.0
    facts = found.to_dict()
    assert facts["passed"] and json.dumps(facts)
    assert found.curve[0] == (0.0, 0.0) and found.curve[-1] == (1.0, 1.0)
    axes = found.plot()
    assert "false alarms" in axes.get_xlabel()
    html = attack_html(found, str(spec), ROW)
    assert "Without protection" in html and "<script" not in html and "the promise" in html
    with pytest.raises(InputError, match="40 runs"):
        attack_spec(spec, DOMAIN, ROW, PureDP(1), runs=10)


def test_what_is_promised():
    assert promised_advantage(0.0, 0.0) == 0 and promised_advantage(1000.0, 0.0) == 1
    e = np.exp(1)
    assert promised_advantage(1.0, 0.0) == pytest.approx((e - 1) / (e + 1))
    assert promised_advantage(1.0, 0.01) == pytest.approx((e - 1 + 0.02) / (e + 1))
    x = np.linspace(0, 1, 1001)
    gain = most_true_alarms(x, 1.0, 0.01) - x
    assert gain.max() == pytest.approx(promised_advantage(1.0, 0.01), abs=1e-3) and gain.min() >= 0


def test_public_rows_are_the_crowd(tmp_path, monkeypatch, capsys):
    from discreet.cli import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text('[columns.a]\nlevels = [0, 1, 2]\n\n[columns.b]\nlevels = ["x", "y"]\n')
    (tmp_path / "public.csv").write_text("a,b\n0,x\n1,y\n1,y\n")
    line = ["attack", "--schema", "schema.toml", "--epsilon", "1", "--graph", "a -> b", "--runs", "40"]
    assert run([*line, "--public-rows", "public.csv", "--json", "-o", "attack.html"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert "the public rows" in facts["canary"] and (tmp_path / "attack.html").exists()
    assert run([*line[:-1], "10"]) == 2 and "at least 40" in capsys.readouterr().err
    assert run([*line, "-o", "attack.png"]) == 2


def test_a_result_says_when_it_is_a_bug():
    bad = Attack(PureDP(1), 1.0, 0.0, "any", 100, 0.9, (0.8, 0.95), 0.7, 3.0, 1.0, ((0.0, 0.0), (1.0, 1.0)))
    assert not bad.passed and "do not release anything" in str(bad)
    good = Attack(PureDP(1), 1.0, 0.0, "any", 100, 0.1, (-0.1, 0.2), -0.1, 0.2, None, ((0.0, 0.0), (1.0, 1.0)))
    assert good.passed and "Without protection" not in str(good)


@pytest.mark.slow
@pytest.mark.chance
@pytest.mark.parametrize("method", [pytest.param(m, id=f"{m.family} {m.name}") for m in METHODS if m.name not in SLOW])
def test_every_method_stays_below_the_promise(method):
    said = {method.needs: {"graph": "a -> b", "cliques": "a,b"}[method.needs]} if method.needs else {}
    no_default = {
        "maximal_monomials": {"order": 2, "min_weight": 0.3},
        "stable_mode": {"min_weight": 0.3, "width": 1.0},
    }
    options = no_default.get(method.name, {})
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    spec = resolve(domain, family=method.family, method=method.name, options=options, **said)
    for budget in (PureDP("0.5"), ApproxDP(2, "1e-6")):
        assert attack_spec(spec, domain, ROW, budget, runs=60).passed
