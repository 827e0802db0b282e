"""A schema from metadata: what they say is taken over, what they leave open is found privately, and no row is read."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from discreet import PrivacyUnit, open_table, resolve
from discreet.errors import InputError, SchemaError
from discreet.metadata import import_schema
from discreet.privacy.budget import ApproxDP
from discreet.schema import parse_schema

FRICTIONLESS = {
    "fields": [
        {"name": "id", "type": "integer", "constraints": {"unique": True}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {
            "name": "grade",
            "type": "integer",
            "categories": [{"value": 2, "label": "good"}, {"value": 1, "label": "bad"}],
        },
        {"name": "rooms", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "share", "type": "number", "constraints": {"minimum": 0, "maximum": 1, "required": True}},
        {"name": "pay", "type": "number", "constraints": {"minimum": 0}},
        {"name": "job", "type": "string"},
        {"name": "ill", "type": "boolean"},
        {"name": "paid", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
        {
            "name": "hired",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "2019-01-01", "maximum": "2020-12-31"},
        },
        {"name": "born", "type": "date"},
        {"name": "place", "type": "geopoint"},
    ],
    "missingValues": ["", "NA", "-99"],
}


@pytest.fixture(scope="module")
def made():
    return import_schema(FRICTIONLESS)


def test_levels_and_bounds_are_taken_over(made):
    domain = made.domain
    assert domain["sex"].labels == ("f", "m") and domain["sex"].missing is None  # it is required
    assert domain["grade"].levels == (2, 1) and domain["grade"].missing == "missing"
    assert domain["rooms"].levels == tuple(range(10)) and domain["rooms"].sought is None
    assert domain["ill"].levels == (False, True) and domain["paid"].levels == ("nein", "ja")
    assert domain["hired"].dates.by == "month" and domain["hired"].dates.format == "%d.%m.%Y"
    assert len(domain["hired"].dates.labels) == 24
    assert all(domain[name].missing_values == ("NA", "-99") for name in domain)
    assert not domain.peeked


def test_what_is_not_said_is_found_privately_and_the_file_says_so(made):
    sought = {name: made.domain[name].sought for name in made.domain if made.domain[name].sought is not None}
    assert set(sought) == {"age", "share", "pay", "job"}
    assert sought["age"].ends == (0, 120) and sought["age"].integer and sought["share"].ends == (0, 1)
    assert sought["pay"].ends is None, "one bound is none"
    text = made.text()
    assert parse_schema(text) == made.domain
    section = {name: text[: text.index(f"[columns.{name}]")].splitlines()[-1] for name in made.domain}
    assert "its bins are found privately" in section["age"] and "range are found privately" in section["pay"]
    assert "found privately, which needs a delta" in section["job"] and "as the metadata list" in section["sex"]


def test_what_cannot_be_used_is_left_out_with_a_reason(made):
    assert set(made.left_out) == {"id", "born", "place"}
    assert "unique to a row" in made.left_out["id"] and "first and a last day" in made.left_out["born"]
    assert "'geopoint'" in made.left_out["place"]
    assert all(f"#   {name}: " in made.text() for name in made.left_out)


def test_a_fit_can_be_planned_under_it(made):
    plan = str(resolve(made.domain).prepare(made.domain, PrivacyUnit(), ApproxDP(1, "1e-6")))
    assert "found privately" in plan or "find" in plan


def test_a_data_package_of_several_tables_is_asked_which():
    package = {
        "resources": [
            {"name": "a", "schema": FRICTIONLESS},
            {"name": "b", "schema": {"fields": [{"name": "x", "type": "boolean"}]}},
        ]
    }
    with pytest.raises(InputError, match=r"several tables; say which one.*'a', 'b'"):
        import_schema(package)
    with pytest.raises(InputError, match=r"no table 'c'"):
        import_schema(package, "c")
    assert import_schema(package, "b").domain.names == ("x",)
    with pytest.raises(SchemaError, match="is not in the data package"):
        import_schema({"resources": [{"name": "a", "schema": "elsewhere.json"}]})


SDV = {
    "columns": {
        "guest": {"sdtype": "id", "regex_format": "G[0-9]+"},
        "email": {"sdtype": "email", "pii": True},
        "stars": {"sdtype": "categorical", "order": ["one", "two"]},
        "town": {"sdtype": "categorical"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "rate": {"sdtype": "numerical", "computer_representation": "Float"},
        "member": {"sdtype": "boolean"},
        "arrival": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
        "odd": {"sdtype": "unknown"},
    },
    "primary_key": "guest",
}


@pytest.mark.parametrize(
    "document", [SDV, {"tables": {"guests": SDV}, "METADATA_SPEC_VERSION": "V1"}], ids=["one", "V1"]
)
def test_sdv(document):
    made = import_schema(document)
    assert made.domain.names == ("stars", "town", "nights", "rate", "member")
    assert made.domain["stars"].levels == ("one", "two")
    assert made.domain["town"].sought.what == "levels"
    assert made.domain["nights"].integer and made.domain["nights"].sought.ends is None
    assert not made.domain["rate"].integer
    assert set(made.left_out) == {"guest", "email", "arrival", "odd"}


def test_dtypes_of_pandas_and_categories_are_marked_as_peeked():
    frame = pd.DataFrame(
        {"n": [1, 2], "x": [0.5, 1.5], "b": [True, False], "w": ["u", "v"], "m": pd.array([1, None], "Int64")}
    )
    frame["c"] = pd.Categorical(["secret", "u"])
    frame["t"] = pd.to_datetime(["2020-01-01", "2021-01-01"])
    made = import_schema(frame.dtypes.to_dict())
    assert made.domain["n"].integer and made.domain["n"].missing is None and made.domain["m"].missing == "missing"
    assert made.domain["x"].sought is not None and made.domain["b"].levels == (False, True)
    assert made.domain["w"].sought.what == "levels" and set(made.left_out) == {"t"}
    assert dict(made.domain.peeked) == {"c": ("levels",)} or dict(made.domain.peeked) == {"c": ["levels"]}
    as_text = import_schema(json.loads(frame.dtypes.astype(str).to_json()))
    assert as_text.domain["c"].sought.what == "levels" and not as_text.domain.peeked and "secret" not in as_text.text()


def test_what_pandas_writes_as_a_table_is_marked_too_and_its_rows_are_not_read():
    frame = pd.DataFrame({"c": pd.Categorical(["u", "v"]), "w": ["row one", "row two"]})
    made = import_schema(json.loads(frame.to_json(orient="table", index=False)))
    assert set(made.domain.peeked) == {"c"} and "row one" not in made.text()


def test_a_domain_of_mbi_says_how_many_codes_there_are(tmp_path):
    """The form in which the benchmarks of the field keep a domain."""
    made = import_schema({"age": 85, "sex": 2, "income>50K": 2})
    assert made.domain.shape == (85, 2, 2) and made.domain["age"].levels == tuple(range(85))
    assert made.source == "a domain of mbi" and parse_schema(made.text()) == made.domain
    (tmp_path / "rows.csv").write_text("age,sex,income>50K\n84,1,0\n0,0,0\n")
    assert open_table(tmp_path / "rows.csv", made.domain).count([("sex",)])[0].tolist() == [1, 1]
    for size in (0, -1, 10**15):
        with pytest.raises(SchemaError, match="'age': a domain of mbi says from 1 to 100,000 levels"):
            import_schema({"sex": 2, "age": size})


def test_what_is_said_of_several_columns_is_said_once():
    with pytest.raises(SchemaError) as error:
        import_schema({"age": "complex64", "sex": "complex64"})
    assert str(error.value).endswith(
        "used: age, sex: what is of a type that is not stated or not known has no levels to count"
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "metadata are an object"),
        ({}, "metadata are an object"),
        ({"a": {"b": 1}}, "none of those that can be read"),
        ({"fields": [{"type": "string"}]}, "an object with a name"),
        ({"fields": [{"name": "x", "type": "geopoint"}]}, "no column of these metadata can be used"),
        ({"tables": {"a": {}}}, "SDV metadata of a table have columns"),
    ],
)
def test_what_is_no_metadata_is_refused(document, words):
    with pytest.raises(SchemaError, match=words):
        import_schema(document)


def test_the_command_writes_a_schema_and_says_what_is_open(tmp_path, monkeypatch, capsys):
    from discreet.cli import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "metadata.json").write_text(json.dumps(FRICTIONLESS))
    assert run(["schema", "import", "metadata.json", "-o", "new.toml"]) == 0
    said = capsys.readouterr()
    assert "To be found privately, as the metadata do not say: age, share, pay, job." in said.out
    assert "Left out: id" in said.out and "No row was read" in said.err
    assert parse_schema((tmp_path / "new.toml").read_text()) == import_schema(FRICTIONLESS).domain
    assert run(["schema", "import", "metadata.json", "-o", "new.toml"]) != 0, "it is there already"
    (tmp_path / "broken.json").write_text("{")
    capsys.readouterr()
    assert run(["schema", "import", "broken.json", "-o", "other.toml"]) == 4
    assert "no metadata in broken.json" in " ".join(capsys.readouterr().err.split())
