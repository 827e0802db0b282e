"""The kind of command that all of ours are: an option that counts once may be given once, help shows switches, and
options that several commands share are declared once, in groups."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from .failures import UsageError


def _plain_switches(parameters: list[Any]) -> list[Any]:
    """Some versions of typer write ``--force <bool>``, as if a value had to follow."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """Refuses an option that is given twice. Otherwise the last would win in silence: ``--epsilon 1 --epsilon 5``."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_switches(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for parameter, times in Counter(order).items():
                single = not getattr(parameter, "multiple", False) and getattr(parameter, "nargs", 1) == 1
                if times > 1 and single and getattr(parameter, "param_type_name", "") == "option":
                    name = max(parameter.opts, key=len)
                    raise UsageError(f"{name} is given {times} times; give it once", ctx)
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """A command that holds others."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain_switches(super().get_params(ctx))


class Commands(typer.Typer):
    """A number of commands under one name."""

    def __init__(self, **about: Any) -> None:
        super().__init__(cls=Group, no_args_is_help=True, rich_markup_mode="rich", **about)

    def add(self, function: Callable[..., None], name: str | None = None) -> Callable[..., None]:
        self.command(name, cls=Command)(spelled_out(function))
        return function


def spelled_out(function: Callable[..., None]) -> Callable[..., None]:
    """The same command as typer understands it: a parameter that is a group of options, a dataclass, becomes these."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[inspect.Parameter] = []
    for own in inspect.signature(function).parameters.values():
        if (group := groups.get(own.name)) is None:
            parameters.append(own.replace(annotation=hints[own.name], kind=own.KEYWORD_ONLY))
            continue
        kinds = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(f.name, own.KEYWORD_ONLY, default=f.default, annotation=kinds[f.name])
            for f in dataclasses.fields(group)
        ]

    @functools.wraps(function)
    def call(**said: Any) -> None:
        for name, group in groups.items():
            said[name] = group(**{f.name: said.pop(f.name) for f in dataclasses.fields(group)})
        function(**said)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
