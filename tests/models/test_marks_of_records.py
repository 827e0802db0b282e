"""Synthetic records know what their model's card says, and those that protect nobody say so."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from discreet import Curator, PureDP, Spec, encode, networks
from discreet.cli import run
from discreet.io.archive import write_archive
from discreet.models.records import origin_of
from discreet.privacy.curator import ExactCurator
from discreet.release.research import ResearchCurator

TRUTH = networks.load("asia")
ROWS = encode(TRUTH.sample(300, random_state=1).to_pandas(), TRUTH.domain)
SPEC = Spec("network", "optimal", {"graph": TRUTH.parents})


@pytest.fixture(scope="module")
def models():
    research = SPEC.learn(ResearchCurator(ROWS, budget=PureDP(1), seed=3)).model
    exact = SPEC.learn(ExactCurator(ROWS)).model
    with Curator(ROWS, budget=PureDP(1)) as curator:
        release = SPEC.learn(curator).model
    return {"research": research, "exact": exact, "release": release, "public": TRUTH, "": TRUTH.with_card(None)}


@pytest.mark.parametrize("origin", ["research", "exact", "release", "public", ""])
def test_records_carry_the_origin_of_their_model(models, origin, tmp_path):
    drawn = models[origin].sample(5, random_state=0)
    assert drawn.origin == origin == drawn.with_numbers(0).origin
    drawn.to_parquet(tmp_path / "r.parquet")
    mark = json.loads(pq.read_schema(tmp_path / "r.parquet").metadata[b"discreet"])
    assert mark["synthetic"] is True and mark["origin"] == (origin or "not stated")
    protects = origin not in ("research", "exact")
    assert ("NOT PRIVATE" in repr(drawn)) == ("NOT PRIVATE" in mark.get("warning", "")) == (not protects)


@pytest.mark.parametrize(
    ("origin", "says"),
    [("research", "WARNING: NOT PRIVATE"), ("", "carries no statement of privacy"), ("release", ""), ("public", "")],
)
def test_the_command_warns(models, origin, says, tmp_path, monkeypatch, capsys):
    """A research model refuses to be saved; a file that claims to be one is written by hand here."""
    monkeypatch.chdir(tmp_path)
    write_archive("m.zip", *models[origin].to_archive())
    assert run(["sample", "m.zip", "-n", "3"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4 and "NOT PRIVATE" not in out
    assert says in err if says else err == ""
    assert run(["sample", "m.zip", "-n", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["origin"] == (origin or "not stated")


def test_a_budget_alone_makes_no_release():
    assert origin_of({"budget": {}}) == origin_of({"origin": "somewhere"}) == origin_of(None) == ""


@pytest.mark.parametrize("origin", ["release", "public", "exact"])
def test_completed_rows_are_not_said_to_be_synthetic_or_released(models, origin, tmp_path):
    """They repeat the rows that were given, which no budget covers."""
    models[origin].complete({"smoke": ["yes", None]}, random_state=1).to_parquet(tmp_path / "r.parquet")
    mark = json.loads(pq.read_schema(tmp_path / "r.parquet").metadata[b"discreet"])
    assert mark["origin"] == (origin if origin == "exact" else "given rows, completed")
    assert mark["synthetic"] is (origin == "exact")
