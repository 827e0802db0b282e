"""The names to begin with: few enough to hold in mind, each showing its use, and all of them on the page."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import discreet
from discreet.learn.learner import Learner
from discreet.methods import METHODS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "api.md").read_text("utf-8")
NAMES = [name for name in discreet.__all__ if not name.startswith("__")]


def test_they_are_few():
    assert 15 <= len(NAMES) <= 25
    assert set(dir(discreet)) == set(discreet.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_each_shows_its_use_and_is_on_the_page(name):
    """Also after everything was imported: a room of the same name would take its place."""
    value = getattr(discreet, name)
    text = inspect.getdoc(value) or ""
    assert re.search(rf"\b{name}[.(]|except {name}\b", text), f"the text of {name} does not show how it is used"
    home = name if inspect.ismodule(value) else f"{value.__module__}.{name}"
    home = home.replace("discreet.attribute", "discreet.domain")
    assert re.search(rf":: (discreet\.)?{re.escape(home)}$", PAGE, re.MULTILINE), f"{home} is not in docs/api.md"
    assert name == "networks" or not inspect.ismodule(value)


def named_in_pages():
    """Classes and functions that blocks of the documentation import, with the page that does."""
    found = {}
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]:
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for room, names in re.findall(r"^from (discreet[\w.]*) import \(?([\w, \n]+)", block, re.MULTILINE):
                for name in re.findall(r"\w+", names):
                    value = getattr(importlib.import_module(room), name, None)
                    if inspect.isclass(value) or inspect.isfunction(value):
                        found[f"{value.__module__}.{value.__name__}"] = page.name
    return found


def learners():
    """Every class that can be asked to prepare and to estimate."""
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name.split(".")[1] in ("learn", "papers"):
            importlib.import_module(module.name)
    waiting, found = [Learner], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("discreet.") and not inspect.isabstract(kind):
            found.add(f"{kind.__module__}.{kind.__name__}")
    return found


def on_the_page(home):
    return re.search(rf":: (discreet\.)?{re.escape(home)}$", PAGE, re.MULTILINE)


def test_what_pages_import_is_on_the_page():
    homes = {home.replace("discreet.attribute", "discreet.domain"): page for home, page in named_in_pages().items()}
    assert len(homes) > 30
    assert {home: page for home, page in homes.items() if not on_the_page(home)} == {}


def test_every_learner_there_is_can_be_found_on_the_page():
    """Those of no family too. A reference point that releases nothing private is none of them."""
    public = {
        home
        for home in learners()
        if "._" not in home and not home.endswith((".NonprivateField", ".NonprivateNetwork"))
    }
    assert len(public) > 25
    assert sorted(home for home in public if not on_the_page(home)) == []


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.family} {m.name}")
def test_every_learner_is_on_the_page_and_explains_its_options(method):
    assert f":: {method.learner.__module__}.{method.learner.__name__}\n" in PAGE
    text = "".join(inspect.getdoc(c) or "" for c in method.learner.__mro__ if c.__module__.startswith("discreet"))
    for option in method.options:
        assert option in text, f"{method.learner.__name__} does not say what {option} is"
