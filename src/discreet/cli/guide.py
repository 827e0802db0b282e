"""The page of `discreet start`: what it shows, what it writes down, and the fit that it may start.

Whatever is said there stands in a schema and a run file in the folder (``desk.py``), and the command line takes both.
Only the total of a ledger that is yet to be made is kept here, until something is spent.
The server answers in threads of its own; what reads rows and spends runs in the thread of the command, as it does in
`discreet fit`, so that Ctrl-C rescues what was bought.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

from bottle import HTTPResponse, request

from ..errors import DiscreetError
from ..program import program
from ..report import local
from ..report.pages import resource, template
from . import options, views
from .console import note
from .desk import Desk
from .failures import Interrupted, WrongUse, in_words
from .fit import order_of, work_of
from .forms import WHOLE, as_said, on_the_page, total_of, typed_column, whole
from .prepared import Prepared
from .spending import open_ledger, spend

if TYPE_CHECKING:
    from ..release import Release

STEPS = {"file": "1 Rows", "columns": "2 Columns", "budget": "3 Budget", "plan": "4 Plan", "release": "5 Release"}
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
MOST_RECORDS = 1_000_000
_WHAT = {
    ".zip": "the release: the model, its card and the noisy tables behind it",
    ".html": "a page about it for everybody",
    ".yaml": "its card, for a registry",
    ".csv": "synthetic records",
    ".toml": "what was said here, for the command line",
}
"""Of the files that are made here, by their endings."""
_BUDGET = ("epsilon", "delta", "unit_column", "max_rows", "relation", "approximate_size", "graph", "target")
LARGEST_FORM = 1 << 22  # a schema of some thousand columns


@dataclass
class Running:
    """A fit on its way, as far as the page shows it. All of it public: names of steps, and what the account says."""

    step: str = "reading the rows"
    done: int = 0
    total: int = 1
    left: float = 1.0
    ended: bool = False
    problem: str = ""
    told: list[str] = field(default_factory=list)
    good: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def hear(self, label: str, done: int, total: int) -> None:
        self.step, self.done, self.total = label, done, max(total, 1)

    def hear_step(self, name: str, done: int, total: int, left: float) -> None:
        self.hear(name, done, total)
        self.left = left

    def shown(self) -> dict[str, Any]:
        part = 100.0 if self.ended else 100 * self.done / self.total
        return {"step": self.step, "part": part, "left": f"{100 * self.left:.0f} %", "ended": self.ended}


class Guide:
    """The page, the folder that it writes to, and the fit that it may start."""

    def __init__(self, desk: Desk, port: int = 0) -> None:
        self.desk = desk
        self.page = local.LocalPage("start", port, LARGEST_FORM)
        self.running: Running | None = None
        self._total: tuple[str, str | None] | None = None  # ε and δ of a ledger that is made when the first fit begins
        self._jobs: Queue[Callable[[], None]] = Queue()
        self._one_at_a_time = threading.Lock()
        routes = self.page.routes
        routes.get("/", callback=lambda: self._go(self._next()))
        for step in STEPS:
            routes.get(f"/{step}", callback=lambda step=step: self.show(step))
        said = {"file": self.say_file, "columns": self.say_columns, "look": self.look, "budget": self.say_budget}
        for step, hear in {**said, "plan": self.begin, "release": self.sample}.items():
            routes.post(f"/{step}", callback=lambda step=step, hear=hear: self.hear(step, hear))
        routes.get("/progress", callback=self.progress)
        routes.get("/download/<name>", callback=self.download)

    def end(self) -> None:
        """Have :meth:`serve` return, once what it does is done."""

        def stop() -> None:
            raise KeyboardInterrupt

        self._jobs.put(stop)

    def serve(self) -> None:
        """Answer until Ctrl-C; do what spends here, in the thread of the command."""
        threading.Thread(target=self.page.serve, daemon=True).start()
        try:
            while True:
                self._jobs.get()()
        except KeyboardInterrupt:
            return
        finally:
            self.page.close()

    # -- pages ---------------------------------------------------------------------------------------------------------

    def show(self, step: str, problem: str = "", typed: Mapping[str, str] | None = None) -> Any:
        facts: dict[str, Any] = {}
        try:
            facts = {"file": self._file, "columns": self._columns, "budget": self._budget, "plan": self._plan,
                     "release": self._release}[step](typed or {})  # fmt: skip
        except (DiscreetError, OSError) as error:
            problem = problem or on_the_page(error)
        nonce = secrets.token_urlsafe(12)
        html = template("start.html.j2", __package__).render(
            step=step, steps=STEPS, problem=problem, nonce=nonce, token=self.page.token, facts=facts,
            style=resource("style.css"), script=resource("start.js", __package__), run=str(self.desk.run),
            program=program(),
            folder=str(self.desk.folder.resolve()),
        )  # fmt: skip
        return local.page(html, nonce, forms=True)

    def hear(self, step: str, take: Callable[[Mapping[str, str]], str]) -> Any:
        """What was sent with a form: on to the page that follows, or the same one with what is wrong."""
        typed = {name: request.forms.getunicode(name) or "" for name in request.forms}
        try:
            with self._one_at_a_time:
                after = take(typed)
        except Exception as error:
            return self.show("columns" if step == "look" else step, on_the_page(error), typed)
        return self._go(after)

    def _go(self, step: str) -> Any:
        return HTTPResponse(b"", 303, {"Location": f"/{step}?token={self.page.token}"})

    def _next(self) -> str:
        """The first page on which something is still to be said."""
        said = self.desk.said()
        if self.running is not None:
            return "release"
        if "data" not in said:
            return "file"
        return "columns" if not self.desk.schema.exists() else "budget" if "epsilon" not in said else "plan"

    # -- 1: the rows ---------------------------------------------------------------------------------------------------

    def _file(self, typed: Mapping[str, str]) -> dict[str, Any]:
        data = typed.get("data") or str(self.desk.said().get("data", ""))
        beside = sorted(p.name for p in self.desk.folder.iterdir() if p.suffix.lower() in (".csv", ".parquet"))
        return {"data": data, "beside": beside}

    def say_file(self, typed: Mapping[str, str]) -> str:
        if not typed.get("data", "").strip():
            raise WrongUse("name the file with the rows")
        path = Path(typed["data"].strip()).expanduser()
        self.desk.say_data(path if path.is_absolute() or path.exists() else self.desk.folder / path)
        return "columns"

    # -- 2: the columns ------------------------------------------------------------------------------------------------

    def _columns(self, typed: Mapping[str, str]) -> dict[str, Any]:
        columns = self.desk.columns()
        if typed:
            columns = [typed_column(i, column, typed) for i, column in enumerate(columns)]
        return {"columns": columns, "guesses": self.desk.guesses(), "is_new": not self.desk.schema.exists()}

    def say_columns(self, typed: Mapping[str, str]) -> str:
        self.desk.say_columns(typed_column(i, column, typed) for i, column in enumerate(self.desk.columns()))
        return "budget"

    def look(self, typed: Mapping[str, str]) -> str:
        """Have the kinds of the columns drafted by looking at the rows. Outside the guarantee, as the page says."""
        from ..io.atomic import write_atomically
        from ..tables.draft import draft_schema
        from . import rows

        if self.desk.schema.exists():
            raise WrongUse(f"{self.desk.schema} is there already, and is not written over; edit it, or move it away")
        drafted = draft_schema(rows.open_one(self.desk.data(), options.Text()), private=True)
        write_atomically(self.desk.schema, [drafted.text().encode("utf-8")])
        return "columns"

    # -- 3: whom to protect, and how much ------------------------------------------------------------------------------

    def _budget(self, typed: Mapping[str, str]) -> dict[str, Any]:
        said = {**{key: str(self.desk.said().get(key, "")) for key in _BUDGET}, **typed}
        if self._total is not None:
            said = {"total": self._total[0], "total_delta": self._total[1] or "", **said}
        ledger = self.desk.said().get("ledger")
        facts: dict[str, Any] = {"said": said, "names": self.desk.header(), "ledger": None, "buys": None}
        with suppress(DiscreetError, OSError):  # a schema that cannot be read is told of where it is used
            facts["open_levels"] = [a.name for a in self.desk.domain().sought if a.sought and a.sought.what == "levels"]
        if ledger is not None and Path(ledger).exists():
            account = open_ledger(Path(ledger))
            assert account is not None
            with account:
                left = account.remaining
                facts["ledger"] = {"file": str(ledger), "total": str(account.total), "left": str(left or "nothing")}
        if not typed and said["epsilon"]:
            facts["buys"] = _buys(self.desk.prepared())
        return facts

    def say_budget(self, typed: Mapping[str, str]) -> str:
        if not typed.get("epsilon", "").strip():
            raise WrongUse("say how much may be spent on this release: ε, such as 1")
        said: dict[str, Any] = {key: typed.get(key, "").strip() or None for key in _BUDGET}
        for key, name in WHOLE.items():
            if said[key] is not None:
                said[key] = whole(said[key], name)
        if said["unit_column"] is None:
            said["max_rows"] = None
        elif said["max_rows"] is None:
            raise WrongUse(f"say how many rows of one “{said['unit_column']}” may count")
        before = self.desk.said()
        total = total_of(typed, options.budget_from(said["epsilon"], said["delta"], None))
        if total is not None and "ledger" not in before:
            said["ledger"] = "ledger.db"
        elif total is None and self._total is not None and not self._ledger.exists():
            said["ledger"] = None  # it was asked for, and is not any more
        self.desk.say(said)
        try:
            self.desk.prepared()
        except Exception:
            self.desk.say({key: as_said(before, key) for key in (*_BUDGET, "ledger") if key in said})
            raise  # what was there still works
        self._total = total
        return "plan" if typed.get("then") == "plan" else "budget"

    @property
    def _ledger(self) -> Path:
        """The ledger that the run file names, there or not yet."""
        return Path(self.desk.said().get("ledger", self.desk.folder / "ledger.db"))

    def _make_ledger(self, prepared: Prepared) -> None:
        """Its total is for good, so it is made when something is spent and not before."""
        from ..privacy.ledger import Ledger

        place = prepared.choices.ledger
        if place is None or place.exists():
            return
        if self._total is None:
            raise WrongUse(
                f"the ledger {place} is not there yet: say under Budget what all releases may spend together"
            )
        with Ledger.create(place, options.budget_from(*self._total, None)):
            pass

    # -- 4: the plan ---------------------------------------------------------------------------------------------------

    def _plan(self, typed: Mapping[str, str]) -> dict[str, Any]:
        from ..forecasts import cost_forecast
        from ..report import words

        prepared = self.desk.prepared()
        procedure = prepared.procedure
        weak = words.weak_protection(procedure.budget)
        peeked = bool(prepared.domain.peeked)
        ledger = prepared.choices.ledger
        is_new = ledger is not None and not ledger.exists()
        return {
            "what": str(prepared.spec),
            "budget": str(procedure.budget),
            "steps": procedure.to_dict()["steps"],
            "plan": "\n".join((*str(procedure).splitlines(), *words.clipping(procedure.unit))),
            "forecast": cost_forecast(prepared.spec, prepared.domain.forecast, procedure).lines(),
            "weak": weak or "",
            "peeked": peeked,
            "ledger": str(ledger or ""),
            "total": str(options.budget_from(*self._total, None)) if self._total and is_new else "",
            "data": str(self.desk.data()),
            "digest": self._digest(prepared),
        }

    def _digest(self, prepared: Prepared) -> str:
        """Of all that would be spent on what, by which a plan that was shown is known again."""
        said = (prepared.spec, prepared.procedure, prepared.choices.ledger, self.desk.data(), prepared.domain.to_dict())
        return hashlib.sha256("\0".join(map(str, said)).encode()).hexdigest()[:32]

    def begin(self, typed: Mapping[str, str]) -> str:
        """Hand the fit to the thread that spends. Pressed twice, it is one fit; and it is the plan that was shown,
        whoever has edited the files since."""
        if self.running is not None and not self.running.ended:
            return "release"
        prepared = self.desk.prepared()
        if typed.get("digest") != self._digest(prepared):
            raise WrongUse("the plan is another one than was shown when you pressed the button; this is how it is now")
        self._make_ledger(prepared)
        output = self.desk.free("model.zip")
        self.running = running = Running()
        self._jobs.put(lambda: self._fit(prepared, output, running))
        return "release"

    def _fit(self, prepared: Prepared, output: Path, running: Running) -> None:
        from ..progress import listening

        @contextmanager
        def watch() -> Iterator[None]:
            with listening(running.hear, running.hear_step):
                yield

        def tell(release: Release) -> None:
            from ..report import words

            running.told, running.good = views.statement_lines(release.card), words.how_good(release.card)
            running.files.append(output)

        try:
            order = order_of(prepared, self.desk.data(), output, run=self.desk.run)
            spend(order, lambda: None, work_of(prepared, tell), watch)
            running.step = "writing the report"
            running.files += _beside(output)
            note(f"Released: {output}.")
        except (Exception, KeyboardInterrupt) as error:
            running.problem = on_the_page(error)
            note(f"discreet: {in_words(error)[0]}")
            if isinstance(error, KeyboardInterrupt | Interrupted):
                raise KeyboardInterrupt from None
        finally:
            running.ended = True

    # -- 5: the release ------------------------------------------------------------------------------------------------

    def _release(self, typed: Mapping[str, str]) -> dict[str, Any]:
        running = self.running
        if running is None:
            return {"running": None}
        made = [path for path in (*running.files, self.desk.run, self.desk.schema) if path.exists()]
        files = [(path.name, _WHAT.get(path.suffix, "")) for path in made]
        return {
            "running": running,
            "shown": running.shown(),
            "files": files,
            "model": str(next(iter(running.files), "")),
        }

    def progress(self) -> Any:
        return local.say({"ended": True} if self.running is None else self.running.shown())

    def sample(self, typed: Mapping[str, str]) -> str:
        from ..release import Release

        running = self.running
        if running is None or not running.files:
            raise WrongUse("there is no release yet to draw records from")
        n = whole(typed.get("records", "").strip() or "1000", "the number of records")
        if n > MOST_RECORDS:
            raise WrongUse(f"at most {MOST_RECORDS:,} records are drawn here; `discreet sample` draws more")
        place = self.desk.free("synthetic.csv")
        Release.load(running.files[0]).model.sample(n).to_csv(place)
        running.files.append(place)
        return "release"

    def download(self, name: str) -> Any:
        """A file that was made here, and no other."""
        made = [*(self.running.files if self.running else ()), self.desk.run, self.desk.schema]
        found = next((path for path in made if path.name == name and path.exists()), None)
        if found is None:
            return local.say({"problem": "there is no such file"}, 404)
        kept = "".join(c for c in name if c.isalnum() or c in "._- ")
        return HTTPResponse(
            found.read_bytes(),
            200,
            {"Content-Type": "application/octet-stream", "Content-Disposition": f'attachment; filename="{kept}"'},
        )


def _beside(output: Path) -> list[Path]:
    """A report and a card beside a release, at no cost."""
    from ..io.atomic import write_atomically
    from ..release import Release
    from ..report.card import card_yaml
    from ..report.page import report_html
    from ..report.pages import write_report
    from .query import affordable_intervals

    release = Release.load(output)
    text = card_yaml(release)
    html = report_html(
        release.model, card_text=text, intervals=affordable_intervals(release, 0.9), measurements=release.measurements,
        file=output.name, graph_was_found=release.graph_was_found, spec=release.spec,
    )  # fmt: skip
    page, card = output.with_suffix(".html"), output.with_suffix(".yaml")
    write_report(page, html)
    write_atomically(card, [text.encode()])
    return [page, card]


def _buys(prepared: Prepared) -> dict[str, Any] | None:
    """Expected error at more and less than this ε; nothing where it cannot be forecast."""
    from ..learn.error_curve import scaled_budget
    from ..sweeps import SIZES, sweep

    procedure = prepared.procedure
    own = float(procedure.budget.epsilon)  # type: ignore[attr-defined]
    size = prepared.public_size or prepared.choices.approximate_size
    try:
        found = sweep(
            prepared.spec, prepared.domain, procedure.unit, procedure.budget,
            amounts=tuple(float(scaled_budget(procedure.budget, own * f).epsilon) for f in FACTORS),  # type: ignore[attr-defined]
            sizes=(size,) if size else SIZES[:3],
        )  # fmt: skip
    except DiscreetError as error:
        return {"problem": on_the_page(error)}
    rows = [(row, abs(amount - own) < 1e-12) for row, amount in zip(found.rows(), found.amounts, strict=True)]
    return {"headings": found.headings, "rows": rows, "what": found.what}
