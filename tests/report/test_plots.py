"""Plots: drawn from what they claim to show."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import pytest

from discreet import networks
from discreet.errors import DiscreetError
from discreet.report.plots import plot_budget, plot_marginals, plot_true_against_learned

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_budget(release, tmp_path):
    for source in (release["model"], release["measurements"]):
        ax = plot_budget(source)
        assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(100)
    assert len(ax.patches) == len(release["measurements"])
    ax.figure.savefig(tmp_path / "budget.png")
    with pytest.raises(DiscreetError, match="release"):
        plot_budget(networks.load("asia"))


def test_marginals(release):
    model = release["model"]
    ax = plot_marginals(model, intervals=release["intervals"], truth=networks.load("asia"))
    learned = next(line for line in ax.lines if line.get_label() == "learned")
    assert len(learned.get_xdata()) == sum(model.domain.shape)
    assert learned.get_xdata()[0] == pytest.approx(model.marginal("asia").probabilities[0])
    assert ax.get_legend().get_texts()[0].get_text() == "90% noise interval"
    with pytest.raises(DiscreetError, match="smoke"):
        plot_marginals(model, ["smokes"])
    with pytest.raises(DiscreetError, match="Axes"):
        plot_marginals(model, ax="marginals.png")


def test_true_against_learned(release):
    truth = networks.load("asia")
    ax = plot_true_against_learned(truth, release["model"])
    assert len(ax.lines[1].get_xdata()) == sum(truth.marginal(e).probabilities.size for e in truth.edges)
    with pytest.raises(DiscreetError, match="same columns"):
        plot_true_against_learned(truth, networks.load("alarm"))
