"""The native file: exact round trips, deterministic bytes, all-or-nothing writes, and refusal of everything else."""

import errno
import hashlib
import io
import json
import os
import random
import re
import shutil
import stat
import subprocess
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mutations import ACCIDENTS, MALICE, header_with, rezipped, sealed

from discreet import Ledger, PureDP, networks
from discreet.errors import FileFormatError, InputError
from discreet.io.archive import archive_bytes, read_archive, write_archive
from discreet.io.atomic import write_atomically
from discreet.io.limits import TRUSTED, Limits

HEADER = {"kind": "example", "domain": {"version": 1, "columns": {"größe": {"levels": ["x", "y"]}}}, "card": None}
ARRAYS = {
    "tables": np.array([[0.25, 0.75], [-np.inf, 0.5]]),
    "counts": np.arange(5, dtype=np.int32),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 3)),
    "scalar": np.array(3.5),
}

texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)  # fmt: skip
supported = st.sampled_from(["float64", "float32", "int64", "int16", "uint8", "uint64", "bool", ">f8", ">i4"])
arrays_of_any_kind = supported.flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        elements={"allow_nan": False, "allow_infinity": False} if "f" in dtype else None,
    )
)
array_names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)


@settings(deadline=None)
@given(
    st.dictionaries(st.text("abcdef", min_size=1), json_values, max_size=4),
    st.dictionaries(array_names, arrays_of_any_kind, max_size=3),
)
def test_round_trip_is_exact(header, arrays):
    header.pop("format", None), header.pop("version", None)
    back_header, back = read_archive(archive_bytes(header, arrays))
    described = back_header.pop("arrays")
    assert (back_header.pop("format"), back_header.pop("version")) == ("discreet", 1)
    assert back_header == header and list(back_header) == list(header)
    assert set(back) == set(arrays) == set(described)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype.newbyteorder("=") and back[name].dtype.isnative
        assert back[name].shape == array.shape
        np.testing.assert_array_equal(back[name], array)
        assert back[name].flags.writeable


def test_bytes_do_not_depend_on_order_time_memory_layout_or_run(tmp_path):
    first = archive_bytes(HEADER, ARRAYS)
    backwards = dict(reversed(ARRAYS.items()))
    backwards["tables"] = np.asfortranarray(backwards["tables"]).astype(">f8")
    os.utime(tmp_path, (1, 1))
    assert archive_bytes(HEADER, backwards) == first
    write_archive(tmp_path / "a.zip", HEADER, ARRAYS)
    assert (tmp_path / "a.zip").read_bytes() == first
    # pinned: a change of these bytes is a change of the format, and needs a new version
    assert hashlib.sha256(first).hexdigest() == "f79569f1aac66aa9d3952c558e50e7a7894af5fb49587735212e3b1afeb58aad"


def test_other_zip_tools_can_read_it_and_repeat_the_checksum(tmp_path):
    write_archive(tmp_path / "a.zip", HEADER, ARRAYS)
    archive = zipfile.ZipFile(tmp_path / "a.zip")
    assert archive.testzip() is None
    names = archive.namelist()
    assert names[0] == "header.json" and names[-1] == "checksum" and names[1:-1] == sorted(names[1:-1])
    digest = hashlib.sha256(b"".join(archive.read(n) for n in names[:-1])).hexdigest()
    assert archive.read("checksum").decode() == f"sha256:{digest}\n"
    assert np.frombuffer(archive.read("arrays/tables.bin"), "<f8")[1] == 0.75
    if shutil.which("unzip"):
        assert subprocess.run(["unzip", "-tqq", tmp_path / "a.zip"], check=False).returncode == 0


def test_minus_infinity_is_a_value_and_nan_is_not():
    _, arrays = read_archive(archive_bytes({}, {"x": np.array([-np.inf, 0.0])}))
    assert arrays["x"][0] == -np.inf
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="array 'x' holds NaN"):
            archive_bytes({}, {"x": np.array([0.0, bad])})
        data = sealed(header_with({"x": {"dtype": "float64", "shape": [1]}}), {"x": np.array([bad]).tobytes()})
        with pytest.raises(FileFormatError, match=r"x\.bin' holds NaN"):
            read_archive(data)


