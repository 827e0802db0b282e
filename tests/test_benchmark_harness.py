"""A long benchmark that is interrupted is taken up where it stopped."""

import importlib.util
import math
from pathlib import Path

import pytest

from discreet.errors import InputError

_spec = importlib.util.spec_from_file_location(
    "harness_alone", Path(__file__).resolve().parents[1] / "benchmarks" / "harness.py"
)
harness = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(harness)
Checkpoint = harness.Checkpoint


def counting(results: list):
    """Work that notes that it was done."""
    return lambda: results.append(1) or {"kl": math.inf, "runs": 15}


def test_finished_parts_are_not_done_again(tmp_path):
    done: list = []
    with pytest.raises(KeyboardInterrupt), Checkpoint.of("directed", 3, False, tmp_path) as kept:
        kept.get("asia", counting(done))
        raise KeyboardInterrupt
    assert [p.name for p in tmp_path.iterdir()] == ["directed-3.checkpoint.jsonl"]
    with Checkpoint.of("directed", 3, False, tmp_path) as kept:
        assert kept.get("asia", counting(done)) == {"kl": math.inf, "runs": 15} and list(kept) == ["asia"]
        kept.get("alarm", counting(done))
    assert len(done) == 2 and not list(tmp_path.iterdir())  # a finished run leaves nothing: the next measures afresh


def test_interrupted_generator_keeps_its_parts(tmp_path):
    def run():
        with Checkpoint.of("directed", 0, False, tmp_path) as kept:
            yield kept.get("a", lambda: 1)
            yield kept.get("b", lambda: 2)

    rows = run()
    next(rows)
    rows.close()
    assert Checkpoint.of("directed", 0, False, tmp_path).done == {"a": 1}
    assert list(run()) == [1, 2] and not list(tmp_path.iterdir())


@pytest.mark.parametrize("lost", [1, 5, 20, 10_000])
def test_line_cut_by_a_crash_is_done_again(tmp_path, lost):
    path = tmp_path / "run.jsonl"
    kept = Checkpoint(path, seed=1)
    for key in "ab":
        kept.get(key, lambda: 1)
    text = path.read_text()
    path.write_text(text[: max(len(text) - lost, 0)])
    again = Checkpoint(path, seed=1)
    assert "b" not in again.done
    again.get("b", lambda: 2)
    assert Checkpoint(path, seed=1).done["b"] == 2


def test_other_runs_and_other_files_are_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    Checkpoint(path, seed=1).get("a", lambda: 1)
    with pytest.raises(InputError, match="another run"):
        Checkpoint(path, seed=2)
    for notes in ("my notes\n", "my notes"):
        path.write_text(notes)
        with pytest.raises(InputError, match="no checkpoint"):
            Checkpoint(path, seed=1)
        assert path.read_text() == notes


def test_quick_run_keeps_nothing(tmp_path):
    with Checkpoint.of("directed", 0, True, tmp_path) as kept:
        kept.get("a", lambda: 1)
        assert not list(tmp_path.iterdir())
