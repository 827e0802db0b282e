import sys
from pathlib import Path

# The desk with private rows on it is shared by the tests of the commands and of their misuse.
sys.path.insert(0, str(Path(__file__).parents[1]))

from command_desk import desk, discreet

__all__ = ["desk", "discreet"]