def test_nan_beyond_the_first_megabyte_is_found():
    values = np.zeros(300_000)
    values[-1] = np.nan
    data = sealed(header_with({"x": {"dtype": "float64", "shape": [300_000]}}), {"x": values.tobytes()})
    with pytest.raises(FileFormatError, match="NaN"):
        read_archive(data)


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        ({"x": float("nan")}, {}, "JSON"),
        ({"x": object()}, {}, "JSON"),
        ({"x": "\ud800"}, {}, "Unicode"),
        ({"x": json.loads("[" * 50 + "]" * 50)}, {}, "cannot be read back"),
        ({}, {"../x": np.zeros(1)}, "ASCII"),
        ({}, {"": np.zeros(1)}, "ASCII"),
        ({}, {"x": np.zeros(1, complex)}, "complex128"),
        ({}, {"x": np.array(["a"])}, "dtype"),
        ({}, {"x": np.array([object()])}, "object"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, header, arrays, message):
    with pytest.raises(InputError, match=message):
        write_archive(tmp_path / "a.zip", header, arrays)
    assert os.listdir(tmp_path) == []


# -- all or nothing ----------------------------------------------------------------------------------------------------


def test_failure_on_the_way_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    write_archive(path, HEADER, ARRAYS)
    before = path.read_bytes()

    def chunks():
        yield b"half"
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        write_atomically(path, chunks())

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_archive(path, {"kind": "other"}, {})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.zip"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_device_is_written_to_and_not_replaced():
    with pytest.raises(OSError, match="No space left"):
        write_archive("/dev/full", HEADER, ARRAYS)
    write_archive("/dev/null", HEADER, ARRAYS)
    assert all(stat.S_ISCHR(os.stat(device).st_mode) for device in ("/dev/full", "/dev/null"))


def test_data_reach_the_disk_before_the_rename(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append("fsync"), sync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("replace"), replace(a, b)))
    write_archive(tmp_path / "a.zip", HEADER, ARRAYS)
    assert events == ["fsync", "replace", "fsync"]


def test_a_ledger_and_a_key_are_not_replaced_by_anything_that_saves(tmp_path):
    model = networks.load("asia")
    with Ledger.create(tmp_path / "ledger.zip", PureDP(1)) as ledger:
        ledger.make_key()
    key = tmp_path / "ledger.zip.key"
    csv, bif = tmp_path / "ledger.csv", tmp_path / "key.bif"
    csv.symlink_to(tmp_path / "ledger.zip")
    bif.symlink_to(key)
    before = [path.read_bytes() for path in (csv, key)]
    for save in (
        lambda: model.save(tmp_path / "ledger.zip"),
        lambda: model.save(bif),
        lambda: model.sample(3).to_csv(csv),
        lambda: model.sample(3).to_parquet(csv),
        lambda: write_archive(csv, {}, {}),
    ):
        with pytest.raises(FileFormatError, match=r"is a (ledger|private key).*, which is not overwritten"):
            save()
    assert [path.read_bytes() for path in (csv, key)] == before


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "a.zip", tmp_path / "link.zip"
    write_archive(path, HEADER, ARRAYS)
    mask = os.umask(0o022)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    write_archive(link, {"kind": "new"}, {})
    assert link.is_symlink() and read_archive(path)[0]["kind"] == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# -- refusal -----------------------------------------------------------------------------------------------------------


def refused(data, limits=Limits()):  # noqa: B008 - frozen
    """The message of the refusal, which must come within a second and 200 MB."""
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(FileFormatError) as caught:
            read_archive(data, limits)
        seconds, (_, peak) = time.process_time() - begin, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seconds < 3, "tracing slows it down some three times"
    assert peak < 200e6
    assert len(str(caught.value)) < 1000
    return str(caught.value)


ONE = {"x": {"dtype": "float64", "shape": [1]}}
EIGHT = {"x": bytes(8)}


def test_a_sealed_file_is_accepted():
    """Negative control for the cases below: the way they are built is not what gets them refused."""
    header, arrays = read_archive(sealed(header_with(ONE), EIGHT))
    assert header["arrays"] == ONE and arrays["x"] == [0.0]


