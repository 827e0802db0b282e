"""Models: values with one protocol over directed and undirected families.

The first level of a binary column (code 0) stands for −1 in the Ising and binary families, the second for +1.
"""

from . import generators
from .answer import Answer, Assignment, Estimate
from .base import Model
from .bayesian import BayesianNetwork
from .binary import BinaryMRF
from .convert import to_binary, to_ising, to_markov, to_network, to_pairwise
from .grouped import GroupedField
from .ising import IsingModel
from .markov import MarkovRandomField
from .pairwise import PairwiseModel
from .polynomial import Polynomial
from .records import Records

__all__ = [
    "Answer",
    "Assignment",
    "BayesianNetwork",
    "BinaryMRF",
    "Estimate",
    "GroupedField",
    "IsingModel",
    "MarkovRandomField",
    "Model",
    "PairwiseModel",
    "Polynomial",
    "Records",
    "generators",
    "to_binary",
    "to_ising",
    "to_markov",
    "to_network",
    "to_pairwise",
]
