"""Records of delimited text: what one of them holds never changes how another is read."""

import csv
import gzip
import io
import itertools
import re
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Domain, open_table
from discreet.domain import Attribute
from discreet.errors import FileFormatError
from discreet.tables import lines
from discreet.tables.lines import Form, Piece, batch_of, fields_of, pieces


def stream_of(text):
    return lambda at: io.BytesIO(text[at:])


def rows_of(text, form, columns=None):
    """The rows as a multiset of texts."""
    found = Counter()
    for piece in pieces(stream_of(text), form):
        batch = batch_of(piece, form, list(range(form.columns)) if columns is None else columns)
        found.update(zip(*(column.to_list() for column in batch), strict=True))
    return found


# -- against the words of docs/privacy.md, taken one character at a time -----------------------------------------------


def expected_rows(text, form):
    found = Counter()
    while text:
        record, text = first_record(text, form)
        if len(record) <= lines.LONGEST and (record or form.columns == 1):
            try:
                values = [v.decode() or None for v in expected_fields(record, form)[: form.columns]]
            except UnicodeDecodeError:
                continue
            found[tuple(values + [None] * (form.columns - len(values)))] += 1
    return found


def first_record(text, form):
    end, d = re.escape(form.line_end), re.escape(form.delimiter)
    field = rb'(?: *"(?:[^"]|"")*+" *|(?:(?!' + end + rb')[^"' + d + rb"])*+)"
    valid = re.match((field + d) * (form.columns - 1) + field + rb"(" + end + rb"|\Z)", text)
    line, _, rest = text.partition(form.line_end)
    if valid and not form.row_is_line and len(line) < len(text) and b'"' in line:
        return valid[0].removesuffix(valid[1]), text[valid.end() :]
    return line, rest


def expected_fields(record, form):
    values, state = [b""], "start"
    i = 0
    while i < len(record):
        c = record[i : i + 1]
        if state == "quoted":
            if c != b'"':
                values[-1] += c
            elif record[i + 1 : i + 2] == b'"':
                values[-1] += c
                i += 1
            else:
                state, rest = "closed", re.match(rb"[^" + re.escape(form.delimiter) + rb"]*", record[i + 1 :])[0]
                values[-1] += rest if rest.strip(b" ") else b""
                i += len(rest)
        elif c == form.delimiter:
            values.append(b"")
            state = "start"
        elif state == "start" and re.match(rb' *"', record[i:]):
            i += record[i:].index(b'"')
            state = "quoted"
        else:
            values[-1] += c
            state = "plain"
        i += 1
    return values


FORMS = [
    Form(columns, b",", end, row_is_line)
    for columns in (1, 2, 3)
    for end in (b"\n", b"\r\n")
    for row_is_line in (False, True)
]
PARTS = [
    b"a",
    b"b",
    b",",
    b",",
    b'"',
    b'"',
    b'""',
    b"\n",
    b"\n",
    b"\r",
    b"\r\n",
    b" ",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\x00",
]
SPECIAL = [b"\xc3\xa9", b'",', b',"', b'\n"', b'"\n', b"a,b\n", b'"a",b\n', b"\\", b"#"]


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.sampled_from(PARTS + SPECIAL), max_size=25).map(b"".join), st.sampled_from(FORMS), st.data())
def test_any_bytes_are_read_as_the_rules_say_however_they_come(text, form, data):
    chunk = data.draw(st.integers(1, 12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", chunk)
        assert rows_of(text, form) == expected_rows(text, form)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PARTS + SPECIAL), max_size=40).map(b"".join), st.sampled_from(FORMS), st.data())
def test_where_the_stream_is_cut_does_not_matter_even_to_records_that_are_too_long(text, form, data):
    found = []
    for chunk in (1000, data.draw(st.integers(1, 12))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "CHUNK", chunk)
            patch.setattr(lines, "LONGEST", 9)
            assert rows_of(text, form) == expected_rows(text, form)
            found.append(sum(p.too_long for p in pieces(stream_of(text), form)))
    assert found[0] == found[1]


# -- one record, one row -----------------------------------------------------------------------------------------------

