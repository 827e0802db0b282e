"""Forged files: every number that bears on the guarantee, moved to the wrong side, must be found."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from discreet import encode
from discreet.cli.failures import Exit
from discreet.cli.verify import Findings, _verify
from discreet.domain import Attribute, Domain
from discreet.errors import DiscreetError
from discreet.io.archive import read_archive, write_archive
from discreet.io.limits import DEFAULT_LIMITS
from discreet.learn.structure.selected_edges import SelectedEdges
from discreet.learn.structure.stable_edges import StableEdges
from discreet.papers.psgd import PrivateDescent
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.release import Release
from discreet.schema import parse_schema
from discreet.spec import Spec, resolve

DOMAIN = Domain(tuple(Attribute.categorical(name, 2) for name in "abcd"))
ROW, REPLACED, PERSON = PrivacyUnit(), PrivacyUnit(relation="replace-one"), PrivacyUnit("person", max_rows=2)
GRAPH, CLIQUES = {"b": ["a"], "c": ["b"]}, [["a", "b"], ["c", "d"]]
APPROX = ApproxDP(1, "1/1000000")


def tables(cliques, **how):
    return lambda curator: curator.measure(Marginals(DOMAIN, cliques), **how)


def recipe(family, method, **options):
    return lambda curator: Release.of(Spec(family, method, options).learn(curator))


def default(**how):
    return lambda curator: Release.of(resolve(DOMAIN, **how).learn(curator))


RELEASES = {
    "tables": (tables([["a"], ["a", "b"]], weights=[2, 1]), ROW, PureDP(1)),
    "tables of persons": (tables([["a"], ["a", "b"]]), PERSON, ZCDP("1/2")),
    "tables, replaced": (tables([["a"], ["a", "b"]]), REPLACED, PureDP(1)),
    "tables, Gaussian": (tables([["a"], ["a", "b"]], noise="gaussian"), ROW, ZCDP("1/2")),
    "tables, the exact curve": (tables([["a"], ["a", "b"]], noise="gaussian"), ROW, APPROX),
    "network": (recipe("network", "optimal", graph=GRAPH), ROW, PureDP(1)),
    "network, two stages": (recipe("network", "two_stage", graph=GRAPH), ROW, PureDP(1)),
    "network, searched": (recipe("network", "searched"), PERSON, PureDP(1)),
    "field": (recipe("field", "noise_aware", cliques=CLIQUES), REPLACED, ZCDP("1/2")),
    "ising": (recipe("ising", "moments"), ROW, APPROX),
    "ising, frank_wolfe": (recipe("ising", "frank_wolfe"), PERSON, ZCDP("1/2")),
    "pairwise, frank_wolfe": (recipe("pairwise", "frank_wolfe"), ROW, PureDP(1)),
    "binary, maximal": (recipe("binary", "maximal_monomials", order=2, min_weight=0.2), ROW, ZCDP(1)),
    "default": (default(certify=0.05), ROW, APPROX),
    "default, pure": (default(certify=0.05), PERSON, PureDP(1)),
    "default, zCDP": (default(certify=0.05), REPLACED, ZCDP("1/2")),
    "descent": (
        lambda curator: Release(PrivateDescent(CLIQUES, approximate_size=400, rounds=5, rate=0.1).fit(curator)),
        ROW,
        APPROX,
    ),
    "graph, if stable": (lambda curator: StableEdges(0.5).fit(curator), ROW, APPROX),
    "graph, selected": (lambda curator: SelectedEdges(0.5).fit(curator), ROW, ZCDP(1)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every kind of release, as a file."""
    folder = tmp_path_factory.mktemp("releases")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.integers(0, 2, 400).astype(str) for name in "abcd"})
    rows["person"] = [f"p{i // 2}" for i in range(len(rows))]
    out = {}
    for number, (name, (ask, unit, budget)) in enumerate(RELEASES.items()):
        out[name] = folder / f"{number}.{'json' if name.startswith('graph') else 'zip'}"
        with Curator(encode(rows, DOMAIN, unit="person"), unit, budget) as curator:
            ask(curator).save(out[name])
    return out


