"""What is around the package: the module that runs, the pages that come along, and files for other programs."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import tomllib
import types
import zipfile
from pathlib import Path

import pytest
import yaml

from discreet import __version__
from discreet.cli import docs as docs_command
from discreet.cli import run

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CONDA_NAMES = {"duckdb": "python-duckdb", "matplotlib": "matplotlib-base"}


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "discreet", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"discreet {__version__}\n")
    wrong = subprocess.run([sys.executable, "-m", "discreet", "nonsense"], capture_output=True, text=True)
    assert wrong.returncode != 0 and "nonsense" in wrong.stderr


def test_every_page_is_listed_and_shown(capsys):
    assert run(["docs", "--json"]) == 0
    topics = json.loads(capsys.readouterr().out)["topics"]
    pages = [p for p in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")] if p.stem != "index"]
    assert set(topics) == {p.stem for p in pages} and all(topics.values())
    assert run(["docs", "docs/howto/publishing.md"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines() == (ROOT / "docs" / "howto" / "publishing.md").read_text("utf-8").splitlines()
    assert run(["docs"]) == 0
    assert all(topic in capsys.readouterr().out for topic in ["schema"])


def test_a_page_that_is_not_there_is_an_error_that_knows_a_near_one(capsys):
    assert run(["docs", "shema"]) == 2
    assert "did you mean 'schema'?" in capsys.readouterr().err


def test_pages_that_came_with_a_wheel_are_taken_first(tmp_path, monkeypatch, capsys):
    package = tmp_path / "site-packages" / "discreet"
    (package / "docs" / "howto").mkdir(parents=True)
    (package / "docs" / "index.md").write_text("# Index\n")
    (package / "docs" / "only.md").write_text("# Only here\n")
    monkeypatch.setattr(docs_command, "__file__", str(package / "cli" / "docs.py"))
    assert run(["docs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["topics"] == {"only": "Only here"}
    (package / "docs" / "index.md").unlink()
    assert run(["docs"]) == 4, "no pages at all"


def test_the_wheel_brings_the_pages_along():
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"] == {"docs": "discreet/docs"}


def test_what_is_said_about_the_project_is_known():
    project = PROJECT["project"]
    assert project["authors"] == [{"name": "The discreet authors"}]
    said = {c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert said == {"3.11", "3.12", "3.13"}


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    text = (ROOT / "tools" / "conda" / "meta.yaml").read_text("utf-8")
    assert f'set version = "{__version__}"' in text
    plain = re.sub(r"\{\{.*?\}\}", "x", re.sub(r"\{%.*?%\}", "", text))
    recipe = yaml.safe_load(plain)
    asked = [re.fullmatch(r"([\w-]+)(.*)", line).groups() for line in PROJECT["project"]["dependencies"]]
    wanted = [f"{CONDA_NAMES.get(name, name)} {versions}" for name, versions in asked]
    python = f"python {PROJECT['project']['requires-python']}"
    assert recipe["requirements"]["run"] == [python, *wanted]
    assert recipe["build"]["entry_points"] == [f"discreet = {PROJECT['project']['scripts']['discreet']}"]
    assert recipe["about"]["license"] == PROJECT["project"]["license"]


def test_the_hooks_call_tools_that_the_test_environment_has():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    (repo,) = config["repos"]
    assert repo["repo"] == "local"
    for hook in repo["hooks"]:
        program = hook["entry"].split()[0]
        assert program.startswith(".venv/bin/") and (Path(sys.executable).parent / Path(program).name).exists()


def test_the_dockerfile_copies_what_a_build_needs():
    text = (ROOT / "Dockerfile").read_text("utf-8")
    copied = {word for line in text.splitlines() if line.startswith("COPY") for word in line.split()[1:-1]}
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]
    needed = {"pyproject.toml", "README.md", hook, *PROJECT["project"]["license-files"], "src", "docs"}
    assert copied == needed and all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert not copied & set(ignored)
    assert 'ENTRYPOINT ["discreet"]' in text


def test_the_readme_of_the_package_has_no_links_into_the_repository(monkeypatch):
    interface = types.SimpleNamespace(MetadataHookInterface=object)
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    shown = runpy.run_path(str(ROOT / "tools" / "readme.py"))["readme_text"]((ROOT / "README.md").read_text("utf-8"))
    assert all(link.startswith("https://") for link in re.findall(r"\]\(([^)]+)\)", shown))
    assert "[docs/comparison.md]" not in shown and "`discreet docs comparison` has more" in shown
    assert "Bayesian networks (`discreet docs directed`)" in shown
    pages = {p.stem for p in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r"`discreet docs (\w+)`", shown)) <= pages


@pytest.mark.slow
def test_a_wheel_can_be_built_and_holds_the_pages(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "discreet/docs/schema.md" in names and "discreet/docs/howto/publishing.md" in names
    assert "discreet/__main__.py" in names and "discreet/py.typed" in names
