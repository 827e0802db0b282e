"""A schema from metadata that somebody has written: Frictionless, SDV, the domains of mbi, dtypes of pandas.

No row is read. What the metadata say of levels and bounds is taken over; what they leave open is left to be found
privately (docs/columns.md). That is public only as far as the metadata are: a file that a program has made by looking
at the rows tells of them, and where that shows (pandas categories), it is marked as peeked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from .domain import Attribute, Domain
from .errors import InputError, SchemaError, did_you_mean
from .schema import free_label, schema_text

MOST_LISTED = 32  # whole numbers between public ends that are levels, one by one; as many as private bins may be
MOST_CODES = 100_000  # levels that a size stands for: a number in a file must not fill the memory
_FOUND_BINS = "its bins are found privately, within the range that the metadata give"
_FOUND_RANGE = "the metadata give no range: bins and range are found privately; say range = [0, 120] if you know it"
_FOUND_LEVELS = (
    'the metadata list no levels: they are found privately, which needs a delta; say levels = ["a", "b"] if known'
)
_NO_ENDS = (
    "dates need a first and a last day, which cannot be found privately and are not in the metadata: say "
    'dates = {from = 2019-01-01, to = 2024-12-31, by = "month"}'
)
_IDENTIFIER = "its values are unique to a row, or tell who somebody is"
_SDV_KINDS = {"numerical": "number", "categorical": "string", "boolean": "boolean", "datetime": "datetime"}
_DTYPES = {
    "integer": ("int", "uint"),
    "number": ("float", "double", "decimal"),
    "boolean": ("bool",),
    "string": ("object", "str", "category", "large_string"),
    "datetime": ("datetime", "date", "timestamp"),
}
_HEADER = """\
# From {source}. Nothing was read from rows. The metadata must be public knowledge themselves: what a program has found
# in the private rows (a profile, SDV's detected metadata, limits that it computed) is not, and belongs replaced by what
# you know, or marked: peeked = ["levels"].
"""


@dataclass(frozen=True)
class Imported:
    """A domain, a comment a column on where it comes from, and the columns that were left out with the reason."""

    domain: Domain
    source: str
    comments: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """The schema file."""
        lines = [_HEADER.format(source=self.source), schema_text(self.domain, self.comments)]
        if self.left_out:
            lines += ["# Left out. Declare a column above if it should be used."]
            lines += [f"#   {_one_line(name)}: {reason}" for name, reason in self.left_out.items()]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Field:
    """A column as all of these formats have it."""

    name: str
    kind: str
    levels: tuple[Any, ...] = ()
    low: Any = None
    high: Any = None
    required: bool = False
    unique: bool = False
    absent: tuple[str, ...] = ()
    format: str = ""
    peeked: bool = False


def import_schema(document: Any, table: str | None = None) -> Imported:
    """A schema from parsed metadata: ``import_schema(json.load(open("datapackage.json")))``.

    A Frictionless table schema or data package, SDV metadata of one table or of several, a domain of mbi, which says
    how many levels a column has (``{"age": 85}``: the codes 0 to 84), or a mapping from columns to dtypes:
    ``import_schema(frame.dtypes.to_dict())``. ``table`` says which one, where there are several.
    """
    if not isinstance(document, Mapping) or not document:
        raise SchemaError("metadata are an object: a Frictionless table schema, SDV metadata, or columns and dtypes")
    if "resources" in document:
        document = _one_resource(document["resources"], table)
    if isinstance(document.get("schema"), Mapping):  # a resource, or what pandas writes with orient="table"
        document = document["schema"]
    if isinstance(document.get("fields"), list):
        return _made("a Frictionless table schema", _frictionless(document))
    if isinstance(document.get("tables"), Mapping):
        name = _chosen(list(document["tables"]), table)
        return _made("SDV metadata", _sdv(document["tables"][name]))
    if isinstance(document.get("columns"), Mapping):
        return _made("SDV metadata", _sdv(document))
    if all(isinstance(n, str) and type(size) is int for n, size in document.items()):
        return _made("a domain of mbi", [_of_size(name, size) for name, size in document.items()])
    if all(isinstance(n, str) and not isinstance(d, Mapping | list | None) for n, d in document.items()):
        return _made("the dtypes of a frame", [_of_dtype(name, dtype) for name, dtype in document.items()])
    raise SchemaError(
        "these metadata are none of those that can be read: a Frictionless table schema has fields, SDV metadata have "
        "columns or tables, a domain of mbi is a mapping such as {'age': 85}, and dtypes one such as {'age': 'int64'}"
    )


# -- reading -----------------------------------------------------------------------------------------------------------


def _one_resource(resources: Any, table: str | None) -> Any:
    found = [r for r in resources if isinstance(r, Mapping)] if isinstance(resources, list) else []
    names = [str(r.get("name", number)) for number, r in enumerate(found, start=1)]
    chosen = found[names.index(_chosen(names, table))]
    if not isinstance(chosen.get("schema"), Mapping):
        raise SchemaError("the schema of this resource is not in the data package; name the file of the schema itself")
    return chosen


def _chosen(names: list[str], table: str | None) -> str:
    if table is None and len(names) == 1:
        return names[0]
    if table is None or table not in names:
        hint = did_you_mean(table or "", names)
        raise InputError(
            "the metadata are of several tables; say which one" + hint if table is None else f"no table {table!r}{hint}"
        )
    return table


def _frictionless(document: Mapping[str, Any]) -> list[_Field]:
    keys = document.get("primaryKey", [])
    key = [keys] if isinstance(keys, str) else list(keys)
    fields = []
    for entry in document["fields"]:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise SchemaError("every field of a table schema is an object with a name")
        limits = entry.get("constraints") or {}
        listed = [
            c["value"] if isinstance(c, Mapping) else c for c in entry.get("categories") or limits.get("enum") or ()
        ]
        kind = str(entry.get("type", "any"))
        if kind == "boolean" and not listed:
            listed = _words(entry)
        absent = entry.get("missingValues", document.get("missingValues", ()))
        form = str(entry.get("format", ""))
        fields.append(
            _Field(
                entry["name"],
                kind,
                tuple(listed),
                limits.get("minimum"),
                limits.get("maximum"),
                bool(limits.get("required")),
                bool(limits.get("unique")) or key == [entry["name"]],
                tuple(w for word in absent if (w := word["value"] if isinstance(word, Mapping) else word)),
                form if "%" in form else "",
                peeked="pandas_version" in document,  # whose categories are what the rows held
            )
        )
    return fields


def _words(entry: Mapping[str, Any]) -> list[str]:
    """The words of a boolean column, where there is one for each and it is not the usual one."""
    said = [entry.get(key) for key in ("falseValues", "trueValues")]
    return [word for several in said for word in several] if all(s and len(s) == 1 for s in said) else []  # type: ignore[union-attr]


def _sdv(table: Any) -> list[_Field]:
    if not isinstance(table, Mapping) or not isinstance(table.get("columns"), Mapping):
        raise SchemaError("SDV metadata of a table have columns")
    fields = []
    for name, entry in table["columns"].items():
        said = str(entry.get("sdtype", "unknown")) if isinstance(entry, Mapping) else "unknown"
        form = str(entry.get("datetime_format", "")) if isinstance(entry, Mapping) else ""
        kind = _SDV_KINDS.get(said, "")
        whole = kind == "number" and "int" in str(entry.get("computer_representation", "")).lower()
        order = tuple(entry.get("order") or ()) if kind == "string" else ()
        personal = not kind or bool(entry.get("pii")) or name == table.get("primary_key")
        fields.append(_Field(name, "integer" if whole else kind, order, unique=personal, format=form))
    return fields


def _of_size(name: str, size: int) -> _Field:
    if not 0 < size <= MOST_CODES:
        raise SchemaError(f"column {name!r}: a domain of mbi says from 1 to {MOST_CODES:,} levels, got {size:,}")
    return _Field(name, "integer", tuple(range(size)), required=True)  # codes have none for what is absent


def _of_dtype(name: str, dtype: Any) -> _Field:
    text = str(dtype).lower()
    kind = next((kind for kind, words in _DTYPES.items() if text.startswith(words)), "")
    listed = getattr(dtype, "categories", None)
    levels = () if listed is None else tuple(listed.tolist() if hasattr(listed, "tolist") else listed)
    required = str(dtype).startswith(("int", "uint", "bool")) and str(dtype) != "boolean"  # which have no missing value
    return _Field(name, kind, levels, required=required, peeked=bool(levels))


# -- columns -----------------------------------------------------------------------------------------------------------


def _made(source: str, fields: list[_Field]) -> Imported:
    attributes, comments, left_out = [], {}, {}
    for column in fields:
        entry, comment = _entry(column)
        if entry is None:
            left_out[column.name] = comment
            continue
        attributes.append(Attribute.from_dict(column.name, {**entry, **_absent(column, entry)}))
        if comment:
            comments[column.name] = comment
    if not attributes:
        reasons: dict[str, list[str]] = {}
        for name, reason in left_out.items():
            reasons.setdefault(reason, []).append(name)
        said = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        raise SchemaError(f"no column of these metadata can be used: {said}")
    return Imported(Domain(tuple(attributes)), source, comments, left_out)


def _entry(column: _Field) -> tuple[dict[str, Any] | None, str]:
    """The section of the schema, and a word about it; or None, and why the column is left out."""
    if column.levels:
        levels = _plain_levels(column)
        peeked = {"peeked": ["levels"]} if column.peeked else {}
        said = (
            "the categories of the frame, which are those of its rows" if column.peeked else "as the metadata list them"
        )
        return {"levels": levels, **peeked}, said
    if column.unique:
        return None, _IDENTIFIER
    if column.kind == "boolean":
        return {"levels": [False, True], "ignore_case": True}, ""
    if column.kind in ("integer", "number", "year"):
        return _numbers(column)
    if column.kind in ("date", "datetime"):
        return _dates(column)
    if column.kind == "string":
        return {"levels": "discover"}, _FOUND_LEVELS
    of_type = f"of type {column.kind!r}" if column.kind else "of a type that is not stated or not known"
    return None, f"what is {of_type} has no levels to count"


def _plain_levels(column: _Field) -> list[Any]:
    """Whole numbers as numbers, truth as truth, all else as text; the first spelling of equal ones."""
    if column.kind == "integer" and all(
        type(v) is int or (type(v) is str and v.lstrip("-").isdigit()) for v in column.levels
    ):
        return list(dict.fromkeys(map(int, column.levels)))
    if all(type(v) is bool for v in column.levels) or all(type(v) is int for v in column.levels):
        return list(dict.fromkeys(column.levels))
    return list(dict.fromkeys(str(v) for v in column.levels))


def _numbers(column: _Field) -> tuple[dict[str, Any], str]:
    whole = column.kind in ("integer", "year")
    kind = {"integer": True} if whole else {}
    low, high = _number(column.low, whole), _number(column.high, whole)
    if low is None or high is None or not low < high:
        return {"bins": "private", "range": "private", **kind}, _FOUND_RANGE
    if whole and high - low < MOST_LISTED:
        return {"levels": list(range(int(low), int(high) + 1))}, "the whole numbers that the metadata allow"
    return {"bins": "private", "range": [low, high], **kind}, _FOUND_BINS


def _number(value: Any, whole: bool) -> float | int | None:
    try:
        number = float(value)
        return int(number) if whole and number.is_integer() else None if whole else number
    except (TypeError, ValueError, OverflowError):
        return None


def _dates(column: _Field) -> tuple[dict[str, Any] | None, str]:
    try:
        first, last = (date.fromisoformat(str(end)[:10]) for end in (column.low, column.high))
    except ValueError:
        return None, _NO_ENDS
    days = (last - first).days  # so many periods that a table of them is not too large
    by = "day" if days <= 60 else "month" if days <= 3 * 366 else "quarter" if days <= 12 * 366 else "year"
    written = {"format": column.format} if column.format else {}
    return {"dates": {"from": first, "to": last, "by": by, **written}}, f"between the days of the metadata, by {by}"


def _absent(column: _Field, entry: Mapping[str, Any]) -> dict[str, Any]:
    """A level for absent values unless the metadata rule them out, and the words that stand for one."""
    words = {"missing_values": list(column.absent)} if column.absent else {}
    if column.required:
        return words
    taken = [str(level) for level in entry["levels"]] if isinstance(entry.get("levels"), list) else []
    return {"missing": free_label("missing", taken), **words}


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
