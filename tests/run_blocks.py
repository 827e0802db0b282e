"""Run the Python and shell blocks of a page from top to bottom: `python run_blocks.py page [programs]`.

``programs`` is a folder in which shells look for programs first.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)

if __name__ == "__main__":
    page, *programs = sys.argv[1:]
    os.environ["PATH"] = os.pathsep.join([*programs, os.environ["PATH"]])
    names: dict[str, object] = {"__name__": "page"}
    for language, code in BLOCK.findall(Path(page).read_text("utf-8")):
        if language == "python":
            exec(compile(code, page, "exec", dont_inherit=True), names)
        else:
            subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True)
