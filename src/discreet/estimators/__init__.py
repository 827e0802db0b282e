"""The scikit-learn skin: constructor = choices, ``fit`` on rows, fitted attributes with a trailing underscore."""

from .graphical import PrivateGraphicalModel
from .logistic import PrivateLogisticRegression

__all__ = ["PrivateGraphicalModel", "PrivateLogisticRegression"]
