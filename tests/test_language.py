"""The query language: what people write, and errors that point at the character."""

import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.domain import Attribute, Domain
from discreet.errors import InputError
from discreet.language import LanguageError, parse, quoted, resolve

DOMAIN = Domain(
    (
        Attribute.categorical("smoke", ["yes", "no"]),
        Attribute.categorical("lung", ["yes", "no"]),
        Attribute.categorical("xray", ["<5", "5-12", "12+", ">=7.5", "Asy/Patch", "x y", "=5"]),
        Attribute.numeric("age", [0, 18, 65.5, 120], missing="unknown"),
        Attribute.categorical("ill", [True, False]),
        Attribute.categorical("visits", 3),
        Attribute.categorical("odd name", ["it's", 'say "hi"', "a, b", "(c)"]),
        Attribute.categorical("größe", ["klein", "groß"]),
        Attribute.categorical("年齢", ["若い", "老い"]),
        Attribute.categorical("a|b=c", ["0", "back\\slash"]),
    )
)


def ask(text, domain=DOMAIN):
    return resolve(parse(text), domain)


@pytest.mark.parametrize(
    ("text", "kind", "targets", "evidence"),
    [
        ("P(lung)", "P", {"lung": None}, {}),
        ("P(lung, smoke)", "P", {"lung": None, "smoke": None}, {}),
        ("P(lung|smoke=yes)", "P", {"lung": None}, {"smoke": 0}),
        ("  P ( lung , ill\t|\n smoke = no,visits=2 )  ", "P", {"lung": None, "ill": None}, {"smoke": 1, "visits": 2}),
        ("P(lung=yes)", "P", {"lung": 0}, {}),
        ("P(lung=yes, ill | smoke == no)", "P", {"lung": 0, "ill": None}, {"smoke": 1}),
        ("MAP(lung, ill | xray=12+)", "MAP", {"lung": None, "ill": None}, {"xray": 2}),
        ("map(lung)", "MAP", {"lung": None}, {}),
        ("Pr(lung)", "P", {"lung": None}, {}),
        ("p(xray=<5)", "P", {"xray": 0}, {}),
        ("P(xray=>=7.5)", "P", {"xray": 3}, {}),
        ("P(xray=5-12 | age=unknown)", "P", {"xray": 1}, {"age": 3}),
        ("P(xray=Asy/Patch)", "P", {"xray": 4}, {}),
        ("P(xray='x y')", "P", {"xray": 5}, {}),
        ("P(xray='=5')", "P", {"xray": 6}, {}),
        ("P(age=30)", "P", {"age": 1}, {}),
        ("P(age=17.999)", "P", {"age": 0}, {}),
        ("P(age=1e2)", "P", {"age": 2}, {}),
        ("P(age=[18, 65.5))", "P", {"age": 1}, {}),
        ("P(lung | age=[65.5,120])", "P", {"lung": None}, {"age": 2}),
        ("P('age'='[0, 18)')", "P", {"age": 0}, {}),
        ("P(ill=True | visits=1)", "P", {"ill": 0}, {"visits": 1}),
        ("P(ill=false)", "P", {"ill": 1}, {}),
        ("P(\"odd name\"='a, b')", "P", {"odd name": 2}, {}),
        ("P('odd name' | lung='yes')", "P", {"odd name": None}, {"lung": 0}),
        ("P('odd name'=\"it's\")", "P", {"odd name": 0}, {}),
        ("P('odd name'='it\\'s')", "P", {"odd name": 0}, {}),
        ("P('odd name'=it's)", "P", {"odd name": 0}, {}),
        (r'P("odd name"="say \"hi\"")', "P", {"odd name": 1}, {}),
        ("P(“odd name”=‘(c)’)", "P", {"odd name": 3}, {}),
        ("P(größe=groß | 年齢=老い)", "P", {"größe": 1}, {"年齢": 1}),
        ("P(gro\u0308ße)", "P", {"größe": None}, {}),
        ("P('a|b=c'=0)", "P", {"a|b=c": 0}, {}),
        (r"P('a|b=c'=back\slash)", "P", {"a|b=c": 1}, {}),
        (r"P('a|b=c'='back\\slash')", "P", {"a|b=c": 1}, {}),
        (r"P('a|b=c'='back\slash')", "P", {"a|b=c": 1}, {}),
    ],
)
def test_questions(text, kind, targets, evidence):
    question = ask(text)
    assert question.kind == kind
    assert {t.name: t.code for t in question.targets} == targets
    assert question.evidence == evidence and list(question.evidence) == list(evidence)
    for target in question.targets:
        assert target.level == (None if target.code is None else DOMAIN[target.name].labels[target.code])
    assert dict(question.given) == {name: DOMAIN[name].labels[code] for name, code in evidence.items()}


