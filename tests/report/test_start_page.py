"""`discreet start`: from a file to a release on a page, in a real browser; nothing said there is lost."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import tomllib
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet import Ledger, PureDP, Release
from discreet.cli import run
from discreet.cli.desk import Column, Desk
from discreet.cli.guide import Guide
from discreet.errors import DiscreetError

ROWS = "smoke,age,city,note\n" + "".join(
    f"{'yes' if i % 3 else 'no'},{20 + i % 60},{'Ulm' if i % 2 else 'Bonn'},secret-{i}\n" for i in range(2000)
)


@pytest.fixture
def guide(tmp_path: Path) -> Iterator[Guide]:
    (tmp_path / "rows.csv").write_text(ROWS)
    one = Guide(Desk(tmp_path))
    thread = threading.Thread(target=one.serve, daemon=True)
    thread.start()
    yield one
    one.end()
    thread.join(10)
    assert not thread.is_alive()


def send(guide: Guide, path: str, token: str | None = None, host: str | None = None, **form: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", guide.page.port, timeout=30)
    where = f"{path}?token={guide.page.token if token is None else token}"
    headers = {"Content-Type": "application/x-www-form-urlencoded", **({"Host": host} if host else {})}
    connection.request("POST" if form else "GET", where, urllib.parse.urlencode(form) if form else None, headers)
    reply = connection.getresponse()
    return reply.status, reply.getheader("Location") or reply.read().decode()


def press(guide: Guide) -> tuple[int, str]:
    """The button below the plan."""
    digest = re.search(r'name="digest" value="(\w+)"', send(guide, "/plan")[1])
    return send(guide, "/plan", digest=digest[1] if digest else "none")


def finished(guide: Guide) -> None:
    for _ in range(600):
        if guide.running is not None and guide.running.ended:
            return
        threading.Event().wait(0.1)
    raise AssertionError("the fit did not end")


COLUMNS = {
    "kind-0": "levels", "levels-levels-0": "yes\r\nno",
    "kind-1": "numbers", "numbers-low-1": "0", "numbers-high-1": "100", "numbers-bins-1": "5",
    "numbers-integer-1": "yes",
    "kind-2": "levels", "levels-levels-2": "Ulm, Bonn", "levels-missing-2": "none",
    "kind-3": "out",
}  # fmt: skip


def test_from_a_file_to_a_release(guide: Guide, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert send(guide, "/") == (303, f"/file?token={guide.page.token}")
    assert send(guide, "/file", data="rows.csv")[1].startswith("/columns")
    assert send(guide, "/columns", **COLUMNS)[1].startswith("/budget")
    schema = tomllib.loads((tmp_path / "schema.toml").read_text())["columns"]
    assert schema == {
        "smoke": {"levels": ["yes", "no"]},
        "age": {"range": [0, 100], "bins": 5, "integer": True},
        "city": {"levels": ["Ulm", "Bonn"], "missing": "none"},
    }
    money = {"epsilon": "1", "total": "3", "approximate_size": "2000"}
    assert send(guide, "/budget", **money, then="budget")[1].startswith("/budget")
    assert "What ε buys" in (page := send(guide, "/budget")[1])
    assert not (tmp_path / "ledger.db").exists(), "a question makes nothing that is for good"
    assert 'name="total" value="3"' in page
    status, plan = send(guide, "/plan")
    assert "it is made now, for good, with ε = 3" in plan
    assert status == 200 and "number of records" in plan and "ledger.db" in plan
    assert press(guide)[1].startswith("/release")
    finished(guide)
    status, page = send(guide, "/release")
    assert "Nothing in this release" in page and "model.zip" in page
    release = Release.load(tmp_path / "model.zip")
    assert release.model.domain.names == ("smoke", "age", "city")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert str(ledger.spent) == str(release.card["spent"]["epsilon"]) or "1" in str(ledger.spent)
    assert send(guide, "/release", records="20")[1].startswith("/release")
    status, csv = send(guide, "/download/synthetic.csv")
    assert status == 200 and len(csv.splitlines()) == 21
    assert send(guide, "/download/rows.csv")[0] == 404, "the private rows cannot be had from the page"
    assert "secret-" not in page + plan
    # The command line goes on from there.
    assert run(["fit", "--run", str(tmp_path / "run.toml"), "-o", str(tmp_path / "second.zip")]) == 0
    assert "Saved in" in capsys.readouterr().out


def test_strangers_are_refused(guide: Guide) -> None:
    for path in ("/", "/file", "/plan", "/progress", "/download/run.toml"):
        assert send(guide, path, token="guess")[0] == 403
        assert send(guide, path, host="evil.example")[0] == 403
    assert send(guide, "/plan", token="guess", go="yes")[0] == 403 and guide.running is None
    assert send(guide, "/nowhere")[0] == 404


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("/file", {"data": ""}, "name the file"),
        ("/file", {"data": "nothing.csv"}, "there is no file"),
        ("/columns", {**COLUMNS, "numbers-high-1": "many"}, "is no number"),
        ("/columns", {**COLUMNS, "numbers-high-1": ""}, "both ends of its range"),
        ("/columns", {**COLUMNS, "levels-levels-0": "yes\nyes"}, "yes"),
        ("/columns", dict.fromkeys(("kind-0", "kind-1", "kind-2", "kind-3"), "out"), "every column is left out"),
        ("/budget", {"epsilon": ""}, "how much may be spent"),
        ("/budget", {"epsilon": "-1"}, "-1"),
        ("/budget", {"epsilon": "1", "unit_column": "city"}, "how many rows of one"),
        (
            "/budget",
            {"epsilon": "1", "unit_column": "city", "max_rows": "0"},
            "“At most so many rows of one person” is a whole number of at least 1",
        ),
        ("/budget", {"epsilon": "1", "graph": "smoke -> smokes"}, "smokes"),
        ("/budget", {"epsilon": "1", "delta": "1e-6", "total": "3"}, "of all releases together, too"),
        ("/release", {"records": "5"}, "no release yet"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_typed_is_lost(
    guide: Guide, path: str, form: dict[str, str], said: str
) -> None:
    if path != "/file":
        guide.desk.say_data(guide.desk.folder / "rows.csv")
        if path != "/columns":
            send(guide, "/columns", **COLUMNS)
    before = {p.name: p.read_bytes() for p in guide.desk.folder.iterdir()}
    status, page = send(guide, path, **form)
    assert status == 200 and 'role="alert"' in page and said in page.replace("&#39;", "'")
    for key, value in form.items():
        if path in ("/columns", "/budget") and value not in ("", "out") and key not in ("total",):
            assert value.split("\n")[0].split(",")[0].strip() in page.replace("-&gt;", "->"), key
    after = {p.name: p.read_bytes() for p in guide.desk.folder.iterdir()}
    assert {k: v for k, v in after.items() if k != "run.toml"} == {k: v for k, v in before.items() if k != "run.toml"}
    assert b"smokes" not in after.get("run.toml", b"")


def test_what_is_spent_is_what_was_shown(guide: Guide, tmp_path: Path) -> None:
    """Another tab, or an editor, may have changed the files since the plan was shown."""
    send(guide, "/file", data="rows.csv")
    send(guide, "/columns", **COLUMNS)
    send(guide, "/budget", epsilon="1", relation="add-remove", then="plan")
    old = re.search(r'name="digest" value="(\w+)"', send(guide, "/plan")[1])
    assert old is not None
    run_file = tmp_path / "run.toml"
    run_file.write_text(run_file.read_text().replace("epsilon = 1", "epsilon = 10"))
    for said in ({"digest": old[1]}, {"go": "yes"}):
        status, page = send(guide, "/plan", **said)
        assert status == 200 and "another one than was shown" in page and "ε = 10" in page
    assert guide.running is None
    assert press(guide)[1].startswith("/release")
    finished(guide)


def test_what_fails_is_not_told(guide: Guide, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither to the browser nor in the terminal, whose output may be kept: a message may quote a private value."""

    def fail() -> None:
        raise ValueError("secret-17")

    guide.page.routes.get("/defect", callback=fail)
    status, said = send(guide, "/defect")
    assert status == 500 and "withheld" in said
    assert "secret" not in "".join((said, *capsys.readouterr()))