# What a person may put into a form. Among sound writers, every one of these has to stay within its record.
TEXTS = [
    *("yes", "", '"', '""', '"yes', 'yes"', '",yes', 'no","', ",", ",,,,", "\n", "\n\n\n", "\r", "\r\n", "\ryes"),
    *("no,no\n" * 41, "no\r" * 41, '\n"no","no"\n' * 41, "\r\nno,no\r\n", '"\nno,no\n', '"\r\nno,no\r\n"', '\n"\n'),
    *(
        "\x00",
        "\ufeff",
        "\ufeffyes",
        "\\",
        '\\"',
        "#yes",
        "é",
        " yes",
        "yes ",
        ' "yes" ',
        "'",
        "\t",
        ";",
        "\x1a",
        "x" * 70_000,
    ),
]
DOMAIN = Domain.of({"a": Attribute.categorical("a", ["yes", "no"], missing="-", other="?"), "b": ["yes", "no"]})


def cells(path, text, **options):
    path.write_bytes(text)
    return Counter(open_table(path, DOMAIN, threads=1, **options).count_sparse(("a", "b")))


def by_csv(quoting, end):
    def write(rows):
        text = io.StringIO(newline="")
        writer = csv.writer(text, quoting=quoting, lineterminator=end)
        writer.writerow(["a", "b"])
        writer.writerows(rows)
        return text.getvalue().encode()

    return write


def by_pandas(end):
    def write(rows):
        frame = pd.DataFrame(rows, columns=["a", "b"], dtype=object)
        return frame.to_csv(index=False, lineterminator=end).encode()

    return write


