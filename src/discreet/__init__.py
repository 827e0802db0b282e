"""discreet: discrete graphical models from sensitive records, under differential privacy.

    from discreet import ApproxDP, Curator, Domain, Marginals, encode

Names are loaded when they are first used, so that ``import discreet`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from . import networks as networks
    from .domain import Attribute as Attribute
    from .domain import Domain as Domain
    from .errors import DiscreetError as DiscreetError
    from .estimators import PrivateGraphicalModel as PrivateGraphicalModel
    from .estimators import PrivateLogisticRegression as PrivateLogisticRegression
    from .files import open_model as open_model
    from .learn.fields.noise_aware import NoiseAwareField as NoiseAwareField
    from .learn.fields.pairwise import PairwiseLearner as PairwiseLearner
    from .learn.networks.optimal import OptimalNetwork as OptimalNetwork
    from .learn.networks.search import SearchedNetwork as SearchedNetwork
    from .learn.spins.binary_learner import BinaryMRFLearner as BinaryMRFLearner
    from .learn.spins.ising_learner import IsingLearner as IsingLearner
    from .learn.structure.learner import StructureLearner as StructureLearner
    from .learn.structure.selected_edges import SelectedEdges as SelectedEdges
    from .learn.structure.stable_edges import StableEdges as StableEdges
    from .measurement import Measurement as Measurement
    from .measurement import Measurements as Measurements
    from .models.bayesian import BayesianNetwork as BayesianNetwork
    from .models.binary import BinaryMRF as BinaryMRF
    from .models.ising import IsingModel as IsingModel
    from .models.markov import MarkovRandomField as MarkovRandomField
    from .models.pairwise import PairwiseModel as PairwiseModel
    from .papers.chains import ChainLearner as ChainLearner
    from .privacy.budget import ZCDP as ZCDP
    from .privacy.budget import ApproxDP as ApproxDP
    from .privacy.budget import PureDP as PureDP
    from .privacy.curator import Curator as Curator
    from .privacy.curator import ExactCurator as ExactCurator
    from .privacy.ledger import Ledger as Ledger
    from .privacy.query import Marginals as Marginals
    from .privacy.unit import PrivacyUnit as PrivacyUnit
    from .release import Release as Release
    from .release.uncertainty import noise_intervals as noise_intervals
    from .schema import load_schema as load_schema
    from .schema import save_schema as save_schema
    from .spec import Recipe as Recipe
    from .spec import learn as learn
    from .tables.encode import encode as encode
    from .tables.open import open_table as open_table

_HOMES = {
    "domain": ("Attribute", "Domain"),
    "errors": ("DiscreetError",),
    "learn.spins.binary_learner": ("BinaryMRFLearner",),
    "learn.spins.ising_learner": ("IsingLearner",),
    "learn.networks.search": ("SearchedNetwork",),
    "papers.chains": ("ChainLearner",),
    "learn.fields.noise_aware": ("NoiseAwareField",),
    "learn.networks.optimal": ("OptimalNetwork",),
    "learn.fields.pairwise": ("PairwiseLearner",),
    "spec": ("Recipe", "learn"),
    "learn.structure.learner": ("StructureLearner",),
    "learn.structure.selected_edges": ("SelectedEdges",),
    "learn.structure.stable_edges": ("StableEdges",),
    "estimators": ("PrivateGraphicalModel", "PrivateLogisticRegression"),
    "files": ("open_model",),
    "measurement": ("Measurement", "Measurements"),
    "models.bayesian": ("BayesianNetwork",),
    "models.binary": ("BinaryMRF",),
    "models.ising": ("IsingModel",),
    "models.markov": ("MarkovRandomField",),
    "models.pairwise": ("PairwiseModel",),
    "networks": ("networks",),
    "privacy.budget": ("ZCDP", "ApproxDP", "PureDP"),
    "privacy.curator": ("Curator", "ExactCurator"),
    "privacy.ledger": ("Ledger",),
    "privacy.query": ("Marginals",),
    "privacy.unit": ("PrivacyUnit",),
    "release": ("Release",),
    "schema": ("load_schema", "save_schema"),
    "tables.encode": ("encode",),
    "tables.open": ("open_table",),
    "release.uncertainty": ("noise_intervals",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    module = import_module(f".{_HOME_OF[name]}", __name__)
    value: object = module if name == _HOME_OF[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
