"""On PYTHONPATH, this makes what the variable ABSENT names look as if it were not installed."""

import os
import sys
from importlib.machinery import PathFinder

ABSENT = frozenset(os.environ.get("ABSENT", "").split())


class Present(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else super().find_spec(name, path, target)


if ABSENT:
    sys.meta_path[:] = [Present if finder is PathFinder else finder for finder in sys.meta_path]
