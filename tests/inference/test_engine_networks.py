"""Agreement with pyAgrum, a second opinion, on the four bundled networks: with and without evidence, to 1e-8."""

import numpy as np
import pytest

from discreet import networks
from discreet.errors import EvidenceError
from discreet.inference.exact import get_engine
from discreet.inference.maximum import map_assignment, marginal_map

gum = pytest.importorskip("pyagrum")


def as_pyagrum(network):
    """The same network, level names replaced by numbers, which every parser and API takes."""
    bn = gum.BayesNet("network")
    for name in network.domain:
        bn.add(gum.LabelizedVariable(name, name, network.domain[name].size))
    for child, parents in network.parents.items():
        for parent in parents:
            bn.addArc(parent, child)
    for child, parents in network.parents.items():
        table = np.asarray(network.tables[child])
        for cell in np.ndindex(*table.shape[:-1]):
            bn.cpt(child)[dict(zip(parents, map(int, cell), strict=True))] = table[cell].tolist()
    return bn


def random_evidence(network, rng, share):
    """Codes of a record drawn from the network, so that they are possible."""
    codes = get_engine(network.domain, network.cliques).calibrate(network.potentials).sample(1, rng)[0]
    return {n: int(c) for n, c in zip(network.domain.names, codes, strict=True) if rng.random() < share}


@pytest.fixture(scope="module", params=["asia", "sachs", "child", "alarm"])
def pair(request):
    network = networks.load(request.param)
    return network, as_pyagrum(network)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_marginals_and_evidence_probability(pair, share):
    network, bn = pair
    rng = np.random.default_rng(int(100 * share))
    for _ in range(3):
        evidence = random_evidence(network, rng, share)
        beliefs = get_engine(network.domain, network.cliques).calibrate(network.potentials, evidence)
        peer = gum.LazyPropagation(bn)
        peer.setEvidence(evidence)
        peer.makeInference()
        for name in network.domain:
            np.testing.assert_allclose(beliefs.probabilities((name,)), peer.posterior(name).toarray(), atol=1e-8)
        if evidence:
            assert beliefs.log_partition == pytest.approx(np.log(peer.evidenceProbability()), abs=1e-8)
        else:
            assert beliefs.log_partition == pytest.approx(0.0, abs=1e-10)


def test_joint_marginals_within_and_across_cliques(pair):
    network, bn = pair
    rng = np.random.default_rng(0)
    evidence = random_evidence(network, rng, 0.1)
    beliefs = get_engine(network.domain, network.cliques).calibrate(network.potentials, evidence)
    free = [n for n in network.domain if n not in evidence]
    for _ in range(5):
        names = [str(n) for n in rng.choice(free, size=3, replace=False)]
        peer = gum.LazyPropagation(bn)
        peer.setEvidence(evidence)
        peer.addJointTarget(set(names))
        peer.makeInference()
        expected = peer.jointPosterior(set(names))
        order = list(expected.names)[::-1]  # pyAgrum's arrays run over its variables backwards
        np.testing.assert_allclose(beliefs.probabilities(order), expected.toarray(), atol=1e-8)


def test_evidence_sets_in_one_batch(pair):
    network, _ = pair
    engine = get_engine(network.domain, network.cliques)
    rng = np.random.default_rng(1)
    sets = [random_evidence(network, rng, 0.2) for _ in range(6)]
    codes = {n: np.array([s.get(n, -1) for s in sets]) for n in network.domain}
    together = engine.calibrate(network.potentials, codes)
    for i, evidence in enumerate(sets):
        alone = engine.calibrate(network.potentials, evidence)
        assert together.log_partition[i] == pytest.approx(alone.log_partition, abs=1e-11)
        for name in network.domain:
            np.testing.assert_allclose(together.probabilities((name,))[i], alone.probabilities((name,)), atol=1e-12)


def test_most_probable_records(pair):
    """pyAgrum offers no joint MAP; the maximum is checked by its weight, by 20,000 samples and by all flips."""
    network, _ = pair
    rng = np.random.default_rng(2)
    evidence = random_evidence(network, rng, 0.35)
    best = map_assignment(network.domain, network.potentials, evidence)

    def weight(rows):
        total = np.zeros(len(rows))
        for clique, factor in network.potentials.items():
            total += factor.values[tuple(rows[:, network.domain.index(n)] for n in clique)]
        return total

    record = np.array([[best.codes[n] for n in network.domain]])
    assert weight(record)[0] == pytest.approx(best.log_weight, abs=1e-10)
    beliefs = get_engine(network.domain, network.cliques).calibrate(network.potentials, evidence)
    assert weight(beliefs.sample(20_000, rng)).max() <= best.log_weight + 1e-10
    for i, name in enumerate(network.domain):
        if name not in evidence:
            flips = np.repeat(record, network.domain[name].size, axis=0)
            flips[:, i] = np.arange(network.domain[name].size)
            assert weight(flips).max() <= best.log_weight + 1e-10


def test_marginal_maximum_against_joint_posteriors(pair):
    network, _ = pair
    rng = np.random.default_rng(3)
    evidence = random_evidence(network, rng, 0.2)
    free = [n for n in network.domain if n not in evidence]
    wanted = tuple(str(n) for n in rng.choice(free, size=min(4, len(free)), replace=False))
    beliefs = get_engine(network.domain, network.cliques).calibrate(network.potentials, evidence)
    joint = beliefs.probabilities(wanted)
    found = marginal_map(network.domain, network.potentials, wanted, evidence)
    assert joint[tuple(found.codes[n] for n in wanted)] == pytest.approx(joint.max(), rel=1e-10)
    assert found.log_weight == pytest.approx(np.log(joint.max()) + beliefs.log_partition, abs=1e-10)


def test_impossible_evidence_in_asia():
    network = networks.load("asia")
    code = {n: network.domain[n].code for n in network.domain}
    evidence = {"tub": code["tub"]("yes"), "either": code["either"]("no")}
    with pytest.raises(EvidenceError, match="tub=yes, either=no has probability 0"):
        get_engine(network.domain, network.cliques).calibrate(network.potentials, evidence)


def test_sampled_marginals_are_those_of_the_model():
    """Every family of ALARM, 300,000 records: no count further from expectation than chance allows."""
    network = networks.load("alarm")
    beliefs = get_engine(network.domain, network.cliques).calibrate(network.potentials)
    n = 300_000
    codes = beliefs.sample(n, 0)
    worst = 0.0
    for clique in network.potentials:
        p = beliefs.probabilities(clique).ravel()
        shape = network.domain.project(clique).shape
        at = tuple(codes[:, network.domain.index(name)].astype(int) for name in clique)
        counts = np.bincount(np.ravel_multi_index(at, shape), minlength=p.size)
        worst = max(worst, float((np.abs(counts - n * p) / np.sqrt(n * p * (1 - p) + 1)).max()))
    assert worst < 5.5
