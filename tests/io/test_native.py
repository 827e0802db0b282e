"""Models in files: every family comes back equal, and a broken file is one kind of error."""

import inspect
import json
import random
import resource
import subprocess
import sys
import time

import numpy as np
import pytest
from mutations import ACCIDENTS, MALICE, header_with, sealed, taken_apart

from discreet import networks
from discreet.domain import Attribute, Domain
from discreet.errors import FileFormatError, InputError
from discreet.files import FAMILIES, load_model
from discreet.io.archive import archive_bytes
from discreet.io.native import save_model
from discreet.models import BayesianNetwork, BinaryMRF, IsingModel, MarkovRandomField, Model, PairwiseModel

DOMAIN = Domain(
    (
        Attribute.categorical("größe", ["klein", "groß"], missing="?", peeked=frozenset({"levels"})),
        Attribute.numeric("age", [0, 18, 65.5]),
        Attribute.categorical("odd name", [True, False]),
    )
)
BINARY = Domain.of({"a": ["x", "y"], "b": [True, False], "c": 2})
CARD = {"epsilon": 1.5, "unit": {"protects": "a person"}, "notes": ["é", None, True]}


def all_families():
    rng = np.random.default_rng(0)
    A = np.array([[0, 0.5, 0], [0.5, 0, -0.25], [0, -0.25, 0]])
    W = {("größe", "age"): rng.normal(size=(3, 2)), ("age", "odd name"): rng.normal(size=(2, 2))}
    field = {("größe", "age"): rng.normal(size=(3, 2)), ("age", "odd name"): np.array([[0.0, -np.inf], [1.0, 2.0]])}
    tables = {
        "größe": np.array([0.2, 0.3, 0.5]),
        "age": rng.dirichlet([1, 1], size=3),
        "odd name": np.array([[1.0, 0.0], [0.5, 0.5]]),
    }
    return {
        "ising": IsingModel(A, np.array([0.1, 0.2, -0.3]), BINARY, CARD),
        "pairwise": PairwiseModel(W, {"age": np.array([0.5, -0.5])}, DOMAIN, CARD),
        "binary": BinaryMRF({("a", "b", "c"): 0.7, ("a",): -0.2}, BINARY, CARD),
        "markov": MarkovRandomField(DOMAIN, field, CARD),
        "bayesian": BayesianNetwork(DOMAIN, {"age": ("größe",), "odd name": ("age",)}, tables, CARD),
    }


MODELS = all_families()
GOOD = [archive_bytes(*model.to_archive()) for model in MODELS.values()]


@pytest.mark.parametrize("kind", MODELS)
def test_every_family_comes_back_equal(tmp_path, kind):
    model = MODELS[kind]
    save_model(model, tmp_path / "m.zip")
    back = load_model(tmp_path / "m.zip")
    assert type(back) is type(model) and back == model
    assert back.domain == model.domain and back.domain.fingerprint == model.domain.fingerprint
    assert dict(back.card) == CARD
    model.save(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "m.zip").read_bytes()
    assert load_model((tmp_path / "m.zip").read_bytes()) == model
    name = model.domain.names[0]
    np.testing.assert_array_equal(back.marginal(name).probabilities, model.marginal(name).probabilities)


def test_a_model_without_card_has_none(tmp_path):
    save_model(IsingModel(np.zeros((2, 2))), tmp_path / "m.zip")
    assert load_model(tmp_path / "m.zip").card is None


def test_load_model_needs_no_other_import(tmp_path):
    save_model(MODELS["ising"], tmp_path / "m.zip")
    code = f"from discreet.files import load_model; print(load_model({str(tmp_path / 'm.zip')!r}).kind)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "ising\n"


def test_every_family_of_models_can_be_read():
    def below(family):
        return {family}.union(*map(below, family.__subclasses__()))

    ours = {f for f in below(Model) if f.__module__.startswith("discreet.") and not inspect.isabstract(f)}
    assert set(FAMILIES.values()) == ours and {kind: f.kind for kind, f in FAMILIES.items()} == {k: k for k in FAMILIES}


