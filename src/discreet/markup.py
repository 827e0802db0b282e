"""Small tables of HTML for notebooks. Everything is escaped: names and labels may come from anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 40


def table(
    caption: str,
    headings: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
    notes: Iterable[str] = (),
    *,
    labels: int = 1,
) -> str:
    """A caption, a table of which the first ``labels`` columns are words and the others numbers, and notes below it."""
    lines = [list(map(str, row)) for row in rows]
    out = [f"<div><p><strong>{_text(caption)}</strong></p>"]
    if lines:
        out.append("<table>")
        if headings:
            cells = (f"<th style='text-align:{_side(i, labels)}'>{_text(h)}</th>" for i, h in enumerate(headings))
            out.append(f"<thead><tr>{''.join(cells)}</tr></thead>")
        out.append("<tbody>")
        for line in lines[:MOST_ROWS]:
            cells = (f"<td style='text-align:{_side(i, labels)}'>{_text(cell)}</td>" for i, cell in enumerate(line))
            out.append(f"<tr>{''.join(cells)}</tr>")
        out.append("</tbody></table>")
    left = [f"… and {len(lines) - MOST_ROWS:,} more"] if len(lines) > MOST_ROWS else []
    out += [f"<p>{_text(note)}</p>" for note in (*left, *notes) if note]
    return "".join([*out, "</div>"])


def _side(column: int, labels: int) -> str:
    return "left" if column < labels else "right"


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")
