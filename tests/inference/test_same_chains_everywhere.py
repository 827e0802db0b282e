"""Chains are the same however a processor and its libraries round: a release can be checked anywhere."""

import os
import subprocess
import sys

import pytest

import discreet

_PROGRAM = """
import numpy as np
from discreet.inference.parity_chains import ParityChains
from discreet.inference.spins import SpinChains
rng = np.random.default_rng(5)
A = np.triu(rng.normal(0, .3, (30, 30)), 1)
chains = SpinChains.start(np.zeros(30), 700, 1)
for _ in range(12):
    single, double = chains.moments(A + A.T, rng.normal(0, .3, 30), 4)
    A *= 1 + double / 10
parity = ParityChains.start(np.zeros(9), 700, 1)
monomials = [(i,) for i in range(9)] + [(i, (i + 1) % 9, (i + 4) % 9) for i in range(9)]
parity.sweep(monomials, rng.normal(0, .5, 18), 20)
print(single.tolist(), double.tolist(), parity.states.sum(axis=0).tolist())
"""
_OTHERS = {
    "another BLAS kernel": {"OPENBLAS_CORETYPE": "Prescott"},
    "no wide registers": {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512_SKX X86_V4"},
    "two threads": {"OPENBLAS_NUM_THREADS": "2"},
}


def _chains(environment):
    plain = {"OPENBLAS_NUM_THREADS": "1", **environment}
    run = [sys.executable, "-W", "ignore", "-c", _PROGRAM]
    return subprocess.run(run, env=os.environ | plain, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def here():
    return _chains({})


@pytest.mark.parametrize("other", _OTHERS.values(), ids=_OTHERS.keys())
def test_chains_do_not_depend_on_the_machine(here, other):
    assert _chains(other) == here and len(here) > 1000


_REFITS = """
import sys
from discreet import Release
for path in sys.argv[1:]:
    print(Release.load(path).refit_distance())
"""


def test_a_release_can_be_checked_on_another_machine(tmp_path):
    """Searches for the best fit end a little elsewhere there: what they find must be the same for all that matters."""
    truth = discreet.networks.load("sachs")
    table = discreet.encode(truth.sample(3000, random_state=3).to_frame(), truth.domain)
    files = []
    for family in ("field", "network"):
        with discreet.Curator(table, discreet.PrivacyUnit(), discreet.ApproxDP(1, 1e-6)) as curator:
            files.append(tmp_path / f"{family}.zip")
            discreet.Release.of(discreet.resolve(truth.domain, family=family).learn(curator)).save(files[-1])
    elsewhere = os.environ | _OTHERS["no wide registers"] | _OTHERS["another BLAS kernel"]
    run = [sys.executable, "-W", "ignore", "-c", _REFITS, *map(str, files)]
    found = subprocess.run(run, env=elsewhere, capture_output=True, text=True, check=True).stdout
    assert all(float(line) < 1e-3 for line in found.split()) and len(found.split()) == 2