def opened(path):
    if path.suffix == ".json":
        return json.loads(path.read_text()), {}
    header, arrays = read_archive(path)
    return json.loads(json.dumps(header)), arrays


def verified(path, header, arrays) -> Findings:
    """What verify says of a file with this header, sealed again."""
    if path.suffix == ".json":
        path.write_text(json.dumps(header))
    else:
        write_archive(path, header, arrays)
    found = Findings()
    try:
        _verify(path, None, found, DEFAULT_LIMITS, refit=False)
    except DiscreetError as error:
        found.wrong(str(error))
    return found


def statements(header):
    """Where a file says what was spent on what: the card, and what came with the tables."""
    if header["kind"] == "discreet graph":
        return [header["release"]]
    if header["kind"] == "measurements":
        return [header["release"]]
    inner = (header.get("release") or {}).get("measurements")
    return [header["card"], *([inner["release"]] if inner else [])]


def measured(header):
    if header["kind"] == "measurements":
        return header["measurements"]
    inner = (header.get("release") or {}).get("measurements") if header["kind"] != "discreet graph" else None
    return inner["measurements"] if inner else []


def moved(value, factor):
    """A number as the file writes it, times a factor."""
    if isinstance(value, str):
        return str(Fraction(value) * factor)
    if isinstance(value, float):
        return value * float(factor)
    return int(value * factor) if factor > 1 else max(int(value * factor), 0)


DOWN, UP = Fraction(1, 2), Fraction(2)


def forgeries(header):
    """Every single number that bears on the guarantee, moved to the side where it says more than is true."""
    for statement in statements(header):
        for key in statement["budget"]:
            if key != "notion":
                yield f"budget {key}", statement["budget"], key, DOWN
        yield "max_rows", statement["unit"], "max_rows", UP
        for key in statement["spent"] or ():
            if key != "notion":
                yield f"spent {key}", statement["spent"], key, DOWN
                yield f"spent {key}", statement["spent"], key, UP
        for number, step in enumerate(statement["steps"], start=1):
            for key in step["share"]:
                if key != "notion":
                    yield f"step {number} share {key}", step["share"], key, DOWN
            if "unit" in step and step["unit"]["max_rows"] > 1:
                yield f"step {number} max_rows", step["unit"], "max_rows", DOWN
            for key, factor in (("joint", UP), ("k", UP), ("multiplier", DOWN), ("rounds", UP)):
                if key in step:
                    yield f"step {number} {key}", step, key, factor
            if "rounds" in step:
                yield f"step {number} rate", step, "rate", UP
            for at, draw in enumerate(step.get("draws", ())):
                for key in ("l1", "l2_squared", "linf", "l0", "times"):
                    # The largest move of one cell is there for the exact curve alone.
                    if key in draw and not (key == "linf" and draw["kind"] == "gaussian"):
                        yield f"step {number} draw {at} {key}", draw, key, UP
                yield f"step {number} draw {at} scale", draw, "scale", DOWN
                if "threshold" in draw:
                    yield f"step {number} draw {at} threshold", draw, "threshold", DOWN
    for entry in measured(header):
        if entry["origin"] == "release":
            for factor in (DOWN, UP):
                yield f"table {entry['label']} scale", entry, "scale", factor
                yield f"table {entry['label']} cost", entry["cost"], "scale", factor


@pytest.mark.parametrize("name", RELEASES)
def test_true_files_verify(name, made):
    header, arrays = opened(made[name])
    found = verified(made[name], header, arrays)
    assert found.problems == []
    assert any("computed again, the guarantee follows" in line for line in found.lines)
    assert any("Not signed" in line and "made up" in line for line in found.lines)


def first_and_last(forged):
    """Of the numbers of one name, the first and the last."""
    alike = {}
    for one in forged:
        what, _, key, factor = one
        alike.setdefault((what.split()[0], "draw" in what, key, factor), []).append(one)
    return [one for places in alike.values() for one in (places if len(places) == 1 else (places[0], places[-1]))]


