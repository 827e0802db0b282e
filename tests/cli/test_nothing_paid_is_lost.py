"""Once the budget is charged, what it bought reaches its owner, and what is said about the money is true.

Everything that fails here fails for real: full disks (a limit on the size of files, ``/dev/full``), closed pipes,
signals, locks. Commands run in processes of their own.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
import sys
import time
import traceback
from pathlib import Path

import pytest
from command_desk import assert_discreet, contents

import discreet.privacy.ledger_log as ledger_module
from discreet.cli import main
from discreet.errors import CostError
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.measurement import Measurements
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms import SecureGateway
from discreet.release import Release

FIT = ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--graph", "smoke -> city", "--no-plan"]
MEASURE = ["measure", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--table", "smoke,city"]
STRUCTURE = ["structure", "data.csv", "--schema", "schema.toml", "--epsilon", "1"]


class Command:
    """A command line in a process of its own, forked from this one: nothing has to be imported again."""

    def __init__(self, *words, first=None, files_up_to=None, stdout=None, closed=()):
        self.out, self.err = Path("stdout.txt"), Path("stderr.txt")
        self.out.unlink(missing_ok=True), self.err.unlink(missing_ok=True)
        self.pid = os.fork()
        if not self.pid:
            code = 99
            try:
                sys.dont_write_bytecode = True  # under a limit a compiled module would be cut off, and stay so
                streams = [os.open(self.out, os.O_WRONLY | os.O_CREAT), os.open(self.err, os.O_WRONLY | os.O_CREAT)]
                os.dup2(streams[0] if stdout is None else stdout, 1), os.dup2(streams[1], 2)
                sys.stdout, sys.stderr = open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
                signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored in the background
                for number in closed:
                    os.close(number)
                    setattr(sys, ("stdin", "stdout", "stderr")[number], None)
                if first is not None:
                    first()
                if files_up_to is not None:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (files_up_to, files_up_to))
                code = main([str(word) for word in words])
                sys.stdout.flush()
            except BaseException:
                self.err.write_text(traceback.format_exc())
            finally:
                os._exit(code)

    def ended(self, seconds=120):
        end = time.monotonic() + seconds
        while not (found := os.waitpid(self.pid, os.WNOHANG))[0]:
            assert time.monotonic() < end, "it does not end"
            time.sleep(0.01)
        out, err = self.out.read_text(), self.err.read_text()
        assert_discreet(out + err)
        return os.waitstatus_to_exitcode(found[1]), out, err


def run(*words, **how):
    return Command(*words, **how).ended()


def when_noise_is_drawn(what):
    """Something happens after the spend, and before its answer."""

    def first():
        drawn = SecureGateway.add_noise

        def add_noise(*args):
            what()
            return drawn(*args)

        SecureGateway.add_noise = add_noise

    return first


def spent(desk):
    with Ledger.open(desk / "ledger.db") as ledger:
        assert ledger.verify() == []
        return str(ledger.spent)  # in words: crumbs of rounding are given back


ALL = "ε = 1 (pure DP)"


def rescued(folder):
    (found,) = folder.glob("*.rescued-*")
    return found


# -- full disks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [FIT, MEASURE, STRUCTURE], ids=lambda w: w[0])
def test_a_target_that_takes_nothing(desk, words):
    """The place was there when it was looked at; when the time comes it is a folder."""
    name = "out.json" if words[0] == "structure" else "out.zip"
    late = when_noise_is_drawn(lambda: os.makedirs(name, exist_ok=True))
    code, _, err = run(*words, "--ledger", "ledger.db", "-o", name, first=late)
    assert code == 9
    assert "ε = 1 (pure DP) counts as spent" in err and "ledger.db" in err
    assert spent(desk) == ALL
    found = rescued(desk)
    assert str(found.name) in err
    if words[0] == "fit":
        assert Release.load(found).card["budget"] == PureDP(1).to_dict()


def test_the_disk_of_the_output_is_full(desk):
    """With a limit on the size of files the ledger is written, the release is not, and what was bought is printed."""
    (desk / "schema.toml").write_text(
        (desk / "schema.toml").read_text() + "\n[columns.patient]\n" + f"levels = {[f'p{i}' for i in range(3000)]!r}\n"
    )
    words = [*FIT[:6], "--graph", "patient -> smoke", "--no-plan", "--ledger", "ledger.db"]
    reading, writing = os.pipe()  # a pipe is no file
    process = Command(*words, files_up_to=45_000, stdout=writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        out = pipe.read()
    code, _, err = process.ended()
    assert code == 9 and "File too large" in err and "ε = 1 (pure DP) counts as spent" in err
    assert "printed as JSON" in err and '"p2999"' in out
    assert spent(desk) == ALL
    assert not list(desk.glob("*.zip"))


def test_the_disk_of_the_ledger_is_full_when_it_is_settled(desk):
    """From the spend on no file may grow beyond 4,400 bytes, so that the ledger's journal cannot be written: the tables
    are saved all the same, and the charge counts in full."""
    late = when_noise_is_drawn(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4400, 4400)))
    code, _, err = run(*MEASURE, "--ledger", "ledger.db", "-o", "t.zip", first=late)
    assert code == 9 and "could not be written" in err and "whole and saved in t.zip" in err
    assert f"{ALL} counts as spent" in err and len(Measurements.load(desk / "t.zip")) == 1
    assert spent(desk) == ALL


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_dev_full(desk):
    code, _, err = run(*MEASURE, "--ledger", "ledger.db", "-o", "/dev/full", "--force")
    assert code == 9 and "No space left" in err
    assert Measurements.load(rescued(desk)).release["budget"] == PureDP(1).to_dict()
    rescued(desk).unlink()
    with open("/dev/full", "w") as full:
        code, _, err = run(*MEASURE, "--ledger", "ledger.db", stdout=full.fileno())
    assert code == 4 and "nothing was spent" in err
    with open("/dev/full", "w") as full:
        code, _, err = run(*FIT, "--ledger", "ledger.db", "-o", "m.zip", stdout=full.fileno())
    assert code == 0 and "saved in m.zip" in err and Release.load("m.zip")
    with open("/dev/full", "w") as full:
        code, _, err = run("ledger", "show", "ledger.db", stdout=full.fileno())
    assert code == 4 and "No space left" in err


# -- streams that nobody reads -----------------------------------------------------------------------------------------


def broken_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("words", [FIT[:-1], MEASURE, STRUCTURE], ids=lambda w: w[0])
def test_a_closed_pipe_does_not_stop_what_is_paid_for(desk, words):
    name = "out.json" if words[0] == "structure" else "out.zip"
    pipe = broken_pipe()
    code, _, err = run(*words, "--ledger", "ledger.db", "-o", name, stdout=pipe)
    os.close(pipe)
    assert code == 0 and (desk / name).exists() and f"saved in {name}" in err
    assert spent(desk) == ALL


def test_a_result_that_nobody_can_read_is_not_bought(desk):
    pipe = broken_pipe()
    code, _, err = run(*MEASURE, "--ledger", "ledger.db", stdout=pipe)
    os.close(pipe)
    assert code == 4 and "-o" in err and "nothing was spent" in err and spent(desk) == "None"


def test_a_pipe_that_is_closed_after_the_spend(desk):
    """The reader goes away when the noise is drawn: the result goes to a file."""

    def wait():
        Path("drawn").touch()
        wait_for(Path("gone"))

    reading, writing = os.pipe()

    def late():
        os.close(reading)
        when_noise_is_drawn(wait)()

    process = Command(*MEASURE, "--ledger", "ledger.db", first=late, stdout=writing)
    os.close(writing)
    wait_for(desk / "drawn")
    os.close(reading)
    (desk / "gone").touch()
    code, _, err = process.ended()
    assert code == 9 and "nobody has read the result" in err and "ε = 1 (pure DP) counts as spent" in err
    assert Measurements.load(rescued(desk))


@pytest.mark.parametrize("closed", [(1,), (2,), (0,), (0, 1, 2)])
def test_streams_that_were_closed_before(desk, closed):
    code, _, _ = run(*FIT, "--ledger", "ledger.db", "-o", "m.zip", closed=closed)
    assert code == 0 and Release.load("m.zip") and spent(desk) == ALL


# -- what fails afterwards ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ZeroDivisionError("987654321"), MemoryError(), CostError("too large")], ids=repr)
def test_a_failure_after_the_answers_keeps_the_noisy_sums(desk, discreet, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(OptimalNetwork, "_estimate", fails)
    result = discreet(*FIT, "--ledger", "ledger.db", "-o", "m.zip")
    assert_discreet(result.text)
    assert result.code == 9  # and not 5 or 70: the work was begun, and what matters is the money
    assert f"{ALL} counts as spent" in result.err and spent(desk) == ALL
    found = Measurements.load(rescued(desk))
    assert [m.clique for m in found] and found.release["budget"] == PureDP(1).to_dict()
    assert discreet("show", rescued(desk)).code == 0 and rescued(desk).name in result.err


def test_a_failure_between_two_answers_keeps_the_first(desk, discreet, monkeypatch):
    measure = Curator.measure

    def only_once(self, *args, **kwargs):
        if self.steps:
            raise ZeroDivisionError
        return measure(self, *args, **kwargs)

    monkeypatch.setattr(Curator, "measure", only_once)
    words = [*FIT[:6], "--family", "field", "--ledger", "ledger.db", "-o", "m.zip"]
    result = discreet(*words)
    assert result.code == 9 and f"{spent(desk)} counts as spent" in result.err  # what was not used went back
    assert spent(desk) != ALL
    if list(desk.glob("*.rescued-*")):  # the first answer had columns
        assert rescued(desk).name in result.err and len(Measurements.load(rescued(desk))) > 0
    else:
        assert "printed as JSON" in result.err and '"tables": [' in result.out


@pytest.mark.parametrize("budget", [["--epsilon", "1"], ["--rho", "0.1"], ["--epsilon", "1", "--delta", "1e-6"]])
@pytest.mark.parametrize("levels", [{"one": 1}, {"one": 1, "two": 1}, {"one": 1, "two": 2}, {"one": 1, "three": 3}])
def test_columns_of_one_level(tmp_path, discreet, monkeypatch, levels, budget):
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(
        "".join(f"[columns.{n}]\nlevels = {[f'l{i}' for i in range(k)]!r}\n" for n, k in levels.items())
    )
    Path("data.csv").write_text(",".join(levels) + "\n" + (",".join("l0" for _ in levels) + "\n") * 30)
    for family in ("field", "network", "pairwise"):
        for method in ([], ["--cliques", ",".join(levels)] if family == "field" else []):
            words = ["fit", "data.csv", "--schema", "schema.toml", *budget, "--family", family, *method]
            result = discreet(*words, "--no-plan", "--force")
            assert result.code == 0, (family, method, result.err)


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not come"
        time.sleep(0.01)


def at_the_first_commit(when, then=lambda: None):
    """Ctrl-C at the very commit of the charge, before it or after it."""

    def first():
        patiently, struck = ledger_module.patiently, []

        def at_the_commit(connection, path, statement, values=()):
            if statement == "COMMIT" and not struck:
                struck.append(statement)
                if when == "after":
                    patiently(connection, path, statement, values)
                then()
                signal.raise_signal(signal.SIGINT)
            return patiently(connection, path, statement, values)

        ledger_module.patiently = at_the_commit

    return first


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, 1e-6)], ids=["pure", "approximate"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_at_the_commit_tells_the_truth(desk, when, budget):
    """What is said is what the ledger has. As nothing was drawn, what was charged is given back."""
    (desk / "ledger.db").unlink(), (desk / "ledger.db.key").unlink()
    Ledger.create(desk / "ledger.db", budget).close()
    more = ["--delta", "1e-6"] if isinstance(budget, ApproxDP) else []
    code, _, err = run(*FIT, *more, "--ledger", "ledger.db", first=at_the_first_commit(when))
    assert code == 130 and spent(desk) == "None" and "nothing was spent" in err
    with Ledger.open("ledger.db") as ledger:
        kinds = [e.kind for e in ledger.entries]
        assert kinds == (["open", "charge", "steps", "settle"] if when == "after" else ["open"])


def test_ctrl_c_at_the_commit_when_nothing_can_be_given_back(desk):
    """The folder takes no new file any more, so that no journal can be written."""

    def no_more():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    code, _, err = run(*FIT, "--ledger", "ledger.db", first=at_the_first_commit("after", no_more))
    assert code == 130 and spent(desk) == ALL
    assert not err or f"{ALL} counts as spent" in err  # where nothing can be written, stderr may be a file, too


def test_a_terminated_run_leaves_what_it_bought(desk):
    """SIGTERM, as schedulers send it, after the answers and before the model."""

    def first():
        OptimalNetwork._estimate = lambda *_: signal.raise_signal(signal.SIGTERM)

    code, _, err = run(*FIT, "--ledger", "ledger.db", "-o", "m.zip", first=first)
    assert code == 130 and f"{ALL} counts as spent" in err and spent(desk) == ALL
    assert rescued(desk).name in err and len(Measurements.load(rescued(desk))) > 0


def test_a_locked_ledger_says_that_it_waits_and_hears_ctrl_c(desk):
    with contextlib.closing(sqlite3.connect("ledger.db", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        process = Command(*FIT, "--ledger", "ledger.db")
        end = time.monotonic() + 60
        while not process.err.exists() or "Waiting for the ledger ledger.db" not in process.err.read_text():
            assert time.monotonic() < end
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        struck = time.monotonic()
        code, _, err = process.ended()
        assert code == 130 and time.monotonic() - struck < 10 and "nothing was spent" in err
        holder.execute("ROLLBACK")
    assert spent(desk) == "None"


# -- names -------------------------------------------------------------------------------------------------------------


def test_no_result_takes_the_place_of_what_is_read(desk, discreet):
    for name in ("data.csv", "schema.toml", "ledger.db", "ledger.db.key", "ledger.db-journal"):
        if (desk / name).exists():
            os.link(name, f"hard-{name}")
            os.symlink(name, f"soft-{name}")
    (desk / "graph.json").write_text("{}")
    before = contents(desk)
    for kind in ("", "hard-", "soft-"):
        for name in ("data.csv", "schema.toml", "ledger.db", "ledger.db.key"):
            for words in ([*MEASURE, "-o"], [*FIT, "-o", "m.zip", "--card"]):
                result = discreet(*words, f"{kind}{name}", "--ledger", "ledger.db", "--force")
                assert result.code in (2, 4) and name in result.err, (kind, name, words)
    assert discreet(*MEASURE, "-o", "ledger.db-journal", "--ledger", "ledger.db").code == 2
    assert discreet(*FIT, "-o", "m.zip", "--card", "m.zip", "--ledger", "ledger.db").code == 2
    assert contents(desk) == before and spent(desk) == "None"


def test_a_ledger_is_not_overwritten_by_any_command(desk, discreet):
    assert discreet(*FIT, "-o", "m.zip").code == 0
    before = contents(desk)
    for words in (
        ["sample", "m.zip", "-n", "10", "-o"],
        ["show", "m.zip", "--card"],
        ["schema", "draft", "data.csv", "-o"],
    ):
        for name in ("ledger.db", "ledger.db.key"):
            result = discreet(*words, name, "--force")
            assert result.code != 0 and contents(desk) == before, (words, result.text)


def test_two_fits_to_one_name_pay_once(desk):
    """The second is refused before it pays, and after the first has ended the name is free again."""

    def wait():
        Path("drawn").touch()
        wait_for(Path("go"))

    words = [*FIT, "--ledger", "ledger.db", "-o", "m.zip"]
    first = Command(*words, first=when_noise_is_drawn(wait))
    wait_for(desk / "drawn")
    for more in ([], ["--force"]):
        code, _, err = run(*words, *more)
        assert code == 4 and "m.zip" in err and "another process" in err
    (desk / "go").touch()
    assert first.ended()[0] == 0
    assert spent(desk) == ALL
    assert not list(desk.glob(".*")), "a claim was left behind"
    assert run(*words)[0] == 4
    assert run(*words, "--force")[0] == 0


def test_a_claim_goes_with_its_process(desk):
    def hang():
        Path("drawn").touch()
        time.sleep(100)

    words = [*FIT, "--ledger", "ledger.db", "-o", "m.zip"]
    process = Command(*words, first=when_noise_is_drawn(hang))
    wait_for(desk / "drawn")
    os.kill(process.pid, signal.SIGKILL)
    assert process.ended()[0] == -signal.SIGKILL
    assert run(*words)[0] == 0
