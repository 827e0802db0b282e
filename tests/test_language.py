"""The query language: what people write, and errors that point at the character."""

import pickle
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.dates import Dates
from discreet.domain import Attribute, Domain
from discreet.errors import InputError
from discreet.language import LanguageError, conditions, parse, quoted, resolve

INF = float("inf")

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
        Attribute.of_dates("day", Dates("month", date(2024, 1, 1), date(2024, 12, 31))),
        Attribute.numeric("hours", [0, 20, 60, 99], integer=True, heaps=[40], missing="unknown"),
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
    ("text", "said", "labels", "low", "high"),
    [
        ("age >= 30", "age >= 30", ["[18, 65.5)", "[65.5, 120]"], 30, INF),
        ("30<=age", "age >= 30", ["[18, 65.5)", "[65.5, 120]"], 30, INF),
        ("age<18", "age < 18", ["[0, 18)"], -INF, 18),
        ("18 <= age < 65.5", "18 <= age < 65.5", ["[18, 65.5)"], 18, 65.5),
        ("65.5 > age>=18", "65.5 > age >= 18", ["[18, 65.5)"], 18, 65.5),
        ("age in [18, 65.5)", "18 <= age < 65.5", ["[18, 65.5)"], 18, 65.5),
        ("age in {3, 'unknown'}", 'age in {"[0, 18)", unknown}', ["[0, 18)", "unknown"], -INF, INF),
        ("age!=3", 'age != "[0, 18)"', ["[18, 65.5)", "[65.5, 120]", "unknown"], -INF, INF),
        ("known(age)", "known(age)", ["[0, 18)", "[18, 65.5)", "[65.5, 120]"], -INF, INF),
        ("hours > 40", "hours > 40", ["[20, 60)", "[60, 99]"], 41, INF),
        ("hours >= 40", "hours >= 40", ["[20, 60)", "[60, 99]", "40"], 40, INF),
        ("hours <= 39.5", "hours <= 39.5", ["[0, 20)", "[20, 60)"], -INF, 40),
        ("hours = 40", None, ["40"], None, None),
        ("visits > 0", "visits > 0", ["1", "2"], -INF, INF),
        ("xray not in {'x y', <5}", 'xray not in {<5, "x y"}', ["5-12", "12+", ">=7.5", "Asy/Patch", "=5"], -INF, INF),
        ("xray!=>=7.5", "xray != >=7.5", ["<5", "5-12", "12+", "Asy/Patch", "x y", "=5"], -INF, INF),
        ("day >= 2024-11-15", "day >= 2024-11-15", ["2024-11", "2024-12"], 20042, INF),
        ("2024-11-15 > day", "day < 2024-11-15", [f"2024-{m:02}" for m in range(1, 12)], -INF, 20042),
        ("age > 3, age < 10", "age > 3, age < 10", ["[0, 18)"], 3, 10),
    ],
)
def test_conditions(text, said, labels, low, high):
    ((name, found),) = conditions(text, DOMAIN).items()
    if said is None:
        assert [found] == labels
        return
    assert found.text == said
    assert [DOMAIN[name].labels[c] for c in sorted(found.codes)] == labels
    assert (found.low, found.high) == (low, high)
    assert conditions(found.text, DOMAIN)[name] == found, "what is said can be asked again"
    question = ask(f"P({text} | smoke=yes)")
    assert question.targets[0].condition == question.targets[0].event == found
    assert dict(ask(f"E(visits | {text})").given)[name] == found if name != "visits" else True


