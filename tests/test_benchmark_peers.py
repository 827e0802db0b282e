"""The comparison with peers: its yardstick is right, its budgets are equal, and a peer that fails is a row."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.harness import checked_rows
from discreet.domain import Domain
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP


def test_the_yardstick():
    domain = Domain.of({"a": 2, "b": 3, "c": 2})
    rng = np.random.default_rng(0)
    true, made = (np.stack([rng.integers(0, k, n) for k in domain.shape], axis=1) for n in (40, 60))
    expected = []
    for i, j in itertools.combinations(range(3), 2):
        cells = itertools.product(range(domain.shape[i]), range(domain.shape[j]))
        share = [[np.mean((x[:, i] == u) & (x[:, j] == v)) for x in (true, made)] for u, v in cells]
        expected.append(sum(abs(p - q) for p, q in share) / 2)
    assert peers.mean_variation(domain, true, made) == pytest.approx(np.mean(expected))
    assert peers.mean_variation(domain, true, true) == 0


def test_peers_in_zcdp_get_what_the_budget_is_worth():
    rho = peers.worth_of(ApproxDP(1, "1e-6"))
    assert ZCDP(rho).to_approx("1e-6").epsilon <= 1 < ZCDP(rho * 1.01).to_approx("1e-6").epsilon


def test_ours_is_measured_on_made_records():
    found = peers._ours("sachs", PureDP(1), peers.DEFAULT, 0, None)
    assert 0.003 < found["error"] < 0.2 and found["fit_seconds"] > 0


def test_a_peer_that_fails_is_a_row_that_says_so(tmp_path, monkeypatch):
    """Our own interpreter in the place of the peer's: it runs the script, and has no such package."""
    monkeypatch.setenv("DISCREET_PEERS", str(tmp_path))
    python = tmp_path / "dpmm" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    failed = peers._theirs("sachs", ApproxDP(1, "1e-6"), "dpmm MST", 0, None, tmp_path)
    assert "No module named 'dpmm'" in failed["failed"]
    ours = [{"error": 0.1, "fit_seconds": 1.0, "make_seconds": 1.0}]
    (row,) = checked_rows([peers._row("sachs", "dpmm MST", ours, [failed])])
    assert row["note"].startswith("skipped dpmm MST") and row["reference"] is None


def test_every_peer_has_a_package_and_a_runner():
    text = Path(peers.__file__).with_name("_peers_work.py").read_text()
    for peer in {*peers.PURE, *peers.APPROXIMATE}:
        package = peer.split()[0]
        assert package in peers.PACKAGES and f'"{package}": (' in text
