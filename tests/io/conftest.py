"""The four public networks as BIF files: the original ones where there is a folder with them, else the bundled ones."""

import os
from pathlib import Path

import pytest

from discreet import networks
from discreet.io.export import save_bif


@pytest.fixture(scope="session")
def original_networks():
    """The folder with the files as they were published; None where there is none. DISCREET_NETWORKS names it."""
    root = Path(__file__).resolve().parents[3]
    directory = Path(os.environ.get("DISCREET_NETWORKS", root / "shared" / "data" / "networks"))
    return directory if (directory / "alarm.bif").exists() else None


@pytest.fixture(scope="session")
def networks_directory(original_networks, tmp_path_factory):
    if original_networks is not None:
        return original_networks
    directory = tmp_path_factory.mktemp("networks")
    for name in networks.names():
        save_bif(networks.load(name), directory / f"{name}.bif")
    return directory
