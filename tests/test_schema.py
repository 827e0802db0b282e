"""The schema file: exact round trips whatever the names, and errors that a statistician can act on."""

import os
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Attribute, Domain
from discreet.errors import SchemaError
from discreet.schema import load_schema, parse_schema, save_schema, schema_text

ODD = ["a.b", 'say "hi"', "back\\slash", "#no comment", "new\nline", "\r\n", "\t", "\x00", "\x7f", "[x]", "'"]
ODD += ['"""', "é", "日本", "\u2028"]
odd_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12) | st.sampled_from(ODD)
levels = (
    st.lists(odd_text, min_size=1, max_size=5, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5, unique=True)
    | st.just([True, False])
)
finite = st.floats(allow_nan=False, allow_infinity=False)
edges = st.lists(finite | st.integers(-(10**6), 10**6), min_size=2, max_size=6, unique_by=float).map(
    lambda values: sorted(values, key=float)
)


@st.composite
def attributes(draw):
    name = draw(odd_text)
    peeked = draw(st.frozensets(st.sampled_from(["levels", "edges", "missing"])))
    missing, other = draw(st.none() | st.just("(missing)")), draw(st.none() | st.just("(other)"))
    if draw(st.booleans()):
        return Attribute.numeric(name, draw(edges), missing=missing, other=other, peeked=peeked)
    plain = Attribute.categorical(name, draw(levels), missing=missing, other=other, peeked=peeked)
    return Attribute.categorical(
        name, plain.levels, missing=missing, other=other, peeked=peeked, outside=draw(st.sampled_from(plain.labels))
    )


domains = st.lists(attributes(), min_size=1, max_size=5, unique_by=lambda a: a.name).map(lambda a: Domain(tuple(a)))


@settings(deadline=None)
@given(domains, st.dictionaries(odd_text, odd_text))
def test_round_trip_is_exact(domain, comments):
    comments = {**comments, domain.names[0]: "a comment\nin \x00 two \r lines [columns.x]"}
    back = parse_schema(schema_text(domain, comments))
    assert back == domain
    assert back.names == domain.names
    assert back.fingerprint == domain.fingerprint
    assert [a.levels for a in back.attributes] == [a.levels for a in domain.attributes]


def test_the_file_says_what_the_domain_says(tmp_path):
    domain = Domain.of(
        {
            "smoke": ["yes", "no"],
            "age": Attribute.numeric("age", [0, 18, 65.5, 120], missing="unknown"),
            "marital status": Attribute.categorical("x", 3, other="other"),
        }
    )
    path = tmp_path / "schema.toml"
    save_schema(domain, path, {"age": "from the census questionnaire"})
    text = path.read_text()
    assert load_schema(path) == domain
    assert '# from the census questionnaire\n[columns.age]\nedges = [0, 18, 65.5, 120]\nmissing = "unknown"\n' in text
    assert '[columns."marital status"]\nlevels = [0, 1, 2]\nother = "other"\noutside = "other"\n' in text
    assert all(f"#   {key} " in text for key in ("levels", "edges", "missing", "other", "outside", "integer", "peeked"))
    assert os.listdir(tmp_path) == ["schema.toml"]
    assert tomllib.loads(text)["columns"]["smoke"] == {"levels": ["yes", "no"], "outside": "yes"}
    assert max(map(len, text.splitlines())) <= 120


def test_peeked_values_are_marked_on_their_lines():
    domain = Domain((Attribute.categorical("city", ["a", "b"], missing="?", peeked=frozenset({"levels"})),))
    lines = schema_text(domain).splitlines()
    marked = [line for line in lines if "learned by looking at private data" in line and not line.startswith("#")]
    assert len(marked) == 1 and marked[0].startswith("levels = ")
    assert "public knowledge" in marked[0]
    assert any(line.startswith('peeked = ["levels"]  # ') for line in lines)
    honest = schema_text(Domain.of({"city": ["a", "b"]}))
    assert not any("#" in line for line in honest.splitlines() if not line.startswith("#"))


def test_long_lists_are_wrapped():
    domain = Domain.of({"city": [f"city number {i}" for i in range(200)], "wide": ["x" * 300, "y"]})
    text = schema_text(domain)
    assert parse_schema(text) == domain
    assert sum(len(line) > 120 for line in text.splitlines()) == 2, "only the long level itself, listed and as outside"


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(SchemaError, match=r"no schema file .*absent\.toml.*`discreet schema draft data\.csv`"):
        load_schema(tmp_path / "absent.toml")


