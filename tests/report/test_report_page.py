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
from discreet.report.page import report_html
from discreet.report.pages import write_report
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


def test_commands_in_sentences_are_code_and_labels_are_not_html(release):
    caution = "`discreet plan --methods` may help with <b>"
    model = release["model"].with_card({**release["model"].card, "caution": caution})
    html = report_html(model, card_text=CARD)
    assert "<code>discreet plan --methods</code> may help with &lt;b&gt;" in html


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
        ({"misfit": 0.7}, "as close to its own noisy tables as noise allows: its distance from them is 0.7 times"),
        ({"misfit": 0.7, "caution": "noise only"}, "Beware: noise only."),
    ],
)
def test_how_good_the_model_is_in_one_sentence(card, said, release):
    sentences = words.how_good(card)
    assert len(sentences) == (said is not None) and all(said in s for s in sentences)
    model = release["model"].with_card({**release["model"].card, **card})
    html = report_html(model, card_text=CARD)
    assert all(s in html for s in sentences) and ("Beware" in html) == ("Beware" in "".join(sentences))
    assert ('class="warning">Beware' in html) == ("caution" in card)


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


def style_of(browser, selector: str, *names: str) -> list[str]:
    """What the browser made of the style, which is more than what stands in the file."""
    code = "const s = getComputedStyle(document.querySelector(arguments[0])); return arguments[1].map(n => s[n])"
    return browser.execute_script(code, selector, list(names))


def test_the_style_applies(page, browser):
    browser.set_window_size(1000, 1400)
    browser.get(page.as_uri())
    (family,) = style_of(browser, "body", "fontFamily")
    assert family.startswith("system-ui") and "Segoe UI" in family
    assert style_of(browser, "body", "fontSize", "lineHeight") == ["16px", "24px"]
    shortened = style_of(browser, ".level > :first-child", "overflow", "textOverflow", "whiteSpace")
    assert shortened == ["hidden", "ellipsis", "nowrap"]


