"""The report: says what is true, needs no network, and renders in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from discreet import ZCDP, Curator, Domain, PureDP, Release, Spec, encode, networks
from discreet.errors import DiscreetError
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.privacy.curator import ExactCurator
from discreet.report import words
from discreet.report.page import report_html, write_report
from discreet.report.spending import Portion, merged, portions

CARD = "name: not stated\n"


@pytest.fixture(scope="module")
def page(release, tmp_path_factory) -> Path:
    html = report_html(
        release["model"], card_text=CARD, intervals=release["intervals"], measurements=release["measurements"]
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, html)
    return path


def test_the_guarantee_comes_first_and_is_right(page):
    text = page.read_text()
    assert "more than 1.23 times likelier" in text  # e^0.2, rounded up
    assert text.index('id="guarantee"') < text.index('id="budget"') < text.index('id="graph"') < text.index('id="card"')
    assert CARD.strip() in text


def test_nothing_is_loaded_from_anywhere(page):
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert (
        "http" not in text.replace("http-equiv", "")
        and "@import" not in text
        and "url(" not in text.replace("url(#", "")
    )


def test_a_model_that_is_no_release_is_refused(tmp_path):
    truth = networks.load("asia")
    table = encode(truth.sample(200, random_state=0).to_pandas(), truth.domain)
    exact = OptimalNetwork(truth).fit(ExactCurator(table))
    for model in (truth, exact):
        with pytest.raises(DiscreetError, match="no release"):
            report_html(model, card_text=CARD)


def test_labels_cannot_write_html():
    from discreet.models import BayesianNetwork

    domain = Domain.of({"<script>x": ["<b>", '"&'], "b": 2})
    network = BayesianNetwork(
        domain, {"b": ["<script>x"]}, {"<script>x": np.array([0.3, 0.7]), "b": np.full((2, 2), 0.5)}
    )
    table = encode({"<script>x": ["<b>"] * 50, "b": [0] * 50}, domain)
    with Curator(table, budget=PureDP(1)) as curator:
        model = OptimalNetwork(network).fit(curator)
    html = report_html(model, card_text="</pre><script>alert(1)</script>", title="<i>t</i>")
    assert "<script" not in html and "<b>" not in html and "<i>t" not in html


def test_structural_zeros_are_said_and_not_measured():
    """No noise can move what the schema calls impossible; a zero that noise made has its ± all the same."""
    rule = {"pregnant": "yes", "sex": "m"}
    domain = Domain.of({"sex": ["f", "m"], "pregnant": ["yes", "no"]})
    domain = Domain(domain.attributes, (rule,))
    rows = encode({"sex": ["f", "m"] * 300, "pregnant": ["yes", "no", "no", "no"] * 150}, domain)
    with Curator(rows, budget=PureDP(1)) as curator:
        made = Release.of(Spec("network", "optimal", {"graph": {"sex": [], "pregnant": ["sex"]}}).learn(curator))
    html = report_html(made.model, card_text=CARD, intervals=made.intervals(draws=5), pairs=[("sex", "pregnant")])
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", html)
    assert sum("0 (impossible by the schema)" in cell for cell in cells) == 1
    assert sum("±" in cell for cell in cells) == 3, "the other three were measured"
    assert "0.0 % ± 0.1" not in html
    assert html.count("impossible by the schema") == 1
    assert "impossible by the schema" in report_html(made.model, card_text=CARD, pairs=[("sex", "pregnant")])


def test_portions_add_up(release):
    found = portions(release["model"].card, release["measurements"])
    assert len(found) == len(release["measurements"])
    assert sum(p.part for p in found) == pytest.approx(1)
    few = merged([Portion(str(i), 1 / 40) for i in range(40)])
    assert len(few) == 12 and sum(p.part for p in few) == pytest.approx(1)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_portions_follow_weights(noise):
    from discreet import Marginals

    truth = networks.load("asia")
    table = encode(truth.sample(50, random_state=0).to_pandas(), truth.domain)
    with Curator(table, budget=ZCDP(0.5)) as curator:
        found = curator.measure(Marginals(truth.domain, [("asia",), ("tub",)]), ZCDP(0.3), weights=[1, 3], noise=noise)
        card = curator.statement()
    parts = portions(card, found)
    assert [p.what for p in parts] == ["asia", "tub", "not used"]
    assert parts[2].part == pytest.approx(0.4, abs=1e-6)
    if noise == "gaussian":
        assert parts[1].part / parts[0].part == pytest.approx(3, rel=1e-3)


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({}, None),
        ({"misfit": "much"}, None),
        ({"misfit": 0.7}, "as near to its noisy tables as their noise allows (misfit 0.7; noise leaves 1)"),
        ({"misfit": 2.34}, "Beware: the model misses its own tables: its squared distance from them is 2.3 times"),
        ({"misfit": 0.7, "caution": "noise only"}, "Beware: noise only."),
    ],
)
def test_how_good_the_model_is_in_one_sentence(card, said, release):
    sentences = words.how_good(card)
    assert len(sentences) == (said is not None) and all(said in s for s in sentences)
    model = release["model"].with_card({**release["model"].card, **card})
    html = report_html(model, card_text=CARD)
    assert all(s in html for s in sentences) and ("Beware" in html) == ("Beware" in "".join(sentences))
    assert ("misfit" in html) == ("misfit" in "".join(sentences))


def test_words_for_every_notion_and_unit():
    card = {
        "budget": {"notion": "zcdp", "rho": "1/10"},
        "unit": {"column": "who", "max_rows": 3, "relation": "replace-one"},
    }
    text = " ".join(words.guarantee(card))
    assert "any one “who”" in text and "At most 3 rows" in text and "been any others" in text and "1e-06" in text
    weak = {
        "budget": {"notion": "pure", "epsilon": "30"},
        "unit": {"column": None, "max_rows": 1, "relation": "add-remove"},
    }
    assert "protects hardly at all" in " ".join(words.guarantee(weak)) and "e^30" in words.guarantee(weak)[0]


def test_it_renders_on_a_desk_and_on_a_phone(page, browser, tmp_path):
    for width, height in ((1000, 1400), (390, 844)):
        browser.set_window_size(width, height)
        browser.get(page.as_uri())
        assert browser.get_log("browser") == []
        assert "Bayesian network of 8 columns" in browser.title
        assert len(browser.find_elements("css selector", "svg.graph .node")) == 8
        wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, "the page must not scroll sideways"
        for link in browser.find_elements("css selector", "nav a"):
            target = link.get_attribute("href").split("#")[1]
            assert browser.find_elements("id", target), target
        widths = [e.size["width"] for e in browser.find_elements("css selector", ".bar span")]
        assert len(widths) == 6 and min(widths) > 5
    shot = tmp_path / "report.png"
    browser.save_screenshot(str(shot))
    assert 5_000 < shot.stat().st_size < 400_000
