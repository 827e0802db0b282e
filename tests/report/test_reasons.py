"""Why each table was measured and what it cost: released numbers alone, and the same in every place."""

import json

import pytest

from discreet import ApproxDP, Curator, PrivacyUnit, PureDP, Release, encode, networks, resolve
from discreet.cli import run
from discreet.measurement import Measurements
from discreet.privacy.budget import part_of
from discreet.report.card import card_yaml
from discreet.report.page import report_html
from discreet.report.reasons import Reason, in_columns, reasons, shown
from discreet.report.spending import describe_steps

BUDGETS = [PureDP(1), ApproxDP(1, "1e-6")]


@pytest.fixture(scope="module", params=BUDGETS, ids=str)
def release(request):
    network = networks.load("asia")
    rows = encode(network.sample(2000, random_state=1).to_pandas(), network.domain)
    with Curator(rows, PrivacyUnit(), request.param) as curator:
        return Release.of(resolve(network.domain, workload="smoke,lung,xray 3; asia,tub").learn(curator))


def test_every_table_has_its_reason(release):
    every = reasons(release.card, release.measurements)
    tables = [m for m in release.measurements if m.told_of]
    assert [r.table for r in every] == [m.label for m in tables]
    assert [r.deviation for r in every] == pytest.approx([m.standard_deviation for m in tables], abs=1e-3)
    asked = [step["step"] for step in release.card["steps"] if "step" in step]
    assert {r.step for r in every} <= set(asked)
    chosen = release.measurements.found.get("chosen_by", [])
    assert [r.distance for r in every if r.distance is not None] == [e for _, e in chosen if e is not None]
    if release.card["budget"]["notion"] == "pure":
        assert chosen == []
        assert 0.8 < sum(r.part for r in every) <= 1  # the rest is for the size, and as many selections as were needed
    else:
        released = {tuple(c): e for key in ("pairs", "missed", "inside") for c, e in release.measurements.found[key]}
        assert chosen and all(tuple(c) in released for c, e in chosen if e is not None)
        plan = resolve(release.model.domain).prepare(release.model.domain, PrivacyUnit(), BUDGETS[1])
        tables = [part_of(step.share, BUDGETS[1]) for step in plan.steps if step.name.startswith("tables")]
        assert sum(r.part for r in every) == pytest.approx(float(sum(tables)), abs=0.001)


def test_it_is_said_everywhere(release, tmp_path, capsys):
    release.save(tmp_path / "model.zip")
    assert run(["show", str(tmp_path / "model.zip"), "--json"]) == 0
    why = json.loads(capsys.readouterr().out)["why"]
    again = Release.load(tmp_path / "model.zip")
    every = reasons(again.card, again.measurements)
    assert [entry["table"] for entry in why] == [r.table for r in every]
    assert every == reasons(release.card, release.measurements)
    few, rest = shown(every, 5)
    assert len(few) <= 5 and "single columns" in rest
    page = report_html(again.model, card_text="", measurements=again.measurements)
    assert "Why these tables" in page and all(r.table in page for r in few)
    assert all(f"{r.noise:,.3g}" in card_yaml(again) for r in few)
    assert run(["show", str(tmp_path / "model.zip")]) == 0
    out = capsys.readouterr().out
    assert "Why these tables were measured" in out and "edges" in out.lower()


def test_a_step_of_distances_is_named_once(release):
    said = describe_steps(release.card["steps"])
    assert "certificate: distances of 2 tables from the model" in said
    if release.card["budget"]["notion"] != "pure":  # which asks for a sum and a selection, too
        assert "of distances" not in said and "of certificate" not in said


def test_large_noise_is_a_whole_number():
    said = [Reason("s", "a × b", 3, noise, 0.1, 1.0).cells()[3] for noise in (1449.8, 254.2, 0.5)]
    assert said == ["1,450", "254", "0.5"]


def test_hundreds_of_tables_are_few_lines(release):
    many = [Reason("tables", f"a × b{i}", i, 1.0, i / 1e6, 1.0) for i in range(500)]
    few, rest = shown(many, 12)
    assert [r.distance for r in few] == list(range(499, 487, -1)) and rest == "Besides: 488 more tables."


def test_odd_words_among_the_names_are_explained():
    for table, words in (("a × b together", ["“together”:"]), ("a in groups × b", ["“in groups”:"]), ("a × b", [])):
        _, rest = shown([Reason("tables", table, 3, 1.0, 0.1, 1.0)], 12)
        assert [word for word in ("“together”:", "“in groups”:") if word in rest] == words, rest


def test_files_that_hold_anything(release):
    for wrong in (5, "x", [[5, 5]], [["asia"]], [[["asia"], "many"]]):
        found = {**release.measurements.release, "found": {"chosen_by": wrong}}
        kept = reasons(release.card, Measurements(release.measurements, found))
        assert len(kept) == sum(bool(m.told_of) for m in release.measurements) and all(r.distance is None for r in kept)
    assert reasons(release.card, None) == []
    asia = networks.load("asia")
    rows = encode(asia.sample(200, random_state=1).to_pandas(), asia.domain)
    with Curator(rows, PrivacyUnit(), PureDP(1)) as curator:
        given = Release.of(resolve(asia.domain, graph=asia).learn(curator))
    assert reasons(given.card, given.measurements) == []  # nothing was chosen


def test_a_column_that_is_empty_in_every_row_is_left_out():
    """Under pure DP no distance is released."""
    without, known = Reason("pairs", "a × b", None, 3, 0.5, 1), Reason("pairs", "a × c", 0, 3, 0.5, 1)
    headings, rows = in_columns([without])
    assert headings == ["table", "measured in", "its noise", "of the budget"] and len(rows[0]) == 4
    headings, rows = in_columns([without, known])
    assert headings[2] == "model was off by" and [row[2] for row in rows] == ["", "0"]