@pytest.mark.parametrize(
    ("header", "arrays", "message"),
    [
        (header_with({"x": {"dtype": "float64", "shape": [2]}}), EIGHT, "size"),
        (header_with({"x": {"dtype": "float64", "shape": [-1]}}), EIGHT, "negative"),
        (header_with({"x": {"dtype": "float64", "shape": [-1, -1]}}), EIGHT, "negative"),
        (header_with({"x": {"dtype": "float64", "shape": [2**62, 2]}}), EIGHT, "limit"),
        (header_with({"x": {"dtype": "float64", "shape": [0, 2**62]}}), {"x": b""}, "limit"),
        (header_with({"x": {"dtype": "float64", "shape": [1] * 33}}), EIGHT, "dimensions, 33"),
        (header_with({"x": {"dtype": "float64", "shape": [True]}}), EIGHT, "whole numbers"),
        (header_with({"x": {"dtype": "float64", "shape": [1.0]}}), EIGHT, "whole numbers"),
        (header_with({"x": {"dtype": "float64", "shape": 1}}), EIGHT, "whole numbers"),
        (header_with({"x": {"dtype": "object", "shape": [1]}}), EIGHT, "'object', which is not allowed"),
        (header_with({"x": {"dtype": ["f8"], "shape": [1]}}), EIGHT, "not allowed"),
        (header_with({"x": {"dtype": "float64"}}), EIGHT, "dtype and shape"),
        (header_with({"x": {"dtype": "bool", "shape": [1]}}), {"x": b"\x02"}, "neither true nor false"),
        (header_with({}), EIGHT, r"arrays/x\.bin"),
        (header_with({**ONE, "y": ONE["x"]}), EIGHT, r"arrays/y\.bin"),
        (header_with({"../x": ONE["x"]}), {}, r"arrays/\.\./x\.bin"),
        (b'{"format": "discreet", "version": 1}', {}, "describe its arrays"),
        (b'{"format": "discreet", "version": 1, "arrays": []}', {}, "describe its arrays"),
        (b'{"format": "discreet", "version": 2, "arrays": {}}', {}, "version 2"),
        (b'{"format": "discreet", "version": true, "arrays": {}}', {}, "version True"),
        (b'{"format": "other", "version": 1, "arrays": {}}', {}, "format 'other'"),
        (b'{"format": "discreet", "format": "discreet"}', {}, "'format' twice"),
        (b"[]", {}, "list, not a JSON object"),
        (b"", {}, "not JSON"),
        (b"{", {}, "not JSON"),
        (b'{"x": NaN}', {}, "NaN"),
        (b'{"x": -Infinity}', {}, "Infinity"),
        (b'{"x": 1e999}', {}, "too large"),
        (b'{"x": %s}' % (b"9" * 10_000), {}, "10000 digits"),
        (b'{"x": "\\ud800"}', {}, "Unicode"),
        (b'{"x": "\xff"}', {}, "UTF-8"),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", {}, "depth of its header, 100,001"),
        (b'{"x": ' + b"[" * 100_000, {}, "depth of its header, 100,001"),
        (b'{"x": [' + b"{},[]," * 600_000 + b"0]}", {}, "values"),
        (b'{"x": "' + b'\\"' * 2_000_000, {}, "not JSON"),
        (b'{"x": "' + b"a" * 5_000_000 + b'"}', {}, "in bytes, 5,000,009 is more than"),
        (b"{" + b",".join(b'"%d":0' % i for i in range(300_000)) + b',"7":0}', {}, "'7' twice"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:40],
)
def test_a_sealed_but_malicious_file_is_refused(header, arrays, message):
    assert re.search(message, refused(sealed(header, arrays)))


def test_files_that_are_something_else(tmp_path):
    assert "empty" in refused(b"")
    assert "not a zip" in refused(b"hello, world" * 100)
    assert "not a regular file" in refused(tmp_path)
    assert "there is no file" in refused(tmp_path / "absent.zip")
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    refused(other.getvalue())
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert "not a regular file" in refused(tmp_path / "pipe")
    assert "not a regular file" in refused("/dev/zero")


def test_zip_tricks():
    good = archive_bytes(HEADER, ARRAYS)
    assert "compressed" in refused(rezipped(good))
    refused(rezipped(good, zipfile.ZIP_STORED))  # other time stamps: not the bytes that discreet writes
    assert "not allowed" in refused(rezipped(good, zipfile.ZIP_STORED, lambda name: "../" + name))
    assert "not allowed" in refused(rezipped(good, zipfile.ZIP_STORED, lambda name: "/" + name))
    assert "twice" in refused(sealed(header_with(ONE), EIGHT, [("header.json", b"{}")]))
    assert "entries" in refused(sealed(header_with(ONE), EIGHT, [("extra.txt", b"")]))
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(10):
            archive.writestr(f"arrays/{i}.bin", bytes(50_000_000))
    assert "compressed" in refused(bomb.getvalue())
    crowd = io.BytesIO()
    with zipfile.ZipFile(crowd, "w") as archive:
        for i in range(30_000):
            archive.writestr(f"arrays/{i}.bin", b"")
    assert "entries, 30,000" in refused(crowd.getvalue())
    encrypted = bytearray(good)
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refused(bytes(encrypted))
    commented = bytearray(good)
    commented[-2:] = (5).to_bytes(2, "little")
    assert "altered" in refused(bytes(commented) + b"hello")


def test_size_limits_come_before_reading(tmp_path):
    path = tmp_path / "sparse.zip"
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)
    message = refused(path)
    assert "limit" in message and "Limits(file_bytes=1099511627776)" in message
    good = archive_bytes({}, {"x": np.zeros(1000)})
    assert "elements" in refused(good, Limits(array_elements=999))
    assert read_archive(good, Limits(array_elements=1000))[1]["x"].size == 1000


