"""A run that is stopped goes on where it was: nothing is asked twice, and nothing is paid twice."""

import shutil

import pytest

from discreet import ZCDP, ApproxDP, Curator, Ledger, PrivacyUnit, PureDP, encode, networks
from discreet.errors import DiscreetError
from discreet.learn.networks.search import SearchedNetwork
from discreet.learn.transcript import Transcript
from discreet.papers.two_stage import TwoStageNetwork
from discreet.privacy.mechanisms import SecureGateway

ASIA = networks.load("asia")
ROWS = encode(ASIA.sample(2000, random_state=1).to_pandas(), ASIA.domain)
BUDGETS = [PureDP(1), ZCDP("0.1"), ApproxDP(1, "1e-6")]


class Counting(SecureGateway):
    """Draws as always, counts the draws, and pulls the plug after some of them."""

    def __init__(self, most=10**9):
        super().__init__()
        self.draws, self.most = 0, most

    def _count(self):
        if self.draws >= self.most:
            raise KeyboardInterrupt
        self.draws += 1

    def add_noise(self, call, values):
        self._count()
        return super().add_noise(call, values)

    def select(self, call, scores):
        self._count()
        return super().select(call, scores)


def run(learner, budget, ledger, path, gateway):
    curator = Curator(ROWS, PrivacyUnit(), budget, ledger, gateway=gateway)
    procedure = learner.prepare(ASIA.domain, curator.unit, budget)
    try:
        out = procedure.run(curator, Transcript(path))
    except KeyboardInterrupt:
        curator.suspend()
        raise
    curator.close()
    return out


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("learner", [SearchedNetwork(), TwoStageNetwork(ASIA)], ids=lambda l: type(l).__name__)
def test_it_goes_on_after_every_stop(learner, budget, tmp_path):
    whole = Counting()
    once = run(learner, budget, None, tmp_path / "once", whole)
    path, drawn, stops = tmp_path / "answers", 0, 0
    ledger = Ledger.in_memory(budget)
    while True:
        gateway = Counting(10)
        try:
            out = run(learner, budget, ledger, path, gateway)
            break
        except KeyboardInterrupt:
            drawn, stops = drawn + gateway.draws, stops + 1
        assert ledger.spent == budget  # charged once, as a whole
    assert stops >= 1
    assert [e.kind for e in ledger.entries].count("charge") == 1
    # What was drawn and not written down was seen by nobody: at most the draws of one question a stop.
    assert drawn + gateway.draws <= whole.draws + 10 * stops
    assert len(out) == len(once) or isinstance(learner, SearchedNetwork)  # graphs differ in how many tables they have
    assert [s.get("step") for s in out.release["steps"]] == [s.get("step") for s in once.release["steps"]]
    learner.estimate(out, ASIA.domain)


def stopped(tmp_path, ledger, most=4):
    path = tmp_path / "answers"
    with pytest.raises(KeyboardInterrupt):
        run(SearchedNetwork(), PureDP(1), ledger, path, Counting(most))
    return path


def test_an_older_copy_is_refused(tmp_path):
    ledger = Ledger.in_memory(PureDP(1))
    path = stopped(tmp_path, ledger)
    copy = tmp_path / "copy"
    shutil.copy(path, copy)
    with pytest.raises(KeyboardInterrupt):
        run(SearchedNetwork(), PureDP(1), ledger, path, Counting(2))
    with pytest.raises(DiscreetError, match="older copy"):
        run(SearchedNetwork(), PureDP(1), ledger, copy, Counting())
    run(SearchedNetwork(), PureDP(1), ledger, path, Counting())  # the latest one goes on


def test_a_finished_run_gives_its_answers_again_and_draws_nothing(tmp_path):
    path = tmp_path / "answers"
    first = run(SearchedNetwork(), PureDP(1), None, path, Counting())
    again = run(SearchedNetwork(), PureDP(1), None, path, Counting(0))
    assert [m.counts.tolist() for m in first] == [m.counts.tolist() for m in again]
    assert first.found == again.found


def test_another_run_is_refused(tmp_path):
    path = stopped(tmp_path, None)
    for learner, budget in ((SearchedNetwork(selection="0.4"), PureDP(1)), (SearchedNetwork(), PureDP(2))):
        with pytest.raises(DiscreetError, match="another run"):
            run(learner, budget, None, path, Counting())
    with pytest.raises(DiscreetError, match="ledger"):  # it was begun without one
        run(SearchedNetwork(), PureDP(1), Ledger.in_memory(PureDP(1)), path, Counting())


def test_a_line_that_was_cut_off_is_asked_again(tmp_path):
    path = stopped(tmp_path, None)
    path.write_bytes(path.read_bytes()[:-7])
    run(SearchedNetwork(), PureDP(1), None, path, Counting())
    for junk in (b"{}\n", b"nonsense\n", b"[1]\n"):
        path.write_bytes(junk)
        with pytest.raises(DiscreetError, match="no file of answers"):
            Transcript(path)
