"""How the user calls us, for commands that are shown to be typed next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

LAUNCHER = "DISCREET_CALLED_AS"
"""Set by the script of a checkout to how it was called itself."""


def program() -> str:
    """``discreet`` where that is on the path; otherwise what was typed: ``./discreet``, ``python -m discreet``."""
    if (script := os.environ.get(LAUNCHER, "")) and os.sep in script:
        return shlex.quote(script)
    here = Path(sys.argv[0])
    if here.parts[-2:] == ("discreet", "__main__.py"):
        return f"{shlex.quote(sys.orig_argv[0])} -m discreet"
    if here.stem != "discreet":  # called from Python
        return "discreet"
    found = shutil.which("discreet")
    return "discreet" if found is not None and here.exists() and here.samefile(found) else shlex.quote(sys.argv[0])