def test_a_form_of_a_wide_schema_is_read(guide: Guide) -> None:
    """Bottle's own limit is a hundred kilobytes."""
    send(guide, "/file", data="rows.csv")
    many = "\n".join(f"level number {i}" for i in range(10_000))
    assert send(guide, "/columns", **{**COLUMNS, "levels-levels-2": many})[1].startswith("/budget")


def test_a_refused_budget_spends_nothing_and_is_told(guide: Guide, tmp_path: Path) -> None:
    guide.desk.say_data(tmp_path / "rows.csv")
    send(guide, "/columns", **COLUMNS)
    Ledger.create(tmp_path / "ledger.db", PureDP(3)).close()
    guide.desk.say({"ledger": "ledger.db"})
    send(guide, "/budget", epsilon="5")
    press(guide)
    finished(guide)
    assert "That did not work" in (page := send(guide, "/release")[1]) and "does not suffice" in page
    assert not (tmp_path / "model.zip").exists()
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.spent is None


def test_the_page_speaks_of_its_fields_and_not_of_options(guide: Guide) -> None:
    guide.desk.say_data(guide.desk.folder / "rows.csv")
    send(guide, "/columns", **{**COLUMNS, "levels-levels-2": ""})  # levels are found, which needs a δ
    page = send(guide, "/budget", epsilon="1")[1]
    assert "say with δ 1e-6" in page and "--delta" not in page
    page = send(guide, "/plan")[1]
    assert "give the total as ε 1" in page and "--epsilon" not in page


