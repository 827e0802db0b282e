"""The page to explore a model: moves as the model says, in a real browser; talks to nobody else."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator

import pytest

from discreet.errors import DiscreetError
from discreet.report.explore import Explorer


@pytest.fixture
def explorer(release) -> Iterator[Explorer]:
    one = Explorer(release["model"])
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
    assert found["probability"] == pytest.approx(model.probability({"xray": "yes"}))


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
        ("/ask", {"question": "P(lung"}, ""),
        ("/map", {"given": {"lung": ["yes"]}}, "map columns"),
    ],
)
def test_bad_requests_get_words(explorer, path, body, said):
    status, found = call(explorer, "POST", path, body, **{"X-Token": explorer.token})
    assert status == 400 and said in found["problem"]


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
    assert shown("xray", "yes") == "100.0 %"
    assert "given" in browser.find_element("css selector", '.node[data-column="xray"]').get_attribute("class")
    browser.find_element("id", "likely").click()
    wait.until(lambda b: "MAP(" in b.find_element("id", "answer").text)
    field = browser.find_element("id", "ask")
    field.clear()
    field.send_keys("P(nobody)\n")
    wait.until(lambda b: "nobody" in b.find_element("id", "problem").text)
    browser.find_element("id", "clear").click()
    wait.until(lambda b: shown("lung", "yes") == f"{100 * model.probability({'lung': 'yes'}):.1f} %")
    refused = [entry for entry in browser.get_log("browser") if "400" not in entry["message"]]
    assert refused == []