def test_whole_tables_and_numbers():
    question = ask("QUANTILE(age, 0.9 | smoke, ill=true, known(hours), age >= 18)")
    assert (question.kind, question.quantile, question.tables) == ("QUANTILE", 0.9, ("smoke",))
    assert [name for name, _ in question.given] == ["ill", "hours", "age"] and question.evidence == {"ill": 0}
    with pytest.raises(LanguageError, match="say which values of 'smoke' are wanted"):
        conditions("age > 3, smoke", DOMAIN)
    with pytest.raises(LanguageError, match="expected ','"):
        conditions("age > 3)", DOMAIN)


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
        ("P(age < )", "        ^", "expected a number"),
        ("P(age < old)", "        ^^^", "'old' is not a number"),
        ("P(age < 0)", "        ^", "'age' tells which values are < 0; the bins go from 0 to 120, and values beyond"),
        ("P(age >= 121)", "         ^^^", "no bin of column 'age' tells which values are >= 121"),
        ("P(30 <= age > 20)", "            ^", "a sign in the same direction as <="),
        ("P(pay>50=1)", "        ^", "signs stands in quotes"),
        ("P(60 < age < 30)", "  ^^^^^^^^^^^^^", "no value of column 'age' lies between these"),
        ("P(smoke > 3)", "          ^", "column 'smoke' holds categories"),
        ("P(xray > =7.5)", "         ^", "expected a number, found '='"),
        ("P(xray<5)", "       ^", "holds categories, .*; for a level, write xray=<5"),
        ("P(smoke in {})", "            ^", "expected a level of 'smoke', found '}'"),
        ("P(smoke in {yes)", "               ^", r"expected ',' or '}', found '\)'"),
        ("P(smoke in {yes, nope})", "                 ^^^^", "column 'smoke' has no level 'nope'"),
        ("P(smoke not in {yes, no})", "                ^^^^^^^", "leaves no level of column 'smoke'"),
        ("P(known(smok))", "        ^^^^", "no column 'smok'"),
        ("P(known(smoke)", "              ^", "found the end"),
        ("E(smoke)", "  ^^^^^", "column 'smoke' holds categories, and E is about numbers"),
        ("E(ill)", "  ^^^", "column 'ill' holds categories"),
        ("SD(day)", "   ^^^", "column 'day' holds dates, and SD is about numbers"),
        ("E(age, visits)", "       ^^^^^^", "one column at a time"),
        ("E(age=30)", "      ^^", "what is given stands after"),
        ("SD(age > 30)", "   ^^^", "what is given stands after"),
        ("QUANTILE(age)", "            ^", "which quantile"),
        ("QUANTILE(age, half)", "              ^^^^", "a number from 0 to 1, as in QUANTILE\\(age, 0.5\\)"),
        ("QUANTILE(age, 1.5)", "              ^^^", "a number from 0 to 1"),
        ("P(lung | day >= soon)", "                ^^^^", "'soon' is not a date"),
        ("P(lung | day > 2024-12-31)", "               ^^^^^^^^^^", "go from 2024-01-01 to 2024-12-31"),
        ("MAP(lung | smoke)", "           ^^^^^", "a level of 'smoke' must be given"),
        ("MAP(age > 3)", "    ^^^", "MAP looks for the level"),
        ("P(lung | smoke != yes, smoke=no)", "                       ^^^^^", "'smoke' is given twice"),
        ("P(lung | smoke, smoke != no)", "                ^^^^^", "'smoke' is given twice"),
        ("P(lung != yes | lung=no)", "                ^^^^", "'lung' is both asked about and given"),
        ("P('lung)", "  ^", "never closed by '"),
        ("P(lang | smoke=yes)", "  ^^^^", "no column 'lang' in the domain; did you mean 'lung'?"),
        ("P(LUNG)", "  ^^^^", "did you mean 'lung'?"),
        ("P(lung | smoke=yess)", "               ^^^^", "column 'smoke' has no level 'yess'; did you mean 'yes'?"),
        ("P(lung | smoke=NO)", "               ^^", "did you mean 'no'?"),
        ("P(lung | smoke='maybe')", "               ^^^^^^^", "known: 'yes', 'no'"),
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


@pytest.mark.parametrize("number", ["1e9999999999", "-1e9999999999", "1e999999", "-1e400"])
@pytest.mark.parametrize("question", ["QUANTILE(age, {})", "P(age > {})", "P(hours <= {})", "E(age | age >= {})"])
def test_numbers_beyond_all_that_is_computed_with(question, number):
    with pytest.raises(LanguageError):
        ask(question.format(number))


def test_numbers_next_to_nothing():
    for number in ("1e-9999999999", "1e-400"):
        ask(f"P(age > {number})")
        ask(f"QUANTILE(age, {number})")
        ask(f"P(hours <= {number})")


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
@given(st.text(max_size=40) | st.text("P(),|= 'lungsmokeyes\"\\<>!{}in0", max_size=40))
def test_any_text_is_a_question_or_a_language_error(text):
    for attempt in (text, f"P({text})", f"P(lung | {text})", f"E(age | {text})"):
        try:
            assert ask(attempt).kind in ("P", "MAP", "E", "SD", "QUANTILE")
        except LanguageError as error:
            assert 0 <= error.position <= len(attempt)
            assert len(str(error).splitlines()) >= 3


def test_that_no_value_is_there_is_said_only_where_the_schema_says_it():
    found = Attribute.numeric("pay", [8192, 131072], found=frozenset({"edges", "range"}))
    closed = Attribute.numeric("rent", [0, 100], other="other")
    with pytest.raises(LanguageError, match="bins, found privately, go from 8192 to 131072, and values beyond"):
        ask("P(pay < 8192)", Domain((found, closed)))
    with pytest.raises(LanguageError, match="no value of column 'rent' is > 100; they go from 0 to 100"):
        ask("P(rent > 100)", Domain((found, closed)))
