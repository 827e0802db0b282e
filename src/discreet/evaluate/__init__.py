"""How good a release is, for the curator's eyes: rows are looked at without protection, and nothing is released."""

from .evaluation import WARNING, Compared, Evaluation, evaluate

__all__ = ["WARNING", "Compared", "Evaluation", "evaluate"]