WRITERS = {
    "csv": by_csv(csv.QUOTE_MINIMAL, "\n"),
    "csv, all in quotes": by_csv(csv.QUOTE_ALL, "\n"),
    "csv, Windows": by_csv(csv.QUOTE_MINIMAL, "\r\n"),
    "pandas": by_pandas("\n"),
    "pandas, Windows": by_pandas("\r\n"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_record_of_any_text_is_one_row(tmp_path, writer, monkeypatch):
    """What comes from a sound writer, whatever people wrote, is read back one to one, wherever chunks end."""
    write = WRITERS[writer]
    monkeypatch.setattr(lines, "CHUNK", 3000)
    ordinary = [("yes", "no"), ("no", "no")] * 3
    usual = cells(tmp_path / "d.csv", write(ordinary))
    assert usual.total() == 6
    for text in TEXTS:
        for record in ((text, "yes"), ("yes", text)):
            if record == ("", "yes") or any(record):
                with_it = cells(tmp_path / "d.csv", write([*ordinary[:2], record, *ordinary[2:]]))
                assert usual <= with_it and with_it.total() == 7, text[:20]
    everything = [pair for t in TEXTS for pair in ((t, "yes"), ("no", t))]
    whole = cells(tmp_path / "d.csv", write(everything))
    assert whole.total() == len(everything)
    for gone in range(len(everything)):
        less = cells(tmp_path / "d.csv", write(everything[:gone] + everything[gone + 1 :]))
        assert less <= whole and less.total() == whole.total() - 1


# Lines as a careless writer leaves them: fields joined by commas, and nothing else done.
LINES = [
    *("yes,no", '"yes,no', 'yes,"no', '"', '","', '",no', 'yes,"', '"yes"no,"', '""",', "yes", "yes,no,no,no", ","),
    *("yes,no\r", "\r", "\r" * 41, "no,no\r" * 41, '"no,no\r', "\x00", "\ufeffyes,no", "\\", '\\",no', "#yes,no", " "),
    *(
        "\x0b",
        "\u2028no,no",
        "\x85no,no",
        'yes,"no"',
        '"yes","no"',
        '" ",""',
        "no," * 5000,
        '"' * 41,
        '",' * 41,
        "\x1a",
    ),
]
HOSTILE = [*(line.encode() for line in LINES), b"\xff,yes", b"yes,\xff", b'"\xff\n'[:-1], b"\xef\xbb", b"\xc3"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_with_row_is_line_any_line_is_at_most_one_row(end):
    """All pairs of hostile neighbours: the row of a line is the same whatever stands around it."""
    form = Form(2, b",", end, row_is_line=True)
    hostile = [*HOSTILE, *((b"\n", b"\n" * 41, b"no,no\n" * 41, b'"\n"', b"\n\r") if end == b"\r\n" else ())]
    alone = {record: rows_of(record + end, form) for record in hostile}
    assert all(c.total() <= 1 for c in alone.values())
    for left, right in itertools.product(hostile, repeat=2):
        together = rows_of(end.join([left, b"no,yes", right, b""]), form)
        assert together == alone[left] + alone[right] + Counter({("no", "yes"): 1})


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_stray_quote_swallows_no_other_row(tmp_path, end):
    """By default too, unless another stray quote makes valid text of it all: then it is valid text."""
    header, ordinary = b"a,b" + end, (b"yes,no" + end + b'"no","no"' + end) * 20
    usual = cells(tmp_path / "d.csv", header + ordinary)
    for record in HOSTILE:
        for at in (0, len(b"yes,no" + end), len(ordinary)):
            with_it = cells(tmp_path / "d.csv", header + ordinary[:at] + record + end + ordinary[at:])
            assert usual <= with_it and with_it.total() <= 41, record[:20]


def test_a_carriage_return_where_reading_pauses_is_part_of_its_field(monkeypatch):
    """In a record that spans lines, in a column that is not the last: half of a line end it cannot be."""
    for middle in (b"\r", b"x\r", b"\rx", b"\r\r", b'"\r"'):
        text = b'"a\r\nb",' + middle + b',c\r\n"d\r\n",,e\r\n'
        form = Form(3, b",", b"\r\n")
        whole = rows_of(text, form)
        assert set(whole) == {("a\r\nb", middle.strip(b'"').decode(), "c"), ("d\r\n", None, "e")}
        for chunk in range(1, len(text)):
            monkeypatch.setattr(lines, "CHUNK", chunk)
            assert rows_of(text, form) == whole, (middle, chunk)
        monkeypatch.undo()


def test_the_header_line_alone_says_how_lines_end(tmp_path):
    assert cells(tmp_path / "d.csv", b"a,b\nyes,no\r\nyes,no\n").total() == 2
    assert cells(tmp_path / "d.csv", b"a,b\nyes,no\rno,no\rno,no\n") == {(0, 0): 1}  # "no\rno" is not listed
    assert cells(tmp_path / "d.csv", b"a,b\r\nyes,no\nno,no\nno,no\r\n").total() == 1
    with pytest.raises(FileFormatError, match="carriage return alone; convert it: tr"):
        cells(tmp_path / "d.csv", b"a,b\ryes,no\r")


def test_a_line_that_is_too_long_is_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 100)
    monkeypatch.setattr(lines, "CHUNK", 30)
    assert cells(tmp_path / "d.csv", b"a,b\nyes,no\n" + b"x" * 101 + b"\nyes,no\n" + b"x" * 5000).total() == 2
    assert cells(tmp_path / "d.csv", b"a,b\nyes,no\n" + b"x" * 100 + b"\nyes,no\n").total() == 3


@pytest.mark.parametrize("text", ["no,no\n" * 41, "x" * 150 + "\n" + "no,no\n" * 41 + '"', '\n"no","no"\n' * 41])
def test_a_record_that_is_too_long_leaves_no_rows_behind(tmp_path, monkeypatch, text):
    """Wherever its line ends are, and however the file is packed."""
    monkeypatch.setattr(lines, "LONGEST", 100)
    monkeypatch.setattr(lines, "CHUNK", 30)
    written = WRITERS["csv"]([("yes", "no"), (text, "no"), ("no", "yes"), ("yes", text), ("no", "yes")])
    for packed in (written, gzip.compress(written)):
        assert cells(tmp_path / "d.csv", packed) == {(0, 1): 1, (1, 0): 2}
    stray = b'a,b\n"yes,no\n' + b"no,no\n" * 200  # beyond what is held, it is the end of the file that tells
    for packed in (stray, gzip.compress(stray)):
        assert cells(tmp_path / "d.csv", packed) == {(3, 0): 1, (1, 1): 200}


def test_fields_of_a_record():
    form = Form(3, b",")
    assert fields_of(b'a, "b,""c" ,d', form).values == [b"a", b'b,"c', b"d"]
    assert fields_of(b'5" disk,x', form) == ([b'5" disk', b"x"], False, False)
    assert fields_of(b'"a"b,"c', form) == ([b"ab", b"c"], True, True)
    assert fields_of(b'a "b" c', Form(3, b" ")).values == [b"a", b"b", b"c"]


def test_only_columns_that_are_read_have_to_be_text():
    form = Form(2, b",")
    assert rows_of(b"\xff,a\nb,c\n", form, [1]) == {("a",): 1, ("c",): 1}
    assert rows_of(b"\xff,a\nb,c\n", form, [0]) == {("b",): 1}
    assert [len(column) for column in batch_of(Piece(b"", 0, []), form, [0])] == [0]
