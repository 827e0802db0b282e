"""Models through the files of other programs: the same distribution comes back."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet import networks
from discreet.domain import Attribute, Domain
from discreet.errors import FileFormatError, InputError
from discreet.files import field_from_data, load_bif, load_model, load_uai, network_from_data, open_model
from discreet.io.bif import read_bif
from discreet.io.export import factors_of, save_bif, save_uai, write_model
from discreet.io.network_data import FactorData
from discreet.models import BayesianNetwork, IsingModel, MarkovRandomField

ROOT = Path(__file__).resolve().parents[2]


def all_probabilities(model):
    """P of every record, by brute force, from the model's own potentials."""
    shape = model.domain.shape
    logs = np.zeros(shape)
    for factor in model.potentials.values():
        names = factor.domain.names
        for codes in itertools.product(*map(range, shape)):
            logs[codes] += factor.values[tuple(codes[model.domain.index(n)] for n in names)]
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


@pytest.mark.parametrize("name", networks.names())
def test_networks_through_bif_and_uai(tmp_path, name):
    network = networks.load(name)
    for ending in ("bif", "uai", "zip"):
        path = tmp_path / f"{name}.{ending}"
        write_model(network, path)
        back = open_model(path)
        assert isinstance(back, BayesianNetwork)
        assert back.domain == network.domain and dict(back.parents) == dict(network.parents)
        assert all(np.array_equal(back.tables[v], network.tables[v]) for v in network.domain)


def test_a_field_through_uai(tmp_path):
    rng = np.random.default_rng(3)
    domain = Domain.of({"odd name": ["x y", "z"], "b": ["0", "1", "2"], "c": ["u", "v"]})
    field = MarkovRandomField(
        domain,
        {("odd name", "b"): 900 + rng.normal(size=(2, 3)), ("b", "c"): np.array([[0, -np.inf], [1, 2], [-3, 0]])},
    )
    save_uai(field, tmp_path / "m.uai")
    back = load_uai(tmp_path / "m.uai")
    assert isinstance(back, MarkovRandomField) and back.domain == domain
    np.testing.assert_allclose(all_probabilities(back), all_probabilities(field), rtol=1e-12)
    assert all_probabilities(back).min() == 0


def test_any_model_can_be_written_as_uai(tmp_path):
    ising = IsingModel(np.array([[0, 0.5], [0.5, 0]]), np.array([0.3, -0.2]))
    write_model(ising, tmp_path / "m.uai")
    np.testing.assert_allclose(all_probabilities(open_model(tmp_path / "m.uai")), all_probabilities(ising), rtol=1e-12)


def test_tables_over_one_scope_are_joined_whatever_their_order():
    first, second = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([[1.0, 2], [3, 4], [5, 0]])
    data = FactorData(
        False, {"a": ("0", "1"), "b": ("0", "1", "2")}, (("a", "b"), ("b", "a"), ()), (first, second, np.array(3.0))
    )
    joint = first * second.T
    np.testing.assert_allclose(all_probabilities(field_from_data(data)), joint / joint.sum(), rtol=1e-12)
    with pytest.raises(FileFormatError, match="zero everywhere"):
        field_from_data(FactorData(False, data.levels, (("a",),), (np.zeros(2),)))


def test_labels_are_what_survives(tmp_path):
    domain = Domain((Attribute.numeric("age", [0, 18, 99], missing="?"), Attribute.categorical("ill", [True, False])))
    tables = {"age": np.array([0.5, 0.25, 0.25]), "ill": np.array([[0.1, 0.9], [0.2, 0.8], [0.5, 0.5]])}
    network = BayesianNetwork(domain, {"ill": ("age",)}, tables)
    save_bif(network, tmp_path / "m.bif")
    assert '{ "[0, 18)", "[18, 99]", ? }' in (tmp_path / "m.bif").read_text()
    back = load_bif(tmp_path / "m.bif")
    assert [a.labels for a in back.domain.attributes] == [a.labels for a in domain.attributes]
    assert factors_of(back).scopes == (("age",), ("age", "ill"))


def test_bif_holds_networks_only(tmp_path):
    with pytest.raises(InputError, match="IsingModel"):
        save_bif(IsingModel(np.zeros((2, 2))), tmp_path / "m.bif")
    assert list(tmp_path.iterdir()) == []


def test_a_network_that_is_none(tmp_path):
    (tmp_path / "m.uai").write_text("BAYES 2\n2 2\n2\n1 0\n1 0\n2 0.5 0.5\n2 0.5 0.5")
    with pytest.raises(FileFormatError, match=r"m\.uai: it does not have exactly one"):
        load_uai(tmp_path / "m.uai")


def test_the_bundled_files_are_made_from_the_original_ones(networks_directory, original_networks, tmp_path):
    """To the last bit. Where only the bundled ones are at hand, files made of these give the same models again."""
    tool = ROOT / "tools" / "build_networks.py"
    subprocess.run([sys.executable, tool, networks_directory, tmp_path], check=True, capture_output=True)
    for name in networks.names():
        built = (tmp_path / f"{name}.zip").read_bytes()
        if original_networks is not None:
            assert built == (ROOT / "src" / "discreet" / "data" / f"{name}.zip").read_bytes()
        assert load_model(built).with_card(None) == networks.load(name).with_card(None)
        original = network_from_data(read_bif(networks_directory / f"{name}.bif"), networks.load(name).card)
        assert original == networks.load(name)
