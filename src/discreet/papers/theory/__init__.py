"""What the papers prove, computed: bounds, hard instances, and how far to trust them.

``advise`` puts the bounds of the Markov-random-field paper together; see docs/theory.md for all items.
"""

from . import hard_instances, lower, upper
from .advice import Advice, advise
from .bound import Bound

__all__ = ["Advice", "Bound", "advise", "hard_instances", "lower", "upper"]
