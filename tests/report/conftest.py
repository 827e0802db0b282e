"""A released model, and a real browser to look at its pages."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from discreet import Curator, Marginals, PrivacyUnit, PureDP, encode, networks
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.release.uncertainty import noise_intervals


@pytest.fixture(scope="session")
def release() -> dict[str, Any]:
    """Asia learned at ε = 0.2 from 3,000 records, with its noisy tables and intervals."""
    truth = networks.load("asia")
    learner = OptimalNetwork(truth)
    table = encode(truth.sample(3000, random_state=1).to_pandas(), truth.domain)
    with Curator(table, PrivacyUnit(), PureDP(0.2)) as curator:
        measurements = curator.measure(Marginals(truth.domain, learner.families(truth.domain).maximal))
        card = {**curator.statement(), "method": "optimal", "noise": ["laplace"]}
    model = learner.estimate(measurements, truth.domain).with_card(card)
    intervals = noise_intervals(
        lambda m: learner.estimate(m, truth.domain), measurements, model, draws=10, random_state=0
    )
    return {"model": model, "measurements": measurements, "intervals": intervals}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium from Debian's packages; `./test` installs it where it may."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        warnings.warn("NO BROWSER: the pages were not looked at. Install chromium and chromium-driver.", stacklevel=1)
        pytest.skip("no chromium and chromedriver here: the pages were NOT looked at")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for switch in ("--headless=new", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1400"):
        options.add_argument(switch)
    if os.geteuid() == 0:  # Chromium's sandbox refuses to run as root
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driven = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield driven
    driven.quit()