def test_a_total_can_be_taken_back_until_something_is_spent(guide: Guide, tmp_path: Path) -> None:
    guide.desk.say_data(tmp_path / "rows.csv")
    send(guide, "/columns", **COLUMNS)
    for total in ("30", "", "3"):
        send(guide, "/budget", epsilon="1", total=total)
        assert ("ledger" in guide.desk.said()) == bool(total) and not (tmp_path / "ledger.db").exists()
    guide._total = None  # as after a new start of the page, which no ledger may get lost by
    send(guide, "/budget", epsilon="1", relation="add-remove")
    assert "say under Budget what all releases may spend together" in press(guide)[1] and guide.running is None
    send(guide, "/budget", epsilon="1", total="3")
    press(guide)
    finished(guide)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.total == PureDP(3) and ledger.spent is not None


def test_a_total_below_the_release_is_refused_before_anything_is_made(guide: Guide, tmp_path: Path) -> None:
    guide.desk.say_data(tmp_path / "rows.csv")
    send(guide, "/columns", **COLUMNS)
    for money in ({"epsilon": "1", "total": "0.5"},
                  {"epsilon": "1", "delta": "1e-6", "total": "3", "total_delta": "1e-9"}):  # fmt: skip
        status, page = send(guide, "/budget", **money, then="plan")
        assert status == 200 and "give a larger total" in page
        assert "epsilon" not in guide.desk.said() and "ledger" not in guide.desk.said()
    assert not (tmp_path / "ledger.db").exists()


