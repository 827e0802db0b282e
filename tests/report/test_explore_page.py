"""The page to explore a model: moves as the model says, in a real browser; talks to nobody else."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from discreet import networks
from discreet.domain import Attribute, Domain
from discreet.errors import DiscreetError
from discreet.models import BayesianNetwork
from discreet.report.explore import Explorer
from discreet.report.page import example_question


@pytest.fixture
def explorer(release) -> Iterator[Explorer]:
    yield from served(Explorer(release["model"]))


@pytest.fixture
def with_noise(release) -> Iterator[Explorer]:
    yield from served(Explorer(release["model"], intervals=release["intervals"]))


def served(one: Explorer) -> Iterator[Explorer]:
    thread = threading.Thread(target=one.serve, daemon=True)
    thread.start()
    yield one
    one.close()
    thread.join(5)


def call(explorer: Explorer, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=10)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, headers)
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read() or b"{}")


def test_beliefs_are_the_models(explorer):
    status, found = call(explorer, "POST", "/beliefs", {"given": {"xray": "yes"}}, **{"X-Token": explorer.token})
    model = explorer.model
    assert status == 200 and "xray" not in found["marginals"]
    assert found["marginals"]["lung"] == pytest.approx(model.marginal("lung", {"xray": "yes"}).probabilities.tolist())
    assert found["probability"] == f"{100 * model.probability({'xray': 'yes'}):.1f} %"
    assert call(explorer, "POST", "/noise", {"given": {}}, **{"X-Token": explorer.token}) == (200, {})


def test_noise_is_that_of_the_intervals(with_noise, release):
    given = {"xray": "yes"}
    status, found = call(with_noise, "POST", "/noise", {"given": given}, **{"X-Token": with_noise.token})
    expected = release["intervals"].marginal("lung", given)
    assert status == 200 and "xray" not in found["noise"]
    assert found["noise"]["lung"]["lower"] == pytest.approx(expected.lower.tolist())
    assert found["noise"]["lung"]["upper"] == pytest.approx(expected.upper.tolist())
    assert all("±" in text for text in found["noise"]["lung"]["texts"])
    status, found = call(with_noise, "POST", "/ask", {"question": "P(lung)"}, **{"X-Token": with_noise.token})
    assert "intervals for privacy noise" in found["text"]


def test_a_later_click_goes_before_the_noise_of_an_older_one(with_noise, monkeypatch):
    marginal, asked = type(with_noise.intervals).marginal, []

    def clicked_meanwhile(self, name, given):
        asked.append(name)
        with_noise._latest += 1  # what a click does before anything else
        return marginal(self, name, given)

    monkeypatch.setattr(type(with_noise.intervals), "marginal", clicked_meanwhile)
    assert with_noise.noise({"given": {}}) == {} and len(asked) == 1


def test_strangers_are_refused(explorer):
    known = {"X-Token": explorer.token}
    assert call(explorer, "GET", "/")[0] == 403
    assert call(explorer, "GET", "/?token=guess")[0] == 403
    assert call(explorer, "POST", "/beliefs", {})[0] == 403
    assert call(explorer, "POST", "/beliefs", {}, Host="evil.example", **known)[0] == 403
    assert call(explorer, "GET", f"/?token={explorer.token}", Host="evil.example")[0] == 403
    assert call(explorer, "POST", "/beliefs", {}, **known)[0] == 200
    assert explorer._server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/beliefs", {"given": {"lungs": "yes"}}, "lung"),
        ("/beliefs", {"given": {"lung": "maybe"}}, "maybe"),
        ("/beliefs", {"given": 3}, "map columns"),
        ("/beliefs", [1], "object"),
        ("/beliefs", b"{", "JSON"),
        ("/ask", {}, "query language"),
        ("/ask", {"question": "P(lung"}, "^"),
        ("/ask", {"question": "E(lung)"}, "is about numbers"),
        ("/map", {"given": {"lung": ["yes"]}}, "map columns"),
    ],
)
def test_bad_requests_get_words(explorer, path, body, said):
    status, found = call(explorer, "POST", path, body, **{"X-Token": explorer.token})
    assert status == 400 and said in found["problem"]


def test_questions_of_every_kind_are_answered(explorer):
    for question in ("P(lung | smoke != no)", "P(lung | smoke)", "P(dysp=yes | smoke in {yes}, known(xray))"):
        status, found = call(explorer, "POST", "/ask", {"question": question}, **{"X-Token": explorer.token})
        assert status == 200 and question.split(" |")[0] in found["text"]


def test_unknown_paths(explorer):
    assert call(explorer, "POST", "/rows", {}, **{"X-Token": explorer.token})[0] == 404
    assert call(explorer, "GET", f"/etc/passwd?token={explorer.token}")[0] == 404
    with pytest.raises(DiscreetError, match="port"):
        Explorer(explorer.model, port=explorer.port)


def test_clicking_moves_the_bars(explorer, browser):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.set_window_size(1000, 1400)
    browser.get(explorer.address)
    wait = WebDriverWait(browser, 10)
    wait.until(lambda b: b.find_element("tag name", "body").get_attribute("data-turn") == "1")

    def row(column: str, label: str):
        return browser.find_element("css selector", f'.level[data-column="{column}"][data-label="{label}"]')

    def shown(column: str, label: str) -> str:
        return row(column, label).find_element("css selector", ".number").text

    model = explorer.model
    assert shown("lung", "yes") == f"{100 * model.probability({'lung': 'yes'}):.1f} %"
    row("xray", "yes").click()
    wait.until(lambda b: b.find_element("tag name", "body").get_attribute("data-turn") == "2")
    assert shown("lung", "yes") == f"{100 * model.probability({'lung': 'yes'}, {'xray': 'yes'}):.1f} %"
    assert shown("xray", "yes") == "given"
    assert "given" in browser.find_element("css selector", '.node[data-column="xray"]').get_attribute("class")
    browser.find_element("id", "likely").click()
    wait.until(lambda b: "MAP(" in b.find_element("id", "answer").text)
    browser.find_element("id", "clear").click()
    wait.until(lambda b: shown("lung", "yes") == f"{100 * model.probability({'lung': 'yes'}):.1f} %")
    refused = [entry for entry in browser.get_log("browser") if "400" not in entry["message"]]
    assert refused == []


def test_every_number_has_its_noise(with_noise, browser):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.set_window_size(1000, 1400)
    browser.get(with_noise.address)
    wait = WebDriverWait(browser, 10)
    wait.until(lambda b: b.find_element("tag name", "body").get_attribute("data-noise") == "1")
    numbers = [e.text for e in browser.find_elements("css selector", ".level .number")]
    assert len(numbers) == 16 and all("±" in text for text in numbers)
    whiskers = browser.find_elements("css selector", ".level .whisker")
    assert all(w.is_displayed() and w.size["width"] > 0 for w in whiskers)
    code = "return getComputedStyle(document.querySelector('.level > :first-child')).textOverflow"
    assert browser.execute_script(code) == "ellipsis"
    assert browser.execute_script("return getComputedStyle(document.body).fontFamily").startswith("system-ui")
    # What an interval says to beware of stands with its column, and goes with the noise.
    given = {"asia": "yes", "xray": "yes"}
    notes = {n: with_noise.intervals.marginal(n, given).note for n in with_noise.model.domain if n not in given}
    assert any(notes.values())
    for name, level in given.items():
        browser.execute_script("given.set(arguments[0], arguments[1])", name, level)
    browser.execute_script("refresh()")
    wait.until(lambda b: b.find_element("tag name", "body").get_attribute("data-noise") == "2")
    said = {
        panel.find_element("tag name", "h3").text: panel.find_element("css selector", ".why p").get_attribute(
            "textContent"
        )
        for panel in browser.find_elements("css selector", "#columns .panel")
        if panel.find_element("css selector", ".why").is_displayed()
    }
    assert said == {name: note for name, note in notes.items() if note}


@pytest.mark.parametrize("size", [(1000, 800), (420, 700)], ids=str)
def test_what_is_wrong_is_said_in_view_and_no_old_answer_stays(explorer, browser, size):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.set_window_size(*size)
    browser.get(explorer.address)
    wait = WebDriverWait(browser, 10)
    wait.until(lambda b: b.find_element("tag name", "body").get_attribute("data-turn") == "1")
    answer = browser.find_element("id", "answer")

    def ask(question: str) -> None:
        field = browser.find_element("id", "ask")
        field.clear()
        field.send_keys(question + "\n")

    def in_view(element) -> bool:
        code = "const r = arguments[0].getBoundingClientRect(); return r.top >= 0 && r.bottom <= window.innerHeight"
        return browser.execute_script(code, element)

    ask("P(lung)")
    wait.until(lambda b: answer.text and "P(lung)" in answer.text)
    assert in_view(answer) and "wrong" not in answer.get_attribute("class")
    ask("P(nobody)")
    wait.until(lambda b: "nobody" in answer.text)
    assert in_view(answer) and "wrong" in answer.get_attribute("class")
    assert "P(lung)\n" not in answer.text, "the old answer is gone"
    assert answer.text.rstrip().endswith("^" * len("nobody")), "the wrong place is marked"
    # What cannot be given is said where the page is looked at, however far down that is.
    impossible = "xray"
    browser.execute_script("window.scrollTo(0, document.body.scrollHeight)")
    browser.execute_script("given.set(arguments[0], 'maybe'); refresh()", impossible)
    problem = browser.find_element("id", "problem")
    wait.until(lambda b: "maybe" in problem.text)
    assert in_view(problem)
    browser.get_log("browser")  # refusals are in it, as they should be


def test_columns_of_numbers_are_asked_about():
    """The question that stands there is one about numbers; means, quantiles and ranges are answered."""
    domain = Domain((Attribute.numeric("pay", [0, 10, 100], decimals=2), Attribute.categorical("sex", ["F", "M"])))
    tables = {"sex": np.array([0.5, 0.5]), "pay": np.array([[0.8, 0.2], [0.4, 0.6]])}
    model = BayesianNetwork(domain, {"pay": ["sex"]}, tables, {"origin": "release"})
    assert example_question(model) == "E(pay | sex=F)"
    assert example_question(networks.load("asia")) == "P(asia | dysp=yes)"
    for one in served(Explorer(model)):
        for question in (
            "E(pay | sex=F)",
            "SD(pay)",
            "QUANTILE(pay, 0.9 | sex=M)",
            "P(pay >= 20 | sex=F)",
            "E(pay | sex)",
        ):
            status, found = call(one, "POST", "/ask", {"question": question}, **{"X-Token": one.token})
            assert status == 200 and question in str(found), found
        status, found = call(one, "POST", "/ask", {"question": "P(pay > 500)"}, **{"X-Token": one.token})
        assert status == 400 and "the bins go from 0 to 100" in str(found)
