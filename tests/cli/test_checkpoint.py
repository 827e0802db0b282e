"""A command that is stopped in the middle, politely or not, goes on with --checkpoint: charged once, nothing asked
twice, and the release is saved."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from command_desk import assert_discreet, contents
from warm import KILLED, Warm

from discreet import Ledger, Measurements, Release
from discreet.learn.structure.result import StructureResult

# A process of its own that writes down every draw of noise and, at the one that it is told, waits to be stopped.
DRIVER = """
import sys, time
from pathlib import Path
from discreet.cli import run
from discreet.privacy.mechanisms import SecureGateway

stop_at, log = int(sys.argv[1]), Path("draws.log")
begun = 0

def watched(name):
    draw = getattr(SecureGateway, name)
    def wrapper(self, call, values):
        global begun
        if begun == stop_at:
            Path("ready").touch()
            time.sleep(60)
        begun += 1
        with log.open("a") as file:
            print(name, call.kind, call.scale, file=file)
        return draw(self, call, values)
    return wrapper

SecureGateway.add_noise, SecureGateway.select = watched("add_noise"), watched("select")
sys.exit(run(sys.argv[2:]))
"""
NEVER = 10**9
COMMANDS = {
    "fit": ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "-o", "out.zip"],
    "structure": ["structure", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "-o", "out.json"],
    "measure": ["measure", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "-o", "out.zip"],
}
COMMANDS["measure"] += ["--table", "smoke,age", "--table", "city"]


class Command:
    """A command line in a process of its own, which stops at a draw of noise."""

    def __init__(self, warm: Warm, stop_at: int, words: list[str]) -> None:
        self._process = warm.start(DRIVER, [str(stop_at), *words], Path.cwd(), Path("said.txt"), Path("warned.txt"))

    def stopped(self, how: signal.Signals) -> str:
        """Wait for the draw, then send the signal; what was said on standard error."""
        begun = time.monotonic()
        while not Path("ready").exists():
            assert time.monotonic() - begun < 60, Path("warned.txt").read_text()
            time.sleep(0.02)
        os.kill(self._process.pid, how)
        assert self._process.wait() == (130 if how is signal.SIGINT else KILLED)
        Path("ready").unlink()
        return Path("warned.txt").read_text()

    def finished(self) -> str:
        code = self._process.wait()
        said = Path("said.txt").read_text() + Path("warned.txt").read_text()
        assert code == 0, said
        assert_discreet(said)
        return said


def draws() -> int:
    log = Path("draws.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def opened(name: str) -> list[dict[str, object]]:
    """The steps that the saved release of a command tells of."""
    if name == "structure":
        card = StructureResult.load("out.json").card
    else:
        card = Release.load("out.zip").card if name == "fit" else Measurements.load("out.zip").release
    return list(json.loads(json.dumps(card["steps"])))


@pytest.mark.parametrize(
    ("name", "stops", "how"),
    [
        ("fit", (0, 2, 1), signal.SIGKILL),
        ("fit", (2,), signal.SIGINT),
        ("structure", (1,), signal.SIGKILL),
        ("measure", (1,), signal.SIGINT),
    ],
)
def test_it_goes_on(desk: Path, warm: Warm, name: str, stops: tuple[int, ...], how: signal.Signals) -> None:
    command = [*COMMANDS[name], "--ledger", "ledger.db"]
    Command(warm, NEVER, [*COMMANDS[name], "--checkpoint", "never.stopped"]).finished()
    whole = draws()
    assert whole >= 2 and not Path("never.stopped").exists()
    output = Path(command[command.index("-o") + 1])
    output.unlink()
    Path("draws.log").unlink()
    again = [*command, "--checkpoint", "answers"]
    kept: list[str] = []
    for stop_at in stops:
        said = Command(warm, stop_at, again).stopped(how)
        lines = Path("answers").read_text().splitlines()
        assert lines[: len(kept)] == kept  # nothing that is there is asked or written again
        kept = lines
        if how is signal.SIGINT:
            assert "run the same command again with --checkpoint answers" in said
        with Ledger.open("ledger.db") as ledger:
            assert str(ledger.spent) == "ε = 1 (pure DP)" and not output.exists()
    said = Command(warm, NEVER, again).finished()
    if len(kept) > 1:
        assert "Going on after" in said
    assert not Path("answers").exists()
    # Drawn and lost was at most one question at each stop; what is found on the way decides how many follow: of a fit
    # up to seven selections for a tree of eight columns, and as many for what it misses.
    assert abs(draws() - whole) <= 14 + len(stops)
    with Ledger.open("ledger.db") as ledger:
        entries = ledger.entries
        assert ledger.verify() == [] and [e.kind for e in entries].count("charge") == 1
        (written,) = [e.details["steps"] for e in entries if e.kind == "steps"]
        counted = [e.details["answers"] for e in entries if e.kind == "answers"]
        assert counted == list(range(1, len(counted) + 1))  # each answer once
        assert len(written) == len(counted)
    assert opened(name) == written


def test_what_was_answered_before_the_stop_is_in_the_release(desk: Path, warm: Warm) -> None:
    command = [*COMMANDS["fit"], "--ledger", "ledger.db", "--checkpoint", "answers"]
    Command(warm, 3, command).stopped(signal.SIGKILL)
    lines = [json.loads(line) for line in Path("answers").read_text().splitlines()][1:]
    Command(warm, NEVER, command).finished()
    first = [line["booked"][0]["entry"] for line in lines]
    assert first and opened("fit")[: len(first)] == first


# -- what is refused, before a row is read -----------------------------------------------------------------------------


def test_a_file_that_is_something_else_is_left_alone(desk, discreet):
    for place in ("schema.toml", "data.csv", "ledger.db", "out.zip", "nowhere/answers", "."):
        before = contents(desk)
        result = discreet(*COMMANDS["fit"], "--ledger", "ledger.db", "--checkpoint", place)
        assert result.code in (2, 4) and contents(desk) == before
        assert place.split("/")[0] in result.err


def test_the_answers_of_another_run_are_left_alone(desk, discreet, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discreet.release.release.Release.of", interrupted)
        result = discreet(*COMMANDS["fit"], "--ledger", "ledger.db", "--checkpoint", "answers")
        assert result.code == 130 and "run the same command again with --checkpoint answers" in result.err
    before = contents(desk)
    for other in (["--epsilon", "2"], ["--option", "most_cells=500"]):
        words = [w for w in COMMANDS["fit"] if other[0] != "--epsilon" or w not in ("--epsilon", "1")]
        result = discreet(*words, *other, "--ledger", "ledger.db", "--checkpoint", "answers")
        assert result.code == 2 and "another run" in result.err
    result = discreet(*COMMANDS["fit"], "--checkpoint", "answers")
    assert result.code == 3 and "ledger" in result.err
    assert contents(desk) == before
    assert discreet(*COMMANDS["fit"], "--ledger", "ledger.db", "--checkpoint", "answers").code == 0
    with Ledger.open("ledger.db") as ledger:
        assert [e.kind for e in ledger.entries].count("charge") == 1


def test_an_error_after_the_spend_says_how_to_go_on(desk, discreet, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "out.zip")

    with monkeypatch.context() as patch:
        patch.setattr("discreet.release.release.Release.save", full)
        result = discreet(*COMMANDS["fit"], "--ledger", "ledger.db", "--checkpoint", "answers")
    assert result.code != 0 and "counts as spent" in result.err
    assert "Its answers so far are in answers" in result.err
    with Ledger.open("ledger.db", None) as ledger:
        assert "settle" not in [e.kind for e in ledger.entries]
    assert discreet(*COMMANDS["fit"], "--ledger", "ledger.db", "--checkpoint", "answers").code == 0


def test_the_last_of_the_budget_is_enough_to_go_on(desk, discreet, monkeypatch):
    """The charge is made: that nothing is left for another one does not stop it."""
    words = [*COMMANDS["fit"], "--ledger", "ledger.db", "--checkpoint", "answers"]
    words[words.index("--epsilon") + 1] = "3"

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discreet.privacy.mechanisms.SecureGateway.add_noise", interrupted)
        assert discreet(*words).code == 130
    assert discreet(*words).code == 0


def test_seeded_noise_needs_no_checkpoint(desk, discreet):
    result = discreet(*COMMANDS["fit"][:-2], "--research-seed", "1", "--checkpoint", "answers")
    assert result.code == 2 and "--checkpoint" in result.err and not Path("answers").exists()
