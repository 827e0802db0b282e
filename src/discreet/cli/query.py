"""``discreet query`` and ``discreet map``: ask a model, in the same words as in Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CostError, DiscreetError, InputError
from ..progress import track
from . import kept, options
from .console import note, progress, say, say_json, say_table, waiting
from .failures import WrongUse, explain

if TYPE_CHECKING:
    from ..io.limits import Limits
    from ..models.answer import Answer, Assignment
    from ..models.base import Model
    from ..release import Release
    from ..release.interval import Interval, Survival
    from ..release.uncertainty import NoiseIntervals

    Asked = Answer | Assignment | Interval | Survival

PATIENCE, FEWEST_DRAWS = 20.0, 10  # seconds that intervals may take unasked, and refits below which they mean little
ModelFile = Annotated[
    str, typer.Argument(metavar="MODEL", help="A release or model file (.zip, .bif, .uai), or asia, alarm, …")
]
NoIntervals = Annotated[
    bool, typer.Option("--no-intervals", help="Do not say how far the noise can have moved answers.")
]
Draws = Annotated[
    int | None, typer.Option(metavar="N", help="Refits behind the intervals; more are slower and steadier.")
]
Seed = Annotated[int, typer.Option(metavar="N", help="Of post-processing; the noise that protected is never seeded.")]
Given = Annotated[
    list[str] | None, typer.Option("--given", metavar="COLUMN=LEVEL", help="A condition. Repeat it for more.")
]


def query(
    model: ModelFile,
    questions: Annotated[
        list[str], typer.Argument(metavar="QUESTION…", help="P(a, b | c=yes), E(age | job), MAP(a | b=no).")
    ],
    no_intervals: NoIntervals = False,
    level: options.Level = 0.9,
    draws: Draws = None,
    seed: Seed = 0,
    most_seconds: options.MostSeconds = None,
    as_json: options.Json = False,
) -> None:
    """Ask a model: probabilities, means, quantiles, most probable values.

    E, SD and QUANTILE are about numbers; <, <=, >, >= compare them; != and in
    {a, b} name levels; known(income) is neither missing nor other; a column
    by itself after the bar asks for a whole table. Names and levels with odd
    characters go into quotes.

    Nothing private is involved: a model is asked, not the rows it was learned
    from. When the file holds the noisy tables behind the model, answers come
    with ±: how far the privacy noise can have moved them (not the sampling of
    the records, nor a given graph that is wrong).
    Refits behind it are kept in ~/.cache/discreet (DISCREET_CACHE names another
    folder, or is "off"), so that the next question does not wait.

    \b
    [bold]Examples[/bold]
      discreet query model.zip "P(lung, bronc | smoke=yes)"
      discreet query asia "P(dysp=yes)" "MAP(lung, tub | xray=yes)"
      discreet query model.zip "E(age | job)" "P(18 <= age < 65 | job=Sales)"
      discreet query model.zip "QUANTILE(income, 0.9 | sex != male)"
    """
    options.check_level(level)
    release = open_release(model, options.limits_from(most_seconds))
    with progress():
        answers, wrong = _tried(release.model, questions)  # wrong ones are found before refits
    if len(wrong) == len(questions) == 1:
        raise wrong[questions[0]]
    questions = [question for question in questions if question not in wrong]
    if not questions:
        no_intervals = True
    intervals = None if no_intervals else affordable_intervals(release, level, draws, seed)
    if intervals is not None:
        with progress():
            answers = _answers(intervals, questions)
    if as_json:
        say_json([_answer_json(answer) for answer in answers])
    for position, answer in enumerate(() if as_json else answers):
        if position:
            say()
        _say_answer(answer)
    codes = []
    for question, error in wrong.items():
        note(f"No answer to {question}:")
        codes.append(explain(error))
    if codes:
        raise typer.Exit(codes[0])


def most_probable(
    model: ModelFile,
    columns: Annotated[
        list[str] | None, typer.Argument(metavar="[COLUMN…]", help="Whose values; default: all that are not given.")
    ] = None,
    given: Given = None,
    best: Annotated[int, typer.Option("-k", "--best", metavar="N", help="The N best, one after the other.")] = 1,
    no_intervals: NoIntervals = False,
    draws: Draws = None,
    seed: Seed = 0,
    most_seconds: options.MostSeconds = None,
    as_json: options.Json = False,
) -> None:
    """The most probable values of all columns, or of some, given others.

    \b
    [bold]Examples[/bold]
      discreet map model.zip --given smoke=yes
      discreet map asia lung tub --given xray=yes
      discreet map asia -k 3
    """
    if best < 1:
        raise WrongUse(f"-k is a whole number of at least 1, got {best}")
    if best > 1 and columns:
        raise WrongUse("-k finds the best values of all columns that are not given; leave the columns out")
    release = open_release(model, options.limits_from(most_seconds))
    condition = given_from(given)
    if best > 1:
        found = release.model.most_probable(best, condition)
        if as_json:
            say_json([a.to_dict() for a in found])
            return
        for number, assignment in enumerate(found, start=1):
            say(f"{number}. {assignment}")
        return
    answer: Asked = release.model.map(columns or None, condition)
    intervals = None if no_intervals else affordable_intervals(release, 0.9, draws, seed)
    if intervals is not None:
        answer = intervals.map(columns or None, condition)
    if as_json:
        say_json(_answer_json(answer))
        return
    _say_answer(answer)


# -- the model ---------------------------------------------------------------------------------------------------------


def open_release(name: str, limits: Limits | None = None) -> Release:
    """The release in a file; a model of any format, or a bundled network, is one without noisy tables."""
    from .. import networks
    from ..errors import FileFormatError, did_you_mean
    from ..files import open_model
    from ..io.export import NATIVE, ending_of
    from ..release import Release

    path = Path(name)
    if path.is_dir():
        raise FileFormatError(f"{name} is a folder; name a model file")
    if path.exists():
        limits = limits or options.limits_from(None)
        return Release.load(path, limits) if ending_of(path) == NATIVE else Release(open_model(path, limits))
    if name in networks.names():
        return Release(networks.load(name))
    hint = did_you_mean(name, networks.names()) if not path.suffix else ""
    raise FileFormatError(f"there is no file {name}" + (hint or "; name a model file, or asia, alarm, …"))


def given_from(texts: Sequence[str] | None) -> dict[str, str]:
    """``--given column=level``."""
    out: dict[str, str] = {}
    for text in texts or ():
        name, sign, label = text.partition("=")
        if not sign or not name.strip() or not label.strip():
            raise WrongUse(f"--given {text!r}: write COLUMN=LEVEL, as in --given smoke=yes")
        if name.strip() in out:
            raise WrongUse(f"--given names {name.strip()!r} twice; a column has one level")
        out[name.strip()] = label.strip()
    return out


def affordable_intervals(
    release: Release, level: float = 0.9, draws: int | None = None, seed: int = 0
) -> NoiseIntervals | None:
    """How far noise can have moved answers; None, with a remark where one is due, if that cannot be told."""
    from ..release import DRAWS

    if draws is not None and draws < 2:
        raise WrongUse(f"--draws is a whole number of at least 2, got {draws}")
    if not release.has_intervals:
        return None
    try:
        wanted = draws or affordable_draws(release)
        if wanted is None:
            return None
        if draws is None and wanted < DRAWS:
            note(f"Remark: intervals from {wanted} refits instead of {DRAWS}, to save time; --draws N takes more.")
        with progress():
            return kept.intervals(release, level, wanted, seed)
    except (InputError, CostError) as error:
        note(f"Remark: no intervals: {error}")
        return None


def affordable_draws(release: Release) -> int | None:
    """How many refits fit into the time that people wait; None, with a remark, if too few for an interval do."""
    from ..release import DRAWS

    with waiting("fitting the model once more, to know how long its ± takes"):
        seconds = release.interval_seconds(DRAWS)
    draws = DRAWS if seconds <= PATIENCE else max(int(DRAWS * PATIENCE / seconds), 0)
    if draws >= FEWEST_DRAWS:
        return draws
    note(
        f"Remark: no intervals, since {DRAWS} refits of this model would take about {seconds / 60:.0f} min; --draws N "
        "takes that time."
    )
    return None


def _tried(model: Model, questions: Sequence[str]) -> tuple[Sequence[Asked], dict[str, DiscreetError]]:
    """The answers, and what is wrong with the questions that have none."""
    answers: list[Asked] = []
    wrong: dict[str, DiscreetError] = {}
    for question in track(questions, len(questions), "questions"):
        try:
            answers.append(model.ask(question))
        except DiscreetError as error:
            wrong[question] = error
    return answers, wrong


def _answers(who: Model | NoiseIntervals, questions: Sequence[str]) -> Sequence[Asked]:
    return [who.ask(question) for question in track(questions, len(questions), "questions")]


# -- answers -----------------------------------------------------------------------------------------------------------


def _say_answer(found: Asked) -> None:
    from ..release.interval import Interval, Survival

    if isinstance(found, Survival):
        say(str(found.assignment))
        say(f"  {found.survival:.0%} of refits under fresh noise say the same")
    elif isinstance(found, Interval) and found.answer is not None:
        answer, how = found.answer, f"± at {100 * found.level:g} %, for the privacy noise"
        texts = found.texts()
        if not answer.names:
            say(f"{answer.title} = {texts[0][0]} ± {texts[0][1]}   ({how})")
        else:
            say(f"{answer.title}   ({how})")
            cells = [[*labels, p, f"± {half}"] for (labels, _), (p, half) in zip(answer, texts, strict=True)]
            say_table([*answer.names, answer.figure, "noise"], cells, right=[answer.figure, "noise"])
        if answer.remark:
            say(f"  {answer.remark}")
    else:
        say(str(found))
        return
    if found.note:
        say(f"  beware: {found.note}")


def _answer_json(found: Asked) -> dict[str, Any]:
    from ..release.interval import Interval, Survival

    if isinstance(found, Survival):
        return {**found.assignment.to_dict(), "survival": found.survival, "note": found.note}
    if not isinstance(found, Interval):
        return found.to_dict()
    assert found.answer is not None
    entry = found.answer.to_dict()
    half = found.half_width.reshape(-1).tolist()
    cells = [{**cell, "noise": h} for cell, h in zip(entry["cells"], half, strict=True)]
    return {**entry, "cells": cells, "level": found.level, "note": found.note}
