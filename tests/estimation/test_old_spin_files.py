"""Releases written by the first version: they open, and the sums in them give the same model as they did then.

The files hold noisy sums of an Ising, a binary and a pairwise learner of that version, and the model that it made of
them: by every strategy, under public bounds, by enumeration, on the junction tree and by Gibbs chains.
"""

from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InputError
from discreet.learn.spins.field import SpinField
from discreet.measurement import Measurements
from discreet.release import Release

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
STRATEGIES = {
    "ising_all_pairs": "all",
    "ising_chains": "all",
    "ising_dense": "all",
    "ising_explained": "one shot",
    "ising_min_weight": "all",
    "ising_one_shot": "one shot",
    "ising_selected_pairs": "selected",
    "ising_thinned": "all",
    "ising_tree": "all",
    "binary_order_3": "all",
}


@pytest.mark.parametrize("name", [*STRATEGIES, "pairwise"])
def test_a_release_of_the_first_version_makes_the_same_model_again(name):
    release = Release.load(FIXTURES / f"{name}.zip")
    assert release.refit_agrees()
    again = release.refit()
    assert again.card.get("strategy") == STRATEGIES.get(name)
    assert again.card["budget"] == release.card["budget"] and again.card["spent"] == release.card["spent"]
    assert "parities" not in again.card


@pytest.mark.parametrize("name", ["ising_all_pairs", "ising_selected_pairs", "binary_order_3", "pairwise"])
def test_it_has_noise_intervals(name):
    release = Release.load(FIXTURES / f"{name}.zip")
    column = release.model.domain.names[1]
    found = release.intervals(draws=3).marginal(column)
    assert (found.upper > found.lower).all()


@pytest.mark.parametrize("name", ["ising_all_pairs", "binary_order_3"])
def test_it_can_be_written_again_and_still_agrees(name, tmp_path):
    release = Release.load(FIXTURES / f"{name}.zip")
    release.save(tmp_path / "again.zip")
    assert Release.load(tmp_path / "again.zip").refit_agrees()


def test_labels_that_name_columns_beyond_the_last_are_refused():
    old = Release.load(FIXTURES / "ising_all_pairs.zip").measurements
    label = old[-1].label
    assert label.startswith("means and sums of pairs 0-1")
    object.__setattr__(old[-1], "label", label.replace("0-1", "0-99"))
    with pytest.raises(InputError, match="not sums of the spins"):
        SpinField().estimate(old)


def test_sums_of_another_length_than_their_label_says_are_refused():
    old = Release.load(FIXTURES / "binary_order_3.zip").measurements
    facts = {**old.release["parities"], "again": old.release["parities"]["again"][:-1]}
    with pytest.raises(InputError, match="and does not"):
        SpinField(3).estimate(Measurements(old, {**old.release, "parities": facts}))


def test_the_sums_themselves_are_as_they_were():
    """Nothing is lost on the way: the noisy sums, their noise and their number."""
    old = Release.load(FIXTURES / "ising_tree.zip").measurements
    assert [m.counts.size for m in old][:2] == [1, 24 * 25 // 2] and np.all(old[1].noise.scale > 0)
