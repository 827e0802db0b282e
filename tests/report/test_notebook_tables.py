"""What notebooks show of our values: small tables, escaped; and the page of a release by one call."""

from __future__ import annotations

import re

import pytest

from discreet import ApproxDP, Curator, Domain, PrivacyUnit, PureDP, Release, encode, networks, resolve
from discreet.errors import NotAReleaseError
from discreet.learn.certifying import certify_later
from discreet.learn.structure.result import StructureResult

NASTY = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def made():
    domain = Domain.of({NASTY: ["<b>", "no"], "lung": ["yes", "no"]})
    rows = encode({NASTY: ["<b>", "no"] * 200, "lung": ["yes", "no"] * 200}, domain)
    with Curator(rows, PrivacyUnit(), PureDP(2)) as curator:
        release = Release.of(resolve(domain, cliques=[[NASTY, "lung"]]).learn(curator))
    with Curator(rows, PrivacyUnit(), ApproxDP(1, "1e-6")) as curator:
        paid = certify_later(release.model, PrivacyUnit(), ApproxDP(1, "1e-6")).run(curator)
    return release.certified(paid)


def shown(made):
    domain = made.model.domain
    intervals = made.intervals(draws=5)
    graph = StructureResult(domain.names, "by hand", (domain.names,), {domain.names: {"sign": "<+>"}})
    refused = StructureResult(domain.names, "by hand", None, reason="too <few>", enough={"records": 1000.0})
    plan = resolve(domain, cliques=[[NASTY, "lung"]]).prepare(domain, PrivacyUnit(), PureDP(1))
    return {
        "domain": domain,
        "plan": plan,
        "release": made,
        "answer": made.model.marginal([NASTY, "lung"]),
        "number": made.model.ask("P(lung=yes)"),
        "map": made.model.map(),
        "interval": intervals.marginal("lung"),
        "unlabelled": intervals.of(lambda m: m.entropy()),
        "survival": intervals.ask("MAP(lung)"),
        "intervals": intervals,
        "certificate": made.certificate,
        "graph": graph,
        "refused": refused,
    }


def test_everything_has_a_table_and_nothing_escapes(made):
    for name, value in shown(made).items():
        html = value._repr_html_()
        assert html.startswith("<div>") and html.endswith("</div>"), name
        assert "<script" not in html and "<b>" not in html and "<few>" not in html and "<+>" not in html, name


def test_tables_say_what_the_text_says(made):
    values = {name: value._repr_html_() for name, value in shown(made).items()}
    assert "ε = 1 (pure DP)" in values["plan"] and "100 %" in values["plan"]
    assert "ε = 2" in values["release"] and "one row" in values["release"]
    assert "90% intervals" in values["interval"] and "from" in values["interval"]
    assert "Certificate of fit" in values["certificate"] and "total variation" in values["certificate"]
    assert "no graph" in values["refused"] and "1000" in values["refused"]
    assert "survives fresh noise" in values["survival"]


def test_long_tables_are_cut():
    html = Domain.of({f"c{i}": 100 for i in range(60)})._repr_html_()
    assert "and 20 more" in html and "…" in html


def test_a_release_writes_its_page(made, tmp_path):
    made.report(tmp_path / "page.html", title="Mine", draws=3)
    page = (tmp_path / "page.html").read_text()
    assert "<title>Mine</title>" in page and "What another budget would buy" in page
    assert re.findall(r"<tr><td>([^<]*)</td><td>", page) == ["0.4", "1", "2", "4", "10"]
    with pytest.raises(NotAReleaseError):
        Release(networks.load("asia")).report(tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()