@pytest.mark.parametrize("which", [first_and_last, pytest.param(list, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("name", RELEASES)
def test_every_number_that_is_moved_to_the_wrong_side_is_found(name, which, made, tmp_path):
    header, arrays = opened(made[name])
    path = tmp_path / made[name].name
    missed, tried = [], 0
    for what, place, key, factor in which(forgeries(header)):
        before = place[key]
        place[key] = moved(before, factor)
        assert place[key] != before, what
        found = verified(path, header, arrays)
        malformed = what == "max_rows" and place["column"] is None  # a row that is two rows
        if found.code != Exit.CONTRADICTION and not (malformed and found.code == Exit.CHECK_FAILED):
            missed.append((what, str(factor), found.problems))
        place[key] = before
        tried += 1
    assert missed == [] and tried >= 8


@pytest.mark.parametrize("name", RELEASES)
def test_a_stronger_promise_in_every_place_is_found(name, made, tmp_path):
    """A card that says ε = 0.01 while its steps say 1, also when tables and card agree about it."""
    header, arrays = opened(made[name])
    for statement in statements(header):
        for where in ("budget", "spent"):
            statement[where] = {
                k: v if k == "notion" else moved(v, Fraction(1, 100)) for k, v in statement[where].items()
            }
    found = verified(tmp_path / made[name].name, header, arrays)
    assert found.code == Exit.CONTRADICTION
    assert any("together cost more than" in problem for _, problem in found.problems)


@pytest.mark.parametrize("name", [name for name in RELEASES if name != "descent"])
def test_too_little_noise_in_every_place_is_found_and_the_step_is_named(name, made, tmp_path):
    header, arrays = opened(made[name])
    for statement in statements(header):
        for step in statement["steps"]:
            for draw in step.get("draws", ()):
                draw["scale"] = 0.001
    for entry in measured(header):
        if entry["origin"] == "release":
            entry.update(scale=0.001, cost={**entry["cost"], "scale": "0.001"})
    found = verified(tmp_path / made[name].name, header, arrays)
    assert found.code == Exit.CONTRADICTION
    assert any(problem.startswith("step ") for _, problem in found.problems)


def test_a_table_that_was_not_paid_for_is_found(made, tmp_path):
    header, arrays = opened(made["tables"])
    for changed in ("label", "twice"):
        forged, more = copy.deepcopy(header), dict(arrays)
        if changed == "label":
            forged["measurements"][0]["label"] = "another"
        else:
            forged["measurements"].append(copy.deepcopy(forged["measurements"][0]))
            more["counts00002"] = arrays["counts00000"]
        found = verified(tmp_path / "t.zip", forged, more)
        assert found.code == Exit.CONTRADICTION
        assert any("no step has paid for that" in problem for _, problem in found.problems)


def test_a_step_that_records_no_noise_does_not_pass(made, tmp_path):
    """As files of the first versions do not."""
    header, arrays = opened(made["tables"])
    for key in ("draws", "unit"):
        forged = copy.deepcopy(header)
        del forged["release"]["steps"][0][key]
        found = verified(tmp_path / "t.zip", forged, arrays)
        assert found.code == Exit.CONTRADICTION
        assert any("step 1 (Marginals a …): it does not record its noise" in p for _, p in found.problems)


@pytest.mark.parametrize("name", ["default", "default, pure", "default, zCDP"])
@pytest.mark.parametrize("certify", [0, 0.04, 0.06])
def test_a_certificate_of_another_share_than_its_steps_is_found(name, certify, made, tmp_path):
    header, arrays = opened(made[name])
    assert header["release"]["spec"]["certify"] == 0.05
    header["release"]["spec"]["certify"] = certify
    found = verified(tmp_path / "t.zip", header, arrays)
    assert found.code == Exit.CONTRADICTION
    assert any("to a certificate of fit, and the steps on its card 5.000%" in p for _, p in found.problems)


def test_distances_that_no_step_has_paid_for_are_found(made, tmp_path):
    header, arrays = opened(made["default, zCDP"])
    true = header["release"]["measurements"]["release"]["found"]
    assert {"pairs", "pairs_deviation", "missed", "missed_deviation"} <= set(true)

    def said(**change):
        forged = copy.deepcopy(header)
        forged["release"]["measurements"]["release"]["found"] |= change
        problems = verified(tmp_path / "t.zip", forged, arrays).problems
        return [p for code, p in problems if code == Exit.CONTRADICTION]

    assert said() == []
    for change in (
        {"pairs_deviation": true["pairs_deviation"] / 2},
        {"pairs": [*true["pairs"], [["a", "b", "c"], 5]]},
        {"more": true["pairs"], "more_deviation": true["pairs_deviation"] * 2},
        {"a": true["pairs"], "b": true["pairs"], **{f"{k}_deviation": true["pairs_deviation"] for k in "ab"}},
    ):
        assert any("no step has paid for these" in p for p in said(**change)), change
    assert said(more_deviation=1) != []  # and nonsense is no crash
    assert said(pairs_deviation="x") != []


@pytest.mark.parametrize("nonsense", [5, "x", [1], [[]], True, -1, None])
def test_what_was_found_besides_tables_may_be_nonsense(nonsense, made, tmp_path):
    header, arrays = opened(made["default, zCDP"])
    header["release"]["measurements"]["release"]["found"] = nonsense
    assert Exit.CONTRADICTION in {code for code, _ in verified(tmp_path / "t.zip", header, arrays).problems}


def test_what_a_certificate_is_worth_is_said(made, tmp_path):
    header, arrays = opened(made["default"])
    found = verified(tmp_path / "t.zip", header, arrays)
    assert any("The certificate of fit is about this model. Its figures are noisy numbers" in s for s in found.lines)
    header["card"]["certificate"]["computed"] = "from 10 sampled records"
    found = verified(tmp_path / "t.zip", header, arrays)
    assert any("is about this model was not checked" in line for line in found.lines)


@pytest.mark.parametrize("wrong", [0, -1, "1e999999999", "x", None, [], {}, True, 5e-324, 10**30, 1e308])
@pytest.mark.parametrize(
    "name", ["tables", "tables, the exact curve", "binary, maximal", "descent", "graph, if stable"]
)
def test_nonsense_is_a_finding_and_no_crash(name, wrong, made, tmp_path):
    header, arrays = opened(made[name])
    path = tmp_path / made[name].name
    places = list(forgeries(header))
    for what, place, key, _ in [*places[:5], *places[5 :: max(len(places) // 20, 1)]]:
        before, place[key] = place[key], wrong
        found = verified(path, header, arrays)
        # What is very large may say less than is true: more noise, a larger budget.
        assert found.code != Exit.OK or wrong in (10**30, 1e308), what
        place[key] = before


def test_marks_of_what_was_found_privately_agree(tmp_path):
    """A schema that was read off the rows is not made to look paid for by a mark on it alone, nor on the card alone."""
    domain = parse_schema('[columns.t]\nlevels = "discover"\n[columns.b]\nlevels = ["x", "y"]\n')
    rows = pd.DataFrame({"t": ["p", "q"] * 500, "b": ["x", "y"] * 500})
    with Curator(encode(rows, domain), ROW, ApproxDP(2, 1e-5)) as curator:
        Release.of(resolve(domain).learn(curator)).save(tmp_path / "a.zip")
    header, arrays = opened(tmp_path / "a.zip")
    found = verified(tmp_path / "b.zip", header, arrays)
    assert not found.problems and any("ound privately, and paid for: t (levels)" in line for line in found.lines)
    for statement in statements(header):
        assert statement.pop("found_privately") == {"t": ["levels"]}
    found = verified(tmp_path / "b.zip", header, arrays)
    assert found.code == Exit.CONTRADICTION
    assert any("found privately" in problem for _, problem in found.problems)


def test_a_schema_that_says_found_has_not_paid_here(tmp_path):
    domain = parse_schema('[columns.t]\nlevels = ["p", "q"]\nfound = ["levels"]\n[columns.b]\nlevels = ["x", "y"]\n')
    rows = pd.DataFrame({"t": ["p", "q"] * 100, "b": ["x", "y"] * 100})
    with Curator(encode(rows, domain), ROW, PureDP(1)) as curator:
        Release.of(resolve(domain).learn(curator)).save(tmp_path / "a.zip")
    found = verified(tmp_path / "b.zip", *opened(tmp_path / "a.zip"))
    assert any("paid for elsewhere, as the schema says: t (levels)" in line for line in found.lines)
