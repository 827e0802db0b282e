"""``discreet plan --methods``: what can be learned, how, and with which options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .console import say, say_json, say_table

if TYPE_CHECKING:
    from ..methods import Method


def say_methods(*, as_json: bool) -> None:
    from ..learn.option_words import OPTIONS
    from ..methods import FAMILIES, METHODS, SAID

    if as_json:
        keys = ("family", "name", "needs", "summary")
        options = [{name: OPTIONS[name] for name in m.options} for m in METHODS]
        say_json([{**{k: getattr(m, k) for k in keys}, "options": o} for m, o in zip(METHODS, options, strict=True)])
        return
    lines = []
    for family, what in FAMILIES.items():
        lines.append([family, "", "", what])
        lines += [["", m.name, _needs(m), m.summary] for m in METHODS if m.family == family]
    say_table(["--family", "--method", "needs", ""], lines)
    for name, meaning in OPTIONS.items():
        say(f"\n{'--' if name in SAID else '--option '}{name}: {meaning}\n    of {_where(name)}")


def _needs(method: Method) -> str:
    structure = [f"--{method.needs}"] if method.needs else []
    return ", ".join([*structure, *(f"--option {name}" for name in method.demands)])


def _where(option: str) -> str:
    """The methods that have an option: a family alone stands for all of its methods."""
    from ..methods import FAMILIES, METHODS

    out = []
    for family in FAMILIES:
        own = [m for m in METHODS if m.family == family]
        having = [m.name for m in own if option in m.options]
        if having:
            out.append(family if len(having) == len(own) else f"{family} {', '.join(having)}")
    return "; ".join(out)
