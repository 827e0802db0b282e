"""``discreet bounds``: words, a table, JSON, and what goes wrong."""

import json
import math

import pytest

from discreet.cli.app import run
from discreet.papers.theory import advise

ASKED = ["bounds", "--p", "64", "--edge-weight", "0.35", "--epsilon", "1", "--delta", "1e-6"]


def test_words_and_a_table(capsys):
    assert run(ASKED) == 0
    out = capsys.readouterr().out
    assert "64 binary columns, edges of weight at least 0.35, width 1.05 (assumed" in out
    lines = [line for line in out.splitlines() if line.startswith(("graph ", "parameters to 0.1 "))]
    assert len(lines) == 8
    for notion in ("no privacy", "(ε, δ) = (1, 1e-06)", "zCDP, ρ = 0.0244", "pure, ε = 1"):
        assert sum(notion in line for line in lines) == 2
    assert "proved" in out
    assert "not proved" in out
    assert "with n" not in out


def test_what_my_records_allow(capsys):
    assert run([*ASKED, "--n", "20"]) == 0
    out = capsys.readouterr().out
    assert "From 20 records the graph is impossible with no privacy" in out
    assert run([*ASKED, "--n", "10000000"]) == 0
    out = capsys.readouterr().out
    assert "From 10,000,000 records the graph can be learned with no privacy" in out
    assert "take it well below 1/n" in out


def test_json_is_the_advice_and_finite(capsys):
    assert run([*ASKED, "--json", "--width", "200"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=lambda x: pytest.fail(x))
    assert len(found["answers"]) == 8
    assert run([*ASKED, "--n", "5000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(advise(64, edge_weight=0.35, epsilon=1, delta=1e-6, n=5000).to_dict()))
    statuses = {a[side]["constant"] for a in found["answers"] for side in ("every_method_needs", "ours_needs")}
    assert statuses == {"proved", "calibrated"}


def test_other_families_and_budgets(capsys):
    assert run(["bounds", "--p", "20", "--k", "3", "--edge-weight", "0.5", "--rho", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "20 columns of 3 levels" in out
    assert "PairwiseField" in out
    assert "pure" not in out.splitlines()[2]
    assert run(["bounds", "--p", "20", "--t", "3", "--edge-weight", "0.5", "--epsilon", "1", "--rho", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "SpinField of order 3" in out
    assert "zCDP, ρ = 0.1" in out
    assert "pure, ε = 1" in out
    assert "(ε, δ) =" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--edge-weight", "0.3", "--epsilon", "1"], ["--p (how many columns)", "discreet bounds --p 64"]),
        (["--p", "9", "--epsilon", "1"], ["--edge-weight", "as in"]),
        (["--p", "9", "--edge-weight", "0.3"], ["budget", "--epsilon 1", "--rho"]),
        (["--p", "9", "--edge-weight", "0.3", "--delta", "1e-6"], ["--delta 1e-6", "--epsilon"]),
        (["--p", "1", "--edge-weight", "0.3", "--epsilon", "1"], ["--p must", "at least 2", "got 1"]),
        (["--p", "9", "--edge-weight", "-0.3", "--epsilon", "1"], ["--edge-weight must", "positive", "-0.3"]),
        (["--p", "9", "--edge-weight", "nan", "--epsilon", "1"], ["--edge-weight must", "positive"]),
        (["--p", "9", "--edge-weight", "0.3", "--epsilon", "0"], ["epsilon", "positive"]),
        (["--p", "9", "--edge-weight", "0.3", "--rho", "-1"], ["rho", "positive"]),
        (["--p", "9", "--edge-weight", "0.3", "--epsilon", "1", "--delta", "2"], ["delta", "below 1"]),
        (
            ["--p", "9", "--edge-weight", "0.3", "--epsilon", "1", "--k", "3", "--t", "3"],
            ["no bounds", "--k 3", "--t 3"],
        ),
        (["--p", "9", "--edge-weight", "0.3", "--epsilon", "1", "--width", "0.1"], ["width", "at least 0.3", "0.1"]),
        (["--p", "9", "--edge-weight", "0.3", "--epsilon", "1", "--alpha", "0"], ["--alpha must", "positive"]),
        (["--p", "9", "--edge-weight", "0.3", "--epsilon", "1", "--n", "0"], ["--n must", "at least 1"]),
        (["--p", "2.5", "--edge-weight", "0.3", "--epsilon", "1"], ["--p", "whole number"]),
        (["--p", "9", "--edge-weigth", "0.3", "--epsilon", "1"], ["--edge-weigth", "--edge-weight"]),
        (["--p", "9", "--p", "8", "--edge-weight", "0.3", "--epsilon", "1"], ["--p is given 2 times"]),
        (["--p", "3", "--t", "4", "--edge-weight", "0.3", "--epsilon", "1"], ["--t 4", "--p 3"]),
    ],
)
def test_mistakes(arguments, words, capsys):
    assert run(["bounds", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("discreet: ")
    assert said.count("\n") == 1
    for word in words:
        assert word in said, said
    assert "edge_weight" not in said


def test_the_command_is_listed_with_an_example(capsys):
    run(["--help"])
    assert "bounds" in capsys.readouterr().out
    run(["bounds", "--help"])
    assert "discreet bounds --p 64 --edge-weight 0.35" in capsys.readouterr().out


def test_extremes_do_not_overflow(capsys):
    for words in (["--p", "1000000", "--edge-weight", "0.001"], ["--p", "2", "--edge-weight", "50"]):
        assert run(["bounds", *words, "--epsilon", "1e-6", "--delta", "1e-12", "--n", "1000000000000"]) == 0
        assert "inf" not in capsys.readouterr().out
    assert math.isfinite(advise(2, edge_weight=50.0, epsilon=1.0).answer("graph", "pure").lower.value)


def test_the_plan_of_a_field_says_what_records_allow(discreet, tmp_path):
    from discreet import networks, save_schema

    save_schema(networks.load("asia").domain, tmp_path / "s.toml")
    words = ["plan", "--schema", str(tmp_path / "s.toml"), "--epsilon", "1", "--delta", "1e-6", "--family", "ising"]
    done = discreet(*words, "--approximate-size", "5000")
    assert "For edges of weight 0.35" in done.out and "graph" in done.out
    assert "For edges" not in discreet(*words[:-2]).out
