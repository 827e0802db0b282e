"""The kind of command that all of ours are: an option that counts once may be given once, and help shows switches."""

from __future__ import annotations

from collections import Counter
from typing import Any

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
