"""A run that is stopped goes on where it was: nothing is asked twice, and nothing is paid twice."""

import json
import shutil
from dataclasses import replace

import pytest

from discreet import ZCDP, ApproxDP, Curator, Domain, Ledger, Marginals, PrivacyUnit, PureDP, encode, networks
from discreet.errors import BudgetError, DiscreetError, InputError, LedgerError
from discreet.learn.networks.search import SearchedNetwork
from discreet.learn.structure.stable_edges import StableEdges
from discreet.learn.transcript import Transcript
from discreet.papers.maximal_monomials import MaximalMonomials
from discreet.papers.two_stage import TwoStageNetwork
from discreet.privacy.mechanisms import SecureGateway
from discreet.release.research import ResearchCurator

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

    def release_stable(self, call, levels, word):
        self._count()
        return super().release_stable(call, levels, word)


def run(learner, budget, ledger, path, gateway):
    curator = Curator(ROWS, PrivacyUnit(), budget, ledger, gateway=gateway)
    procedure = learner.plan(ASIA.domain, curator.unit, budget)
    with curator:  # a stopped run gives nothing back, however the curator is left
        return procedure.run(curator, Transcript(path))


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


def test_a_heading_that_was_cut_off_begins_anew_and_other_files_are_left_alone(tmp_path):
    path = stopped(tmp_path, None)
    path.write_bytes(path.read_bytes()[:30])
    run(SearchedNetwork(), PureDP(1), None, path, Counting())
    for other in (b"{}\n", b"nonsense\n", b"[1]\n", b"a note without an end", b"\xff\xfe\n", b"[" * 10**5 + b"\n"):
        path.write_bytes(other)
        with pytest.raises(DiscreetError, match="no file of answers"):
            Transcript(path)
        assert path.read_bytes() == other


# -- wherever it is stopped, it is charged once; and nothing is asked twice for one price ------------------------------


def charges(ledger):
    return [e.kind for e in ledger.entries].count("charge")


@pytest.mark.parametrize("learner", [SearchedNetwork(), StableEdges()], ids=lambda l: type(l).__name__)
def test_stopped_after_the_charge_and_before_the_first_answer(learner, tmp_path):
    budget = ApproxDP(1, "1e-6")  # the steps of StableEdges are in sequence: its first entry is for all of them
    ledger, path = Ledger.in_memory(budget), tmp_path / "answers"
    for most in (0, 1, 0):
        with pytest.raises(KeyboardInterrupt):
            run(learner, budget, ledger, path, Counting(most))
    once = run(learner, budget, None, tmp_path / "once", Counting())
    out = run(learner, budget, ledger, path, Counting())
    assert charges(ledger) == 1 and ledger.verify() == []
    assert len(out.release["steps"]) == len(once.release["steps"])
    (written,) = [e.details["steps"] for e in ledger.entries if e.kind == "steps"]
    assert json.loads(json.dumps(written)) == json.loads(json.dumps(out.release["steps"]))


def test_stopped_between_the_answer_and_its_count(tmp_path, monkeypatch):
    ledger, path = Ledger.in_memory(PureDP(1)), tmp_path / "answers"

    def pulled(charge, before, had):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ledger, "count_answer", pulled)
        run(SearchedNetwork(), PureDP(1), ledger, path, Counting())
    gateway = Counting(0)
    with pytest.raises(KeyboardInterrupt):  # the one answer is there, and counted now
        run(SearchedNetwork(), PureDP(1), ledger, path, gateway)
    counted = [e.details["answers"] for e in ledger.entries if e.kind == "answers"]
    assert counted == [1] and gateway.draws == 0
    run(SearchedNetwork(), PureDP(1), ledger, path, Counting())
    assert charges(ledger) == 1


def test_two_at_once_are_refused(tmp_path):
    ledger = Ledger.in_memory(PureDP(1))
    path = stopped(tmp_path, ledger)
    copy = tmp_path / "copy"
    shutil.copy(path, copy)
    gateway, late = Counting(), Counting()

    class Interrupting(Counting):
        """In the middle of this run another process takes the copy to its end."""

        def _count(self):
            if not self.draws:
                with pytest.raises(InputError, match="another process"):
                    run(SearchedNetwork(), PureDP(1), ledger, path, late)
                run(SearchedNetwork(), PureDP(1), ledger, copy, gateway)
            super()._count()

    with pytest.raises(LedgerError, match=r"over|twice at once"):
        run(SearchedNetwork(), PureDP(1), ledger, path, Interrupting())
    assert late.draws == 0 and gateway.draws > 0 and charges(ledger) == 1


def test_the_run_of_another_ledger_is_refused(tmp_path):
    mine, other = Ledger.in_memory(PureDP(1)), Ledger.in_memory(PureDP(1))
    path = stopped(tmp_path, mine)
    other.charge(PureDP(1), PrivacyUnit())  # the same number, amount and unit, and open
    for ledger, words in ((other, "knows nothing"), (None, "ledger that it was charged to")):
        gateway = Counting()
        with pytest.raises(DiscreetError, match=words):
            run(SearchedNetwork(), PureDP(1), ledger, path, gateway)
        assert gateway.draws == 0
    run(SearchedNetwork(), PureDP(1), mine, path, Counting())


def test_a_run_that_is_over_gives_its_answers_again_and_no_others(tmp_path):
    ledger = Ledger.in_memory(PureDP(2))
    path, copy = stopped(tmp_path, ledger), tmp_path / "copy"
    shutil.copy(path, copy)
    first = run(SearchedNetwork(), PureDP(1), ledger, path, Counting())
    entries = len(ledger.entries)
    again = run(SearchedNetwork(), PureDP(1), ledger, path, Counting(0))
    assert [m.counts.tolist() for m in first] == [m.counts.tolist() for m in again]
    gateway = Counting()
    with pytest.raises(DiscreetError, match="is over"):
        run(SearchedNetwork(), PureDP(1), ledger, copy, gateway)
    assert gateway.draws == 0 and len(ledger.entries) == entries


