"""The notebooks of the documentation run from top to bottom, and hold no outputs of anybody's rows."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="the notebooks need nbclient and ipykernel, of the extra 'test'")
nbclient = pytest.importorskip("nbclient", reason="the notebooks need nbclient and ipykernel, of the extra 'test'")
pytest.importorskip("ipykernel", reason="the notebooks need nbclient and ipykernel, of the extra 'test'")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in NOTEBOOKS] == ["agency_table", "known_graph", "which_columns_interact"]


@pytest.mark.chance
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_runs_and_shows_tables(path, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs before a commit"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    data = [o["data"] for c in notebook.cells for o in c.get("outputs", []) if "data" in o]
    assert any("text/html" in d for d in data)
    if path.stem != "which_columns_interact":
        assert any("image/png" in d for d in data)
