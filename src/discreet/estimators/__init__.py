"""The scikit-learn skin: constructor = choices, ``fit`` on rows, fitted attributes with a trailing underscore."""

from ..extras import needed

needed("sklearn", "the estimators", "discreet[sklearn]")  # before any of ours asks for it

from .graphical import PrivateGraphicalModel  # noqa: E402
from .logistic import PrivateLogisticRegression  # noqa: E402

__all__ = ["PrivateGraphicalModel", "PrivateLogisticRegression"]
