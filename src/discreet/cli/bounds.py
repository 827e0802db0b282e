"""``discreet bounds``: what can be learned from so many records, and how many each goal would need."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated

import typer

from ..errors import BudgetError, InputError
from . import options
from .console import say, say_json, say_table
from .failures import WrongUse


def bounds(
    p: Annotated[int | None, typer.Option("--p", metavar="P", help="How many columns.")] = None,
    edge_weight: Annotated[
        float | None, typer.Option("--edge-weight", metavar="η", help="The least weight of an edge to be found.")
    ] = None,
    *,
    money: options.Money,
    n: Annotated[
        int | None,
        typer.Option("--n", metavar="N", help="How many records there are, if that is public: is it enough?"),
    ] = None,
    k: Annotated[int, typer.Option("--k", metavar="K", help="Levels a column; 2 is an Ising model.")] = 2,
    t: Annotated[int, typer.Option("--t", metavar="T", help="Order of interactions; above 2 for binary columns.")] = 2,
    width: Annotated[
        float | None,
        typer.Option("--width", metavar="λ", help="Sum of weights at a column; default: three edges of weight η."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", metavar="α", help="Accuracy of parameters; default: 0.1, or η/2 if that is less."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """How many records a goal needs, and what yours allow, before any row is read.

    Goals are the graph and the parameters; privacy is none, (ε, δ), zCDP and
    pure ε. Lower bounds are proved, for every method there can be; what our
    methods need was measured and is labelled so. See docs/theory.md.

    \b
    [bold]Examples[/bold]
      discreet bounds --p 64 --edge-weight 0.35 --epsilon 1 --delta 1e-6
      discreet bounds --p 20 --k 3 --edge-weight 0.5 --rho 0.1 --n 10000 --json
    """
    from ..papers.theory import advise

    if p is None or edge_weight is None:
        missing = "--p (how many columns)" if p is None else "--edge-weight (the least weight of an edge)"
        raise WrongUse(f"{missing} is missing, as in: discreet bounds --p 64 --edge-weight 0.35 --epsilon 1")
    numbers = _budget(money)
    try:
        advice = advise(p, edge_weight=edge_weight, width=width, k=k, t=t, alpha=alpha, n=n, **numbers)
    except InputError as error:
        raise WrongUse(_in_options(str(error))) from None
    if as_json:
        say_json(advice.to_dict())
        return
    say(advice.words()[0])
    for sentence in advice.summary():
        say(sentence)
    say()
    say_table(advice.headings(), advice.rows(), right=advice.headings()[2:5])
    say()
    for remark in advice.remarks:
        say(remark)


def _in_options(message: str) -> str:
    """The same said in options, not in Python: "--alpha must be a positive number, got -1"."""
    message = re.sub(r"^(\w+)(?= must )", lambda m: "--" + m[1].replace("_", "-"), message)
    return re.sub(r"\b(\w+)=(?=\S)", lambda m: f"--{m[1].replace('_', '-')} ", message)


def _budget(money: options.Money) -> dict[str, float | None]:
    """The budget as numbers, checked as everywhere else; here ε and ρ may both be given, for a row each."""
    from ..privacy.budget import ZCDP

    if money.epsilon is None and money.delta is not None:
        raise WrongUse(f"--delta {money.delta} goes with --epsilon; give both, or --rho")
    checked = (money if money.epsilon is None else replace(money, rho=None)).budget()
    try:
        extra = None if money.rho is None else float(ZCDP(money.rho).rho)
    except BudgetError as error:
        raise WrongUse(str(error)) from None
    given = {"epsilon": getattr(checked, "epsilon", None), "delta": getattr(checked, "delta", None)}
    return {name: None if value is None else float(value) for name, value in given.items()} | {"rho": extra}