def test_what_was_guessed_and_what_needs_a_delta_is_said(guide: Guide, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("day,city\n" + "".join(f"2024-01-{i % 28 + 1:02},c{i % 3}\n" for i in range(60)))
    guide.desk.say_data(tmp_path / "rows.csv")
    assert 'id="guesses"' not in send(guide, "/columns")[1]
    send(guide, "/look", yes="1")
    page = send(guide, "/columns")[1]
    assert "no more than a guess" in page and "day: the years 1900 to 2099" in page and "taken for absent" in page
    assert "needed, as the levels of city are found privately" in send(guide, "/budget")[1]


def test_comments_and_what_the_page_cannot_show_are_kept(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b,c\nx,1,2\n")
    (tmp_path / "schema.toml").write_text(
        'version = 1\n# of the code book\n[columns.a]\nlevels = ["x", "y"]  # as printed\n[columns.b]\n'
        'edges = [0, 1, 2]\nheaps = [1]\n[[impossible]]\na = "x"\nb = "1"\n'
    )
    (tmp_path / "run.toml").write_text("# of March\nepsilon = 0.5 # half\n")
    desk = Desk(tmp_path)
    desk.say_data(tmp_path / "rows.csv")
    a, b, c = desk.columns()
    assert (a.kind, b.kind, c.kind) == ("levels", "kept", "out") and "heaps" in b.text
    before = desk.schema.read_text()
    desk.say_columns([a, b, c])
    assert desk.schema.read_text() == before
    desk.say_columns([a, b, Column("c", "levels", {"levels": "1\n2"})])
    text = desk.schema.read_text()
    assert (
        "# of the code book" in text and "# as printed" in text and "heaps = [1]" in text and "[[impossible]]" in text
    )
    assert tomllib.loads(text)["columns"]["c"] == {"levels": [1, 2]}
    desk.say({"delta": "1e-6"})
    text = desk.run.read_text()
    assert "# of March" in text and "epsilon = 0.5 # half" in text and desk.said()["delta"] == "1e-06"
    with pytest.raises(DiscreetError, match="no number"):
        desk.say_columns([Column("b", "numbers", {"edges": "0, x"})])
    assert tomllib.loads(desk.schema.read_text())["columns"]["b"]["heaps"] == [1]


def test_in_a_browser_from_end_to_end(guide: Guide, browser, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select, WebDriverWait

    def find(css: str):
        return browser.find_element(By.CSS_SELECTOR, css)

    def on(step: str) -> None:
        WebDriverWait(browser, 30).until(lambda b: f"/{step}?" in b.current_url)

    browser.set_window_size(1400, 1000)
    browser.get(guide.page.address)
    find("#data").send_keys("rows.csv")
    find("button.main").click()
    on("columns")
    Select(find("#all-kinds")).select_by_value("levels")
    assert find("[name=levels-levels-0]").is_displayed() and not find("[name=numbers-low-0]").is_displayed()
    find("[name=levels-levels-0]").send_keys("yes\nno")
    find("[name=levels-levels-2]").send_keys("Ulm\nBonn")
    Select(find("#kind-1")).select_by_value("numbers")
    Select(find("#kind-3")).select_by_value("out")
    for name, text in (("low", "0"), ("high", "100"), ("bins", "5")):
        find(f"[name=numbers-{name}-1]").send_keys(text)
    find("button.main").click()
    on("budget")
    find("[name=epsilon]").send_keys("1")
    find("[name=total]").send_keys("3")
    find("button.main").click()
    WebDriverWait(browser, 60).until(lambda b: b.find_elements(By.ID, "buys"))
    assert len(browser.find_elements(By.CSS_SELECTOR, "#buys tr.own")) == 1
    find("button.main[value=plan]").click()
    on("plan")
    find("button.main").click()
    on("release")
    WebDriverWait(browser, 60).until(lambda b: b.find_elements(By.ID, "files"))
    assert {e.text for e in browser.find_elements(By.CSS_SELECTOR, "#files a")} == {
        "model.zip", "model.html", "model.yaml", "run.toml", "schema.toml"
    }  # fmt: skip
    assert all(e.text for e in browser.find_elements(By.CSS_SELECTOR, "#files .soft")), "each says what it is"
    for width in (1400, 420):
        browser.set_window_size(width, 1000)
        for step in ("file", "columns", "budget", "plan", "release"):
            browser.get(guide.page.at(f"/{step}"))
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (step, width)
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path, signalled: signal.Signals) -> None:
    (tmp_path / "rows.csv").write_text("a,b\nx,y\n")
    command = [sys.executable, "-m", "discreet", "start", "rows.csv", "--no-open", "--json"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    said = json.loads("".join(iter(running.stdout.readline, "}\n")) + "}")
    with urllib.request.urlopen(said["address"], timeout=30) as page:
        assert "What is publicly known about the columns?" in page.read().decode()
    running.send_signal(signalled)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 0 and err.endswith("Ended.\n"), err


def test_an_interrupted_fit_is_rescued_as_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes in the thread that spends, while the answers are made a model of."""
    (tmp_path / "rows.csv").write_text(ROWS)
    guide = Guide(Desk(tmp_path))
    guide.desk.say_data(tmp_path / "rows.csv")
    guide.say_columns(COLUMNS)
    guide.say_budget({"epsilon": "1", "total": "3"})

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Release, "of", interrupt)
    shown = {"digest": guide._digest(guide.desk.prepared())}
    assert guide.begin(shown) == guide.begin(shown) == "release"
    guide.serve()  # ends by the interrupt
    assert guide.running is not None and guide.running.ended
    assert "interrupted after the budget was charged" in guide.running.problem and "rescue" in guide.running.problem
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.spent is not None
    assert [p for p in tmp_path.iterdir() if "rescue" in p.name]