@pytest.mark.parametrize(
    ("text", "mark", "message"),
    [
        ("", "^", "begins with P"),
        ("lung", "^", "begins with P"),
        ("Q(lung)", "^", "begins with P"),
        ("P lung", "^", "begins with P"),
        ("P()", "  ^", r"expected the name of a column, found '\)'"),
        ("P(", "  ^", "expected the name of a column, found the end"),
        ("P(lung", "      ^", r"expected ',', '=', '\|' or '\)', found the end"),
        ("P(lung |)", "        ^", r"expected the name of a column, found '\)'"),
        ("P(| smoke=yes)", "  ^", "expected the name of a column"),
        ("P(lung,)", "       ^", "expected the name"),
        ("P(lung=)", "       ^", "expected a level of 'lung'"),
        ("P(lung smoke)", "       ^", "found 's'; a name or level with spaces, brackets or signs stands in quotes"),
        ("P(lung | smoke=yes | ill=true)", "                   ^", r"one '\|'"),
        ("P(lung) P(ill)", "        ^", "one question at a time"),
        ("P(lung))", "       ^", "the question ends before"),
        ("P(age < 30)", "      ^", "only = is understood"),
        ("P(age!=30)", "     ^", "only = is understood"),
        ("P('lung)", "  ^", "never closed by '"),
        ("P(lang | smoke=yes)", "  ^^^^", "no column 'lang' in the domain; did you mean 'lung'?"),
        ("P(LUNG)", "  ^^^^", "did you mean 'lung'?"),
        ("P(lung | smoke=yess)", "               ^^^^", "column 'smoke' has no level 'yess'; did you mean 'yes'?"),
        ("P(lung | smoke=NO)", "               ^^", "did you mean 'no'?"),
        ("P(lung | smoke='maybe')", "               ^^^^^^^", "known: 'yes', 'no'"),
        ("P(lung | smoke)", "         ^^^^^", "a level of 'smoke' must be given, as in smoke=yes"),
        ("P(lung | age=130)", "             ^^^", "give a number from 0 to 120, or 'unknown'"),
        ("P(lung | age=old)", "             ^^^", "give a number from 0 to 120"),
        ("P(lung | age=[18, 66))", "             ^^^^^^^^", "give a number"),
        ("P(lung, lung)", "        ^^^^", "'lung' is asked about twice"),
        ("P(lung | smoke=yes, smoke=no)", "                    ^^^^^", "'smoke' is given twice"),
        ("P(lung | lung=yes)", "         ^^^^", "'lung' is both asked about and given"),
        ("MAP(lung=yes)", "         ^^^", "MAP looks for the level of 'lung' itself"),
        ("P(年齢, lang)", "        ^^^^", "no column 'lang'"),
        ("P(größe, lang)", "         ^^^^", "no column 'lang'"),
        ("P(gro\u0308ße, lang)", "         ^^^^", "no column 'lang'"),
        ("P(\nlung,\tlang)", "         ^^^^", "no column 'lang'"),
    ],
)
def test_errors_point_at_the_character(text, mark, message):
    with pytest.raises(LanguageError, match=message) as caught:
        ask(text)
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert lines[1] == "  " + text.replace("\n", " ").replace("\t", " ")
    assert lines[2] == "  " + mark
    assert isinstance(caught.value, InputError)


def test_long_questions_are_shown_around_the_place():
    text = "P(" + ", ".join(f"column{i}" for i in range(500)) + " | oops)"
    domain = Domain.of({f"column{i}": 2 for i in range(500)})
    with pytest.raises(LanguageError) as caught:
        ask(text, domain)
    lines = str(caught.value).splitlines()
    assert lines[1].startswith("  …") and len(lines[1]) < 110
    assert lines[1][lines[2].index("^") :].startswith("oops")
    assert text[caught.value.position :].startswith("oops")


def test_errors_survive_a_process_boundary():
    with pytest.raises(LanguageError) as caught:
        parse("P(")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.reason == caught.value.reason and copy.position == 2


@pytest.mark.parametrize("text", [None, 3, ["P(lung)"], b"P(lung)"])
def test_a_question_is_a_string(text):
    with pytest.raises(InputError, match="a question is a string"):
        parse(text)


def test_a_question_has_an_end():
    with pytest.raises(InputError, match="at most 10,000 characters"):
        parse("P(" + "x" * 20_000 + ")")


signs = st.text("""a1[]",=\\ ()|'“”<>!.""", min_size=1, max_size=5)
names = signs | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)


@settings(deadline=None)
@given(
    st.lists(names, min_size=2, max_size=4, unique=True),
    st.lists(names | st.just(""), min_size=1, max_size=4, unique=True),
)
@example(["0", "00", "0]"], ["[0"])  # not the bin [0, 0]
def test_whatever_the_names_quoting_makes_them_sayable(columns, levels):
    domain = Domain.of(dict.fromkeys(columns, levels))
    code = len(levels) - 1
    first, *rest = columns
    given_part = ", ".join(f"{quoted(c)}={quoted(levels[code], is_level=True)}" for c in rest)
    question = ask(f"P({quoted(first)} | {given_part})", domain)
    assert question.targets[0].name == first
    assert question.evidence == dict.fromkeys(rest, code)
    asked = ", ".join(f"{quoted(c)}={quoted(levels[code], is_level=True)}" for c in columns)
    assert [(t.name, t.code) for t in ask(f"P({asked})", domain).targets] == [(c, code) for c in columns]


@settings(deadline=None)
@given(st.text(max_size=40) | st.text("P(),|= 'lungsmokeyes\"\\", max_size=40))
def test_any_text_is_a_question_or_a_language_error(text):
    for attempt in (text, f"P({text})", f"P(lung | {text})"):
        try:
            assert ask(attempt).kind in ("P", "MAP")
        except LanguageError as error:
            assert 0 <= error.position <= len(attempt)
            assert len(str(error).splitlines()) >= 3
