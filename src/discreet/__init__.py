"""discreet: discrete graphical models from sensitive records, under differential privacy.

    from discreet import Curator, Domain, PureDP, Release, encode, resolve

    domain = Domain.of({"smoke": ["yes", "no"], "lung": ["yes", "no"]})   # what is publicly known
    spec = resolve(domain, graph="smoke -> lung")                         # what to learn
    with Curator(encode(rows, domain), budget=PureDP(1)) as curator:      # who keeps the rows
        learned = spec.learn(curator)
    Release.of(learned).save("model.zip")                                 # what can be published
    print(learned.model.ask("P(lung | smoke=yes)"))

Names are loaded when they are first used, so that ``import discreet`` costs next to nothing. These are the ones to
begin with; models, learners and whatever else there is stand in their rooms (docs/architecture.md).
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
    from .measurement import Measurements as Measurements
    from .privacy.budget import ZCDP as ZCDP
    from .privacy.budget import ApproxDP as ApproxDP
    from .privacy.budget import PureDP as PureDP
    from .privacy.curator import Curator as Curator
    from .privacy.ledger import Ledger as Ledger
    from .privacy.query import Marginals as Marginals
    from .privacy.unit import PrivacyUnit as PrivacyUnit
    from .release import Release as Release
    from .release.uncertainty import noise_intervals as noise_intervals
    from .schema import load_schema as load_schema
    from .schema import save_schema as save_schema
    from .spec import Spec as Spec
    from .spec import resolve as resolve
    from .tables.encode import encode as encode
    from .tables.open import open_table as open_table

_HOMES = {
    "domain": ("Attribute", "Domain"),
    "errors": ("DiscreetError",),
    "estimators": ("PrivateGraphicalModel", "PrivateLogisticRegression"),
    "files": ("open_model",),
    "measurement": ("Measurements",),
    "networks": ("networks",),
    "privacy.budget": ("ZCDP", "ApproxDP", "PureDP"),
    "privacy.curator": ("Curator",),
    "privacy.ledger": ("Ledger",),
    "privacy.query": ("Marginals",),
    "privacy.unit": ("PrivacyUnit",),
    "release": ("Release",),
    "schema": ("load_schema", "save_schema"),
    "spec": ("Spec", "resolve"),
    "tables.encode": ("encode",),
    "tables.open": ("open_table",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    module = import_module(f".{_HOME_OF[name]}", __name__)
    if name == "Release":  # whose pages are made in a room further out
        import_module(".report.page", __name__)
    value: object = module if name == _HOME_OF[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