def test_what_is_wide_scrolls_and_is_not_cut(browser, tmp_path):
    """Long tables and long names: the page stays as wide as the screen, and every cell can be reached."""
    made = ordered_release()
    path = tmp_path / "report.html"
    write_report(path, report_html(made.model, card_text=CARD, intervals=made.intervals(draws=3)))
    for width in (1400, 420):
        browser.set_window_size(width, 900)
        browser.get(path.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth") <= 0
        cut = browser.execute_script(
            """return [...document.querySelectorAll(".pairs .panel, .level .number, td, th")].filter(e =>
            e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "auto").map(e => e.outerHTML)"""
        )
        assert cut == []
        beyond = browser.execute_script(
            """return [...document.querySelectorAll(".levels")].filter(e => [...e.querySelectorAll(".number")].some(
            n => n.getBoundingClientRect().right > e.getBoundingClientRect().right)).length"""
        )
        assert beyond == 0, "numbers stay within their panel"
        # The names of rows stay where they are while the numbers scroll: they must not take all the room.
        browser.execute_script(
            """document.querySelectorAll("details").forEach(e => { e.open = true; });
            document.querySelector("th[scope=row]").textContent = "a name that goes on and on ".repeat(9);
            document.querySelector("th[scope=row]").className = "long";"""
        )
        room = browser.execute_script(
            """return [...document.querySelectorAll(".pairs .panel")].map(
            e => e.querySelector("th[scope=row]").offsetWidth / e.clientWidth)"""
        )
        assert max(room) < 0.6
        assert browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth") <= 0
        assert browser.execute_script(
            """return [...document.querySelectorAll(".scroll")].every(e => e.tabIndex === 0 && e.ariaLabel)"""
        ), "what scrolls can be scrolled by keyboard, and has a name"


def ordered_release() -> Release:
    """Ages in 40 bins, the last of them rare, and a column with 18 levels that depends on them most of all."""
    from discreet import Attribute

    rng = np.random.default_rng(0)
    work = [f"occupation number {i}" for i in range(18)]
    domain = Domain(
        (
            Attribute.numeric("age", list(range(0, 121, 3)), missing="unknown"),
            Attribute.categorical("work", work),
            Attribute.categorical("sex", ["f", "m"]),
        )
    )
    age = rng.gamma(8, 5, 4000).clip(0, 119)
    where = np.minimum(age // 6, 17).astype(int)
    sex = np.where(rng.random(4000) < 0.4 + 0.2 * (where > 6), "f", "m")
    rows = encode({"age": age, "work": [work[i] for i in where], "sex": sex}, domain)
    with Curator(rows, budget=PureDP(4)) as curator:
        graph = {"age": [], "work": ["age"], "sex": ["work"]}
        return Release.of(Spec("network", "optimal", {"graph": graph}).learn(curator))


def test_no_bin_of_an_ordered_column_is_hidden_and_the_strongest_pair_comes_first():
    made = ordered_release()
    html = report_html(made.model, card_text=CARD, intervals=made.intervals(draws=3))
    panel = html[html.index("<h3>age</h3>") : html.index("<h3>work</h3>")]
    labels = re.findall(r'<span title="([^"]*)">', panel)
    assert labels[0] == "[0, 6)" and labels[-2:] == ["[114, 120]", "unknown"] and len(labels) == 21
    widths = [float(w) for w in re.findall(r'class="fill" style="width:([\d.]+)%"', panel)]
    assert sum(widths) == pytest.approx(100, abs=0.2)
    assert re.search(r"7 others</span>", html), "rare categories are one bar"
    captions = re.findall(r"<caption>([^<]*)</caption>", html)
    assert captions == ["age × work", "work × sex"]


def test_levels_are_put_together_and_none_is_lost():
    from discreet import Attribute
    from discreet.report.levels import grouped

    for attribute in (
        Attribute.numeric("x", list(range(101)), other="else"),
        Attribute.categorical("x", 60),
        Attribute.categorical("x", [f"l{i}" for i in range(60)], missing="none"),
        Attribute.categorical("x", ["b", "a"]),
        Attribute.numeric("x", list(range(31)), heaps=range(6), missing="none"),
        Attribute.numeric("x", list(range(31)), heaps=range(20)),
    ):
        p = np.random.default_rng(0).dirichlet(np.ones(attribute.size))
        found = grouped(attribute, p)
        codes = [code for group in found for code in group.codes]
        assert sorted(codes) == list(range(attribute.size)) and len(found) <= 24
        few = grouped(attribute, p, 7)
        assert sorted(code for group in few for code in group.codes) == list(range(attribute.size)) and len(few) <= 12
        assert len({group.label for group in found}) == len(found)
    assert [g.label for g in grouped(Attribute.categorical("x", 60), np.full(60, 1 / 60))][:2] == ["0 – 2", "3 – 5"]


def test_numbers_have_the_digits_that_noise_leaves():
    from discreet.report.levels import percent

    assert percent(0.0476123, 0.00003) == "4.7612 % ± 0.0030"
    assert percent(0.0476123, 0.02) == "4.8 % ± 2.0"
    assert percent(0.0476123) == "4.8 %" and percent(0.0001) == "< 0.1 %" and percent(0.0, 0.0) == "0 %"


def test_a_graph_of_many_edges_is_drawn_by_its_strongest():
    from itertools import combinations

    from discreet.models import IsingModel
    from discreet.report.drawing import drawn_edges, graph_svg

    rng = np.random.default_rng(0)
    A = np.zeros((16, 16))
    for i, j in combinations(range(16), 2):
        A[i, j] = A[j, i] = rng.uniform(0.01, 0.1) + (j == i + 1)
    model = IsingModel(A, np.zeros(16), Domain.of({f"a name of some length {i}": 2 for i in range(16)}))
    strength = model.edge_strength()
    assert len(model.edges) == 120
    drawn = drawn_edges(model, strength)
    assert drawn == sorted(model.edges, key=lambda e: -abs(strength[e]))[:32]
    few = drawn_edges(model, strength, faded=set(drawn[16:]))
    assert few == drawn[:16], "where not all are drawn, those that noise could have made are not"
    svg = graph_svg(model, strength)
    assert svg.count('class="edge') == 32
    boxes = [tuple(map(float, b)) for b in re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', svg)]
    for (x, y, w, h), (x2, y2, w2, h2) in combinations(boxes, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, "no name lies on another"
    thick = [float(t) for t in re.findall(r'stroke-width="([\d.]+)"', svg)]
    assert thick == sorted(thick), "the strongest are drawn last, on top"


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
