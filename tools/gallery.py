"""Draws the pictures of docs/gallery.md, of a bundled network: `.venv/bin/python tools/gallery.py`.

Needs what `./test` needs: matplotlib, and Chromium for the pages. The records are seeded; the noise, as always, is not.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from discreet import ApproxDP, Curator, PrivacyUnit, Release, encode, networks, resolve
from discreet.cli.desk import Column, Desk
from discreet.cli.guide import Guide
from discreet.report.explore import Explorer
from discreet.report.plots import plot_budget, plot_marginals
from discreet.sweeps import sweep

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
BUDGET = ApproxDP(1, "1e-9")


def save(drawn: Any, name: str) -> None:
    drawn.figure.savefig(IMAGES / f"gallery-{name}.png", dpi=80)


def main() -> None:
    truth = networks.load("child")
    records = truth.sample(10_000, random_state=1)
    spec = resolve(truth.domain)
    with Curator(encode(records.to_frame(), truth.domain), PrivacyUnit(), BUDGET) as curator:
        release = Release.of(spec.learn(curator))
    intervals = release.intervals()
    save(release.model.plot(), "graph")
    save(plot_marginals(release.model, ["Disease", "Age", "Grunting"], intervals=intervals, truth=truth), "marginals")
    save(plot_budget(release.model), "budget")
    save(sweep(spec, truth.domain, PrivacyUnit(), BUDGET, amounts=(0.1, 0.3, 1, 3, 10)).plot(), "sweep")
    with tempfile.TemporaryDirectory() as made:
        pages(Path(made), release, intervals)


def pages(folder: Path, release: Release, intervals: Any) -> None:
    """What the report, `explore` and `start` look like."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for switch in ("--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-sandbox", "--window-size=1000,900"):
        options.add_argument(switch)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    release.report(folder / "report.html")
    networks.load("asia").sample(3000, random_state=1).to_csv(folder / "patients.csv")
    desk = Desk(folder)
    desk.say_data(folder / "patients.csv")
    desk.say_columns(Column(c.name, "levels", {"levels": "yes\nno"}) for c in desk.columns())
    desk.say({"epsilon": "1", "approximate_size": 3000})
    explorer, guide = Explorer(release.model, intervals=intervals), Guide(desk)
    for page in (explorer, guide.page):
        threading.Thread(target=page.serve, daemon=True).start()
    seen = {"report": f"file://{folder}/report.html", "explore": explorer.address, "start": guide.page.at("/budget")}
    for name, address in seen.items():
        browser.get(address)
        time.sleep(2)  # the page asks for its numbers
        browser.save_screenshot(str(IMAGES / f"gallery-{name}.png"))
    browser.quit()


if __name__ == "__main__":
    main()
