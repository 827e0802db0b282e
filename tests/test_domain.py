"""Attributes and domains: every value has exactly one level, and a wrong declaration is an error with a way out."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Attribute, Domain, level_text
from discreet.errors import InputError, SchemaError


def test_labels_are_levels_then_missing_then_other():
    a = Attribute.categorical("x", ["lo", "hi"], missing="?", other="…")
    assert a.labels == ("lo", "hi", "?", "…")
    assert a.size == 4
    assert [a.code(label) for label in a.labels] == [0, 1, 2, 3]
    assert [a.value(code) for code in range(4)] == ["lo", "hi", None, "…"]


def test_levels_keep_their_type_and_labels_are_text():
    assert Attribute.categorical("x", [True, False]).labels == ("true", "false")
    assert Attribute.categorical("x", 3).levels == (0, 1, 2)
    assert Attribute.categorical("x", 3).value(2) == 2
    b = Attribute.categorical("x", [True, False])
    assert b.code(True) == b.code("true") == b.code(np.True_) == 0
    assert Attribute.categorical("x", [10, 20]).code(np.int64(20)) == 1
    assert level_text(np.False_) == "false"


@pytest.mark.parametrize(
    ("options", "outside", "missing_code"),
    [
        ({}, "a", 0),
        ({"missing": "?"}, "?", 2),
        ({"other": "o"}, "o", 2),
        ({"missing": "?", "other": "o"}, "o", 2),
        ({"outside": "b"}, "b", 1),
    ],
)
def test_where_unforeseen_and_absent_values_go(options, outside, missing_code):
    a = Attribute.categorical("x", ["a", "b"], **options)
    assert a.outside == outside
    assert a.outside_code == a.labels.index(outside)
    assert a.missing_code == missing_code


def test_numeric_outside_defaults_to_the_nearest_bin():
    a = Attribute.numeric("x", [0, 1, 2])
    assert (a.outside, a.outside_code, a.missing_code) == ("nearest", None, 0)
    b = Attribute.numeric("x", [0, 1, 2], outside="[1, 2]")
    assert (b.outside_code, b.missing_code) == (1, 1)


def test_bins_include_their_lower_edge_and_the_last_one_both():
    a = Attribute.numeric("age", [0, 18, 65.5, 120], missing="?")
    assert a.labels == ("[0, 18)", "[18, 65.5)", "[65.5, 120]", "?")
    assert [a.code(x) for x in (0, 17.99, 18, "18", 65.5, 120, "[0, 18)", "?")] == [0, 0, 1, 1, 2, 2, 0, 3]
    for outside in (-0.1, 120.1, "nan", float("nan"), "inf", "old"):
        with pytest.raises(InputError, match="column 'age' has no level"):
            a.code(outside)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True).map(sorted), st.floats(0, 1))
def test_code_of_a_number_agrees_with_numpy(edges, share):
    a = Attribute.numeric("x", edges)
    x = edges[0] + share * (edges[-1] - edges[0])
    if edges[0] <= x <= edges[-1]:
        assert a.code(x) == min(np.searchsorted(a.edges, x, side="right") - 1, len(edges) - 2)


def test_numpy_values_are_taken_as_what_they_stand_for():
    assert Attribute.numeric("x", np.arange(0, 30, 10)) == Attribute.numeric("x", [0, 10, 20])
    assert Attribute.categorical("x", np.array([1, 2])).levels == (1, 2)
    assert type(Attribute.categorical("x", np.array([1, 2])).levels[0]) is int
    assert Attribute.categorical("x", np.int64(2)) == Attribute.categorical("x", 2)


def test_equal_domains_have_equal_fingerprints():
    one = Domain((Attribute.numeric("x", [0, 1, 2]),))
    for edges in ([0.0, 1.0, 2.0], [-0.0, 1, 2], np.array([0, 1, 2], np.float32)):
        other = Domain((Attribute.numeric("x", edges),))
        assert other == one and hash(other) == hash(one)
        assert other.fingerprint == one.fingerprint
    assert Domain((Attribute.numeric("x", [0, 1, 3]),)).fingerprint != one.fingerprint


def test_fingerprint_depends_on_order_and_on_peeking():
    a, b = Attribute.categorical("a", 2), Attribute.categorical("b", 2)
    assert Domain((a, b)).fingerprint != Domain((b, a)).fingerprint
    peeked = dataclasses.replace(a, peeked=frozenset({"levels"}))
    assert Domain((peeked,)).fingerprint != Domain((a,)).fingerprint
    assert Domain((peeked, b)).peeked == {"a": ("levels",)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute(""), "needs a name"),
        (lambda: Attribute(3), "needs a name"),
        (lambda: Attribute("x"), "declares no levels"),
        (lambda: Attribute.categorical("x", 0), "declares no levels"),
        (lambda: Attribute.categorical("x", "yes"), "list of levels"),
        (lambda: Attribute("x", "yes"), "levels must be a list"),
        (lambda: Attribute.categorical("x", True), "list of levels"),
        (lambda: Attribute.categorical("x", ["a", "a"]), "'a' is declared twice"),
        (lambda: Attribute.categorical("x", ["a"], missing="a"), "'a' is declared twice"),
        (lambda: Attribute.categorical("x", ["a", 1]), "all of one kind"),
        (lambda: Attribute.categorical("x", [True, 0]), "all of one kind"),
        (lambda: Attribute.categorical("x", [0.5]), "use edges"),
        (lambda: Attribute.categorical("x", [None]), "levels are strings"),
        (lambda: Attribute.categorical("x", [2**70]), "64 bits"),
        (lambda: Attribute.categorical("x", ["a"], missing=3), "missing must be a string"),
        (lambda: Attribute.categorical("x", ["a"], other=True), "other must be a string"),
        (lambda: Attribute.categorical("x", ["yes", "no"], outside="yess"), "did you mean 'yes'"),
        (lambda: Attribute.categorical("x", ["a"], outside="nearest"), "not one of its levels"),
        (lambda: Attribute.categorical("x", ["a"], integer=True), "integer"),
        (lambda: Attribute.categorical("x", ["a"], peeked={"rows"}), "peeked may name"),
        (lambda: Attribute.categorical("x", ["a"], peeked="levels"), "peeked must be a list"),
        (lambda: Attribute("x", ("a",), (0, 1)), "both levels and edges"),
        (lambda: Attribute.numeric("x", [1]), "at least two"),
        (lambda: Attribute.numeric("x", [0, float("nan")]), "finite"),
        (lambda: Attribute.numeric("x", [0, float("inf")]), "finite"),
        (lambda: Attribute.numeric("x", [0, 10**400]), "finite"),
        (lambda: Attribute.numeric("x", [0, True]), "finite"),
        (lambda: Attribute.numeric("x", [0, "1"]), "finite"),
        (lambda: Attribute.numeric("x", [0, 0]), "increase"),
        (lambda: Attribute.numeric("x", [2**53, 2**53 + 1]), "increase"),
        (lambda: Attribute.numeric("x", [0, 0.5], integer=True), "whole"),
        (lambda: Domain((Attribute.categorical("x", 2),) * 2), "column 'x' is declared twice"),
    ],
)
def test_wrong_declarations(make, message):
    with pytest.raises(SchemaError, match=message):
        make()


def test_duplicates_are_found_fast_among_many():
    levels = [*map(str, range(200_000)), "199999"]
    with pytest.raises(SchemaError, match="'199999' is declared twice"):
        Attribute.categorical("x", levels)
    with pytest.raises(InputError, match="no level 'absent'"):
        Attribute.categorical("x", levels[:-1]).code("absent")


DOMAIN = Domain.of({"smoke": ["yes", "no"], "visits": 3, "age": 2})


def test_looking_up():
    assert DOMAIN.names == tuple(DOMAIN) == ("smoke", "visits", "age")
    assert DOMAIN.shape == (2, 3, 2) and len(DOMAIN) == 3
    assert DOMAIN.size() == 12 and DOMAIN.size(["smoke", "age"]) == 4 and DOMAIN.size([]) == 1
    assert "smoke" in DOMAIN and "smok" not in DOMAIN
    assert DOMAIN["visits"].size == 3 and DOMAIN.index("age") == 2
    with pytest.raises(InputError, match="no column 'smokes' in the domain; did you mean 'smoke'"):
        DOMAIN["smokes"]
    with pytest.raises(InputError, match="no column"):
        DOMAIN.index(["smoke"])


def test_cliques_are_in_the_order_of_the_domain():
    assert DOMAIN.clique(["age", "smoke"]) == ("smoke", "age")
    assert DOMAIN.clique("age") == ("age",)
    assert DOMAIN.clique([]) == ()
    with pytest.raises(InputError, match="each column once"):
        DOMAIN.clique(["age", "age"])


def test_project_and_merge():
    assert DOMAIN.project(["age", "smoke"]).names == ("age", "smoke")
    other = Domain.of({"smoke": ["yes", "no"], "sex": 2})
    assert DOMAIN.merge(other).names == ("smoke", "visits", "age", "sex")
    with pytest.raises(SchemaError, match="column 'smoke' has two different definitions"):
        DOMAIN.merge(Domain.of({"smoke": ["no", "yes"]}))


def test_size_is_exact_however_large():
    assert Domain.of({f"x{i}": 10 for i in range(100)}).size() == 10**100


def test_domains_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DOMAIN.attributes = ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        DOMAIN["smoke"].name = "x"


def test_dictionary_form_round_trips():
    domain = Domain(
        (
            Attribute.categorical("a", ["x", "y"], missing="?", other="o", outside="x", peeked=frozenset({"levels"})),
            Attribute.numeric("b", [0, 5, 10], integer=True),
            Attribute.categorical("c", [True, False]),
        )
    )
    form = domain.to_dict()
    assert form["columns"]["b"] == {"edges": [0, 5, 10], "outside": "nearest", "integer": True}
    assert Domain.from_dict(form) == domain
    assert Domain.from_dict(form).fingerprint == domain.fingerprint


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "no columns"),
        ({"columns": {}}, "no columns"),
        ({"columns": {"x": 3}}, "expected a"),
        ({"columns": {"x": {"level": ["a"]}}}, "did you mean 'levels'"),
        ({"columns": {"x": {"levels": "a"}}}, "levels is a list"),
        ({"columns": {"x": {"levels": ["a"], "outside": 1}}}, "outside must be a string"),
        ({"columns": {"x": {"levels": ["a"], "peeked": [1]}}}, "peeked must be a list of strings"),
        ({"columns": {"x": {"levels": ["a"]}}, "version": 2}, "version 2"),
        ({"columns": {"x": {"levels": ["a"]}}, "extra": 2}, "unknown key 'extra'"),
        ({"columns": {"x": {"levels": [["a"]]}}}, "levels are strings"),
        ({"columns": {"x": {"edges": [[0], 1]}}}, "finite"),
    ],
)
def test_wrong_dictionary_forms(form, message):
    with pytest.raises(SchemaError, match=message):
        Domain.from_dict(form)