def test_a_curator_answers_to_the_run_alone(tmp_path):
    """What it answered before or after would not stand in the file, and be forgotten by the next curator."""
    half, rest = PureDP(1).split([1, 1])
    query = Marginals(ASIA.domain, ["smoke"])
    curator = Curator(ROWS, PrivacyUnit(), PureDP(1))
    curator.measure(query, half)
    procedure = SearchedNetwork().plan(ASIA.domain, curator.unit, rest)
    with pytest.raises(BudgetError, match="has answered already"):
        procedure.run(curator, Transcript(tmp_path / "answers"))
    assert not (tmp_path / "answers").exists()
    curator = Curator(ROWS, PrivacyUnit(), PureDP(1))
    procedure.run(curator, Transcript(tmp_path / "others"))
    with pytest.raises(BudgetError, match="closed"):
        curator.measure(query, half)


def test_random_blocks_are_not_drawn_twice(tmp_path):
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    rows = encode({name: [0, 1] * 20 for name in domain.names}, domain)
    learner = MaximalMonomials(2, min_weight=0.2, steps=2, halves=True)
    ledger = Ledger.in_memory(ZCDP(1))
    curator = Curator(rows, PrivacyUnit(), ZCDP(1), ledger)
    procedure = learner.plan(domain, curator.unit, ZCDP(1))
    with pytest.raises(InputError, match="cannot be stopped and taken up again"):
        procedure.run(curator, Transcript(tmp_path / "answers"))
    assert ledger.spent is None and not (tmp_path / "answers").exists()
    whole = TwoStageNetwork(ASIA).plan(ASIA.domain, PrivacyUnit(), PureDP(1))
    assert not whole.not_resumable
    amplified = replace(whole.steps[0], share=ApproxDP("0.1", "1e-6"))
    assert replace(whole, whole=replace(whole.whole, budget=ApproxDP(1, "1e-5")), steps=(amplified,)).not_resumable


def test_seeded_answers_are_never_those_of_a_release(tmp_path):
    path, learner = tmp_path / "answers", SearchedNetwork()
    research = ResearchCurator(ROWS, PrivacyUnit(), PureDP(1), seed=1)
    learner.plan(ASIA.domain, research.unit, PureDP(1)).run(research, Transcript(path))
    gateway = Counting()
    with pytest.raises(InputError, match="another run"):
        run(learner, PureDP(1), None, path, gateway)
    assert gateway.draws == 0


class Meanwhile(Counting):
    """While the noise of its first answer is drawn, something else happens."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def _count(self):
        other, self.other = self.other, None
        if other is not None:
            other()
        super()._count()


def last_answer(path):
    return path.read_text().splitlines()[-1]


def overtaken(tmp_path, ledger):
    """Two processes go on from copies, and draw their next answers at the same time: the first one counts."""
    path, copy = stopped(tmp_path, ledger), tmp_path / "copy"
    shutil.copy(path, copy)

    def first():
        with pytest.raises(KeyboardInterrupt):
            run(SearchedNetwork(), PureDP(1), ledger, path, Counting(1))

    return path, copy, Meanwhile(first)


def test_of_two_answers_drawn_at_once_one_is_kept(tmp_path):
    ledger = Ledger.in_memory(PureDP(1))
    path, copy, gateway = overtaken(tmp_path, ledger)
    before = copy.read_bytes()
    with pytest.raises(LedgerError, match="twice at once"):
        run(SearchedNetwork(), PureDP(1), ledger, copy, gateway)
    assert gateway.draws == 1 and copy.read_bytes() == before  # what it drew is in no file
    with pytest.raises(LedgerError, match="older copy"):
        run(SearchedNetwork(), PureDP(1), ledger, copy, Counting())
    run(SearchedNetwork(), PureDP(1), ledger, path, Counting())


def test_answers_that_come_out_alike_are_told_apart(tmp_path):
    """Two draws of one question, here by one seed: the ledger must not take the second for the first."""
    lines = []
    for path in (tmp_path / "one", tmp_path / "two"):
        research = ResearchCurator(ROWS, PrivacyUnit(), PureDP(1), seed=1)
        SearchedNetwork().plan(ASIA.domain, research.unit, PureDP(1)).run(research, Transcript(path))
        lines.append([json.loads(line) for line in path.read_text().splitlines()[1:]])
    for one, two in zip(*lines, strict=True):
        assert one["answer"] == two["answer"] and one != two


@pytest.mark.parametrize("over", [False, True])
def test_as_many_answers_are_not_the_same_answers(tmp_path, over, monkeypatch):
    """The plug is pulled before the one that came second can take its answer back."""
    ledger = Ledger.in_memory(PureDP(1))
    _, copy, gateway = overtaken(tmp_path, ledger)
    with monkeypatch.context() as patch, pytest.raises(LedgerError):
        patch.setattr(Transcript, "_take_back", lambda self: None, raising=False)
        run(SearchedNetwork(), PureDP(1), ledger, copy, gateway)
    if over:
        (charge,) = [e.number for e in ledger.entries if e.kind == "charge"]
        ledger.settle(charge, PureDP(1))
    assert last_answer(copy) != last_answer(tmp_path / "answers")  # even where both drew the same
    late = Counting()
    # A search may end after its fifth answer; then the run is told to be over, which comes first.
    with pytest.raises(LedgerError, match="holds 5 others|is over" if over else "holds 5 others"):
        run(SearchedNetwork(), PureDP(1), ledger, copy, late)
    assert late.draws == 0
