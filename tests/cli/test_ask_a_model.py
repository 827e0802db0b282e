"""Asking a model on the command line, in the words of the query language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet import networks
from discreet.cli.app import run


def test_a_bundled_network_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "asia", "P(dysp=yes | smoke=yes)", "MAP(lung, tub | xray=yes)"]) == 0
    out = capsys.readouterr().out
    assert "0.5528" in out
    assert "lung = yes" in out


def test_a_file_gives_the_same_answer_as_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = networks.load("sachs")
    model.save(tmp_path / "m.bif")
    assert run(["query", str(tmp_path / "m.bif"), "P(Akt, PKC)", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    expected = model.ask("P(Akt, PKC)").to_dict()
    assert [c["levels"] for c in answer["cells"]] == [c["levels"] for c in expected["cells"]]
    seen, wanted = ([c["probability"] for c in a["cells"]] for a in (answer, expected))
    assert seen == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["asia", "P(dyspp=yes)"], 2, "dysp"),
        (["asia", "P(dysp=maybe)"], 2, "maybe"),
        (["asia", "P(dysp"], 2, "P(dysp"),
        (["nowhere.zip", "P(a)"], 4, "nowhere.zip"),
        (["asia", "P(xray | either=yes, lung=no, tub=no)"], 2, "probability"),
    ],
)
def test_mistakes(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", *arguments]) == code
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