def test_only_models_are_saved(tmp_path):
    class Odd:
        def to_archive(self):
            return {"kind": "odd", "extra": 1}, {}

    with pytest.raises(InputError, match="extra"):
        save_model(Odd(), tmp_path / "m.zip")
    assert list(tmp_path.iterdir()) == []


MANY_LEVELS = [f"level {i}" for i in range(100_000)]


def changed(family, **changes):
    """The file of a model with some header entries replaced (None removes), sealed again."""
    header, arrays = taken_apart(archive_bytes(*MODELS[family].to_archive()))
    document = {**json.loads(header), **changes}
    return sealed(json.dumps({k: v for k, v in document.items() if v != "remove"}).encode(), arrays)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (sealed(header_with({}, kind="martian")), "'martian', which is no kind of model"),
        (sealed(header_with({}, kind="isig")), "did you mean 'ising'"),
        (sealed(header_with({}, kind=["ising"])), "cannot read"),
        (sealed(header_with({})), "no kind of model"),
        (changed("ising", extra=1), "unknown key 'extra'"),
        (changed("ising", domain="remove"), "cannot read"),
        (changed("ising", domain=None), "cannot read"),
        (changed("ising", domain=[1]), "domain = "),
        (changed("ising", card="hello"), "card = 'hello'"),
        (changed("ising", domain={"version": 1, "columns": {"a": {"levels": ["x", "x"]}}}), "declared twice"),
        (changed("ising", domain={"version": 1, "columns": {"a": {"levels": MANY_LEVELS}}}), "domain 1 columns"),
        (changed("markov", model={"cliques": [["größe", "age"], ["größe", "age"]]}), "twice"),
        (changed("markov", model={"cliques": [["größe", "nowhere"], ["age", "odd name"]]}), "nowhere"),
        (changed("markov", model={"cliques": 3}), "list of lists"),
        (changed("bayesian", model={"parents": [["age"], ["größe"], []]}), "cannot read"),
        (changed("bayesian", model={"parents": []}), "cannot read"),
        (changed("bayesian", model={}), "cannot read"),
        (changed("bayesian", kind="ising"), "cannot read"),
    ],
)  # fmt: skip
def test_sound_files_that_are_no_models(data, message):
    begin = time.process_time()
    with pytest.raises(FileFormatError, match=message) as caught:
        load_model(data)
    assert len(str(caught.value)) < 1000
    assert time.process_time() - begin < 1


def test_negative_probabilities_and_minus_infinity_where_they_cannot_be():
    for kind, array, value in [("bayesian", "table0", -0.5), ("ising", "A", -np.inf), ("pairwise", None, -np.inf)]:
        header, arrays = taken_apart(archive_bytes(*MODELS[kind].to_archive()))
        name = array or sorted(arrays)[0]
        arrays[name] = np.full(len(arrays[name]) // 8, value).tobytes()
        with pytest.raises(FileFormatError):
            load_model(sealed(header, arrays))


def check_sound(model):
    """What a file that was changed and sealed again may still hold: a proper model."""
    assert isinstance(model, Model)
    p = np.asarray(model.marginal(model.domain.names[0]).probabilities)
    assert np.isfinite(p).all() and abs(p.sum() - 1) < 1e-9


def fuzz(good, count, seed):
    rng = random.Random(seed)
    sound = 0
    for number in range(count):
        mutate = rng.choice(ACCIDENTS + 2 * MALICE)
        data = mutate(rng.choice(good), rng)
        if data in good:
            continue
        begin = time.process_time()
        try:
            model = load_model(data)
        except FileFormatError as error:
            assert len(str(error)) < 1000, mutate
        else:
            assert mutate in MALICE, f"file {number}: {mutate.__name__} went unnoticed"
            sound += 1
            if sound % 10 == 0:
                check_sound(model)
        assert time.process_time() - begin < 1, f"file {number}: {mutate.__name__} took too long"
    return sound


def test_fuzz_some_hundred_broken_models():
    assert 0 < fuzz(GOOD, 600, seed=6) < 300


@pytest.mark.slow
def test_fuzz_ten_thousand_broken_models():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bundled = [archive_bytes(*networks.load(name).to_archive()) for name in networks.names()]
    assert 0 < fuzz(GOOD + bundled, 10_000, seed=7) < 5000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 200e6
