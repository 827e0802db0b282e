"""``python -m discreet``: the command line, where no program of that name is on the path."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