def test_byte_order_mark_and_windows_line_ends_are_fine(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b'\xef\xbb\xbfversion = 1\r\n[columns.x]\r\nlevels = ["a", "b"]\r\n')
    assert load_schema(path) == Domain.of({"x": ["a", "b"]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns.x]\nlevels = [yes, no]", r"s\.toml: .*line 2.*text stands in quotes"),
        ("[columns.x]\nlevels = ['a'", r"s\.toml: .*TOML"),
        ("[columns.x]\nlevels=['a']\n[columns.x]\nlevels=['b']", r"line 3.*declared twice"),
        ("\n\n[columns.ok]\nlevels=['a']\n[columns.x]\nlevel = ['a']", r"s\.toml, line 5: column 'x'.*'levels'"),
        ("[columns.\"a b\"]\nlevels = ['a', 'a']", r"s\.toml, line 1: column 'a b'.*twice"),
        ("[columns.x]\nlevels = []", r"line 1: column 'x' declares no levels"),
        ("[columns.x]\nlevels = [1, 'a']", "all of one kind"),
        ("[columns.x]\nlevels = [2020-01-01]", "levels are strings"),
        ("[columns.x]\nlevels = [0.5]", "use edges"),
        ("[columns.x]\nedges = [0, inf]", "finite"),
        ("[columns.x]\nedges = [0, nan]", "finite"),
        ("[columns.x]\nedges = [3, 2, 1]", "increase"),
        ("[columns.x]\nedges = [0, 1" + "0" * 400 + "]", "finite"),
        ("[columns.x]\nlevels = [1" + "0" * 400 + "]", "64 bits"),
        ("[columns.x]\nlevels = [1" + "0" * 5000 + "]", "TOML"),
        ("[columns.x]\nlevels = 'yes'", "list"),
        ("[columns]\nx = 3", r"expected a \[columns\.x\] section"),
        ("columns = 3", "no columns"),
        ("", "no columns"),
        ("version = 2\n[columns.x]\nlevels=['a']", "version 2"),
        ("[column.x]\nlevels=['a']", "did you mean 'columns'"),
        ("[columns.a.b]\nlevels=['a']", r'stands in quotes: \[columns\."a\.b"\]'),
        ("[columns.x]\nlevels = " + "[" * 3000, "TOML"),
        ("[columns.x]\nlevels = ['a']\nmissing = 3", "missing must be a string"),
        ("[columns.x]\nlevels = ['a']\noutside = 'b'", "outside = 'b' is not one of its levels"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=message) as caught:
        load_schema(path)
    assert "s.toml" in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff\xfe[\x00c\x00", b"a = '\x00'", b"\x80\x81"])
def test_what_is_not_text_is_refused(tmp_path, data):
    path = tmp_path / "s.toml"
    path.write_bytes(data)
    with pytest.raises(SchemaError, match=r"s\.toml"):
        load_schema(path)


def test_a_directory_is_not_a_schema(tmp_path):
    with pytest.raises(SchemaError, match="not a regular file"):
        load_schema(tmp_path)


def test_names_that_no_file_can_hold(tmp_path):
    with pytest.raises(SchemaError, match="Unicode"):
        save_schema(Domain.of({"a\ud800": ["x"]}), tmp_path / "s.toml")
    assert os.listdir(tmp_path) == []


@settings(deadline=None)
@given(st.text(max_size=80) | st.binary(max_size=80))
def test_any_text_gives_a_domain_or_a_schema_error(content):
    text = content if isinstance(content, str) else content.decode("latin-1")
    for document in (text, f"[columns.x]\nlevels = ['a']\n{text}"):
        try:
            assert isinstance(parse_schema(document), Domain)
        except SchemaError as error:
            assert str(error).startswith("schema")


def test_impossible_combinations_come_back():
    columns = {"a": ["x", "y"], "odd name": ["1", "2", "3"], "c": 2}
    domain = Domain(Domain.of(columns).attributes, ({"odd name": ["3", "1"], "a": "y"}, {"c": "0", "a": "x"}))
    assert parse_schema(schema_text(domain)) == domain
    assert domain.impossible[0] == (("a", ("y",)), ("odd name", ("1", "3")))
    assert domain.project(["c", "a"]).impossible == ((("c", ("0",)), ("a", ("x",))),)
    assert domain.project("a").impossible == () and domain.fingerprint != Domain.of(columns).fingerprint
