"""Four well-known Bayesian networks to try things on: ``discreet.networks.load("alarm")``.

They come from the Bayesian-network repository of bnlearn (CC BY-SA 3.0); the card of each says who made it. They are
public models, learned from no private records of ours, and no release.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from .errors import InputError, did_you_mean
from .files import load_model
from .models import BayesianNetwork

_NAMES = ("asia", "sachs", "child", "alarm")


def names() -> tuple[str, ...]:
    """The networks that come with discreet, from small to large."""
    return _NAMES


@cache
def load(name: str) -> BayesianNetwork:
    """One of the networks, by name; where it comes from is in its ``card``."""
    if name not in _NAMES:
        raise InputError(f"no network {name!r} comes with discreet{did_you_mean(str(name), _NAMES)}")
    network = load_model(files(__package__).joinpath("data", f"{name}.zip").read_bytes())
    assert isinstance(network, BayesianNetwork)
    return network
