"""The names to begin with: few enough to hold in mind, each showing its use, and all of them on the page."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import discreet
from discreet.methods import METHODS

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "api.md").read_text("utf-8")
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


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.family} {m.name}")
def test_every_learner_is_on_the_page_and_explains_its_options(method):
    assert f":: {method.learner.__module__}.{method.learner.__name__}\n" in PAGE
    text = "".join(inspect.getdoc(c) or "" for c in method.learner.__mro__ if c.__module__.startswith("discreet"))
    for option in method.options:
        assert option in text, f"{method.learner.__name__} does not say what {option} is"
