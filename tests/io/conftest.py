"""Where the four public networks may be found in their original form."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def networks_directory():
    root = Path(__file__).resolve().parents[3]
    directory = Path(os.environ.get("DISCREET_NETWORKS", root / "shared" / "data" / "networks"))
    if not (directory / "alarm.bif").exists():
        pytest.skip(f"no networks in {directory}; set DISCREET_NETWORKS")
    return directory
