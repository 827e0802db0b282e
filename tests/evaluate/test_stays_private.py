"""What an evaluation computes cannot get into a release, a card or a ledger by accident."""

from __future__ import annotations

import json

import pytest

from discreet import Curator, Ledger, PrivacyUnit, PureDP, Release, encode, networks, resolve
from discreet.errors import InputError
from discreet.evaluate import WARNING, evaluate
from discreet.evaluate.page import evaluation_html
from discreet.report.card import card_yaml


@pytest.fixture(scope="module")
def made():
    truth = networks.load("asia")
    rows = encode(truth.sample(400, random_state=1).to_frame(), truth.domain)
    with Curator(rows, PrivacyUnit(), PureDP(1)) as curator:
        learned = resolve(truth.domain, graph="smoke -> lung", certify=0).learn(curator)
    return learned, evaluate(rows, {"model.zip": learned.model}, targets=["lung"])


def test_a_release_refuses_it_wherever_it_is_put(made, tmp_path):
    learned, found = made
    figures = found.to_dict()
    for wrong in (
        Release.of(learned, stated={"utility": figures}),
        Release.of(learned, run={"quality": [figures]}),
        Release(learned.model.with_card({**learned.model.card, "fit": figures})),
    ):
        with pytest.raises(InputError, match="private rows without protection"):
            wrong.save(tmp_path / "model.zip")
        assert not (tmp_path / "model.zip").exists()
    with pytest.raises(InputError, match="private rows without protection"):
        card_yaml(Release.of(learned, stated={"utility": figures}))
    with pytest.raises(InputError):
        Release.of(learned, stated={"utility": found}).save(tmp_path / "model.zip")
    Release.of(learned, stated={"utility": "good"}).save(tmp_path / "model.zip")


def test_a_ledger_refuses_it(made):
    _, found = made
    ledger = Ledger.in_memory(PureDP(1))
    with pytest.raises(InputError, match="private rows without protection"):
        ledger.charge(PureDP(1), PrivacyUnit(), {"quality": found.to_dict()})
    assert not [entry for entry in ledger.entries if entry.kind == "charge"]


def test_a_graph_refuses_it(made, tmp_path):
    from discreet.learn.structure.result import StructureResult

    learned, found = made
    card = {**learned.model.card, "quality": found.to_dict()}
    graph = StructureResult(learned.model.domain.names, "by hand", (), card=card)
    with pytest.raises(InputError, match="private rows without protection"):
        graph.save(tmp_path / "graph.json")
    assert not (tmp_path / "graph.json").exists()


def test_the_page_says_so_on_every_screen(made):
    _, found = made
    html = evaluation_html(found)
    assert "NOT TO BE PUBLISHED" in html.partition("</title>")[0]
    assert 'class="private" role="alert"' in html and ".private { position: sticky; top: 0" in html
    assert "@media print { .private { position: fixed" in html and "Must not be published" in html


def test_the_command(made, tmp_path, monkeypatch, capsys):
    from discreet.cli import run

    monkeypatch.chdir(tmp_path)
    learned, _ = made
    Release.of(learned).save("model.zip")
    learned.model.sample(300, random_state=2).to_csv("other.csv")
    networks.load("asia").sample(300, random_state=1).to_csv("rows.csv")
    assert run(["evaluate", "model.zip", "other.csv", "rows.csv", "--target", "lung"]) == 0
    out = capsys.readouterr()
    assert WARNING in out.out and "must not be published" in out.err
    page = (tmp_path / "evaluation.html").read_text()
    assert "other.csv" in page and "<script" not in page
    assert run(["evaluate", "model.zip", "rows.csv", "--json", "--no-classifiers"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert set(facts["releases"]) == {"model.zip"} and facts["page"] is None
    for wrong, words in (
        (["evaluate", "rows.csv"], "what is to be evaluated"),
        (["evaluate", "rows.csv", "model.zip"], "put the rows last"),
        (["evaluate", "other.csv", "rows.csv", "--force"], "there is no schema"),
        (["evaluate", "model.zip", "model.zip", "rows.csv", "--force"], "named twice"),
        (["evaluate", "model.zip", "rows.csv", "-o", "page.pdf"], "ends in .html"),
        (["evaluate", "model.zip", "rows.csv", "--force", "--target", "nope"], "nope"),
    ):
        assert run(wrong) not in (0, 1)
        assert words in capsys.readouterr().err


@pytest.mark.chance
def test_an_unclear_certificate_is_said_to_measure_something_else(tmp_path, monkeypatch, capsys):
    from discreet.cli import run

    monkeypatch.chdir(tmp_path)
    truth = networks.load("asia")
    records = truth.sample(200, random_state=1)
    records.to_csv("rows.csv")
    with Curator(encode(records.to_frame(), truth.domain), PrivacyUnit(), PureDP("0.05")) as curator:
        release = Release.of(resolve(truth.domain, workload="smoke,lung").learn(curator))
    assert release.certificate.verdict == "unclear" and release.certificate.workload
    release.save("model.zip")
    assert run(["evaluate", "model.zip", "rows.csv", "--no-classifiers", "--force"]) == 0
    said = capsys.readouterr().out
    assert "here and unclear by its certificate: they measure different things" in said
    assert "the tables that were asked for; here all pairs are" in said


def test_names_are_escaped(tmp_path):
    from discreet import Domain

    domain = Domain.of({"<b>": ["<i>", "x&y"], "b": 2})
    rows = encode({"<b>": ["<i>", "x&y"] * 30, "b": [0, 1] * 30}, domain)
    html = evaluation_html(evaluate(rows, {"<script>alert(1)</script>": rows}))
    assert "<script" not in html and "<b>" not in html and "&lt;i&gt;" in html
