"""The second question to a release does not wait for the refits of the first."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import networks
from discreet.cli import kept
from discreet.io.archive import read_archive, write_archive
from discreet.models import queries
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator
from discreet.release import Release
from discreet.spec import resolve
from discreet.tables.encode import encode


@pytest.fixture(scope="module")
def released() -> list[Release]:
    network = networks.load("asia")
    table = encode(network.sample(2000, 0).to_frame(), network.domain)
    out = []
    for spec in (resolve(network.domain), resolve(network.domain, graph=network)):
        with Curator(table, budget=PureDP(1)) as curator:
            out.append(Release.of(spec.learn(curator)))
    return out


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    monkeypatch.setattr(kept, "WORTHWHILE", 0.0)
    return tmp_path / "kept"


def _never(*_: object) -> None:
    raise AssertionError("refitted again")


@pytest.mark.parametrize("which", [0, 1], ids=["found", "given"])
def test_the_second_time_nothing_is_refitted(released, which, monkeypatch, folder) -> None:
    release = released[which]
    first = kept.intervals(release, 0.9, 5, 0).ask("P(smoke)")
    monkeypatch.setattr(Release, "intervals", _never)
    second = kept.intervals(release, 0.9, 5, 0)
    assert repr(second.ask("P(smoke)")) == repr(first)
    assert second.map("lung").survival <= 1
    wider = kept.intervals(release, 0.99, 5, 0).ask("P(smoke)")  # the level is no part of the refits
    assert (wider.half_width > first.half_width).any()
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("which", [0, 1], ids=["found", "given"])
def test_the_second_time_questions_within_a_clique_need_no_inference(released, which, monkeypatch) -> None:
    release = released[which]
    a, b = next(edge for edge in [*release.model.edges, ("smoke", "lung")])
    code = release.model.domain[b].labels[1]
    inside = [f"P({b})", f"P({a}, {b})", f"P({a} | {b}={code})", f"P({a} | {b} != {code})"]
    fresh, second = kept.intervals(release, 0.9, 5, 0), kept.intervals(release, 0.9, 5, 0)
    wanted, strengths = [fresh.ask(q) for q in inside], [m.edge_strength() for m in fresh.draws]
    outside = fresh.ask("P(asia, dysp)")
    assert [m.edge_strength() for m in second.draws] == [pytest.approx(s, abs=1e-12) for s in strengths]

    def calibrated(model, *_):
        assert model is release.model, "a refit was asked by inference"
        return _calibrate(model, *_)

    _calibrate = queries.calibrate
    with monkeypatch.context() as m:
        m.setattr(queries, "calibrate", calibrated)
        for question, first in zip(inside, wanted, strict=True):
            again = second.ask(question)
            assert np.allclose(again.lower, first.lower, atol=1e-12) and np.allclose(
                again.upper, first.upper, atol=1e-12
            )
    assert np.allclose(second.ask("P(asia, dysp)").upper, outside.upper, atol=1e-12)


def test_another_release_seed_or_number_is_another_file(released, folder) -> None:
    for release, draws, seed in ((released[0], 5, 0), (released[0], 6, 0), (released[0], 5, 1), (released[1], 5, 0)):
        kept.intervals(release, 0.9, draws, seed)
    assert len(list(folder.glob("*.zip"))) == 4


@pytest.mark.parametrize("damage", [b"", b"no zip", None])
def test_a_damaged_file_is_as_good_as_none(released, folder, damage) -> None:
    kept.intervals(released[0], 0.9, 5, 0)
    (file,) = folder.glob("*.zip")
    file.write_bytes(file.read_bytes()[:-40] if damage is None else damage)
    again = kept.intervals(released[0], 0.9, 5, 0)
    assert len(again.draws) == 5 and file.stat().st_size > 100


def test_a_file_without_refits_is_as_good_as_none(released, folder) -> None:
    kept.intervals(released[0], 0.9, 5, 0)
    (file,) = folder.glob("*.zip")
    header, arrays = read_archive(file)
    about = {key: header[key] for key in ("kind", "records", "deviation")}
    write_archive(file, about, {n: a[:0] if n.startswith("draw") else a for n, a in arrays.items()})
    assert len(kept.intervals(released[0], 0.9, 5, 0).draws) == 5


def test_nothing_is_kept_where_nothing_may_be(released, folder, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv(kept.FOLDER, "off")
    kept.intervals(released[0], 0.9, 5, 0)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("in the way")
    assert len(kept.intervals(released[0], 0.9, 5, 0).draws) == 5
    assert not folder.exists()


def test_old_files_go_first(released, folder, monkeypatch) -> None:
    monkeypatch.setattr(kept, "MOST_FILES", 2)
    for seed in range(4):
        kept.intervals(released[0], 0.9, 3, seed)
    assert len(list(folder.glob("*.zip"))) == 2