def test_a_large_damaged_file_is_refused_without_loading_it(tmp_path):
    path = tmp_path / "large.zip"
    write_archive(path, {}, {"x": np.zeros(8_000_000)})
    with open(path, "r+b") as stream:
        stream.seek(60_000_000)
        stream.write(b"\x01")
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"CRC|checksum"):
        read_archive(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_what_is_large_can_be_saved_and_read_when_trusted(tmp_path):
    path = tmp_path / "large.zip"
    many = {f"t{i}": np.array([float(i)]) for i in range(21_000)}
    write_archive(path, {"model": ["x" * 100] * 50_000}, many)
    assert "entries" in refused(path)
    header, arrays = read_archive(path, TRUSTED)
    assert len(header["model"]) == 50_000 and arrays["t20999"] == [20999.0]
    before = path.read_bytes()
    with pytest.raises(InputError, match="65,535 entries"):
        write_archive(path, {}, {f"t{i}": np.zeros(0) for i in range(65_534)})
    assert path.read_bytes() == before


def test_every_single_bit_matters():
    good = archive_bytes({"kind": "x"}, {"x": np.array([1.5])})
    for position in range(len(good)):
        for bit in range(8):
            broken = bytearray(good)
            broken[position] ^= 1 << bit
            with pytest.raises(FileFormatError):
                read_archive(bytes(broken))


def fuzz(read, good, count, seed):
    """Feed ``count`` broken files to ``read``; returns how many of the sealed ones were still sound."""
    rng = random.Random(seed)
    sound = 0
    for number in range(count):
        mutate = rng.choice(ACCIDENTS + MALICE)
        data = mutate(rng.choice(good), rng)
        if data in good:
            continue
        begin = time.process_time()
        try:
            read(data)
        except FileFormatError as error:
            assert len(str(error)) < 1000, mutate
        else:
            assert mutate in MALICE, f"file {number}: {mutate.__name__} went unnoticed"
            sound += 1
        assert time.process_time() - begin < 1, f"file {number}: {mutate.__name__} took too long"
    return sound


GOOD = [archive_bytes(HEADER, ARRAYS), archive_bytes({"kind": "x"}, {"t": np.linspace(0, 1, 50).reshape(2, 5, 5)})]


def test_fuzz_some_hundred_broken_archives():
    assert fuzz(read_archive, GOOD, 800, seed=1) < 200


@pytest.mark.slow
def test_fuzz_ten_thousand_broken_archives():
    assert fuzz(read_archive, GOOD, 10_000, seed=2) < 2500


def test_header_stays_readable():
    archive = zipfile.ZipFile(io.BytesIO(archive_bytes(HEADER, ARRAYS)))
    text = archive.read("header.json").decode()
    assert "größe" in text and len(text.splitlines()) > 10
    assert json.loads(text)["arrays"]["tables"] == {"dtype": "float64", "shape": [2, 2]}
