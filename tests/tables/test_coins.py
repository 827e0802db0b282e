"""Secret coins: SipHash itself, and that one record moves nothing but itself."""

import secrets
import struct
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.domain import Domain
from discreet.tables import blocks as table_blocks
from discreet.tables import coins
from discreet.tables.encode import encode

KEY = bytes(range(16))
DOMAIN = Domain.of({"a": 3, "b": 2})
REJECT = 1e-6  # tests of shape reject below this: false alarms once in a million runs


def siphash(key, message):
    """SipHash-2-4, written from the paper: any length, one message, plain integers."""
    mask = 2**64 - 1
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turn(x, b):
        return ((x << b) | (x >> (64 - b))) & mask

    def sip_round():
        v[0] = (v[0] + v[1]) & mask
        v[1] = turn(v[1], 13) ^ v[0]
        v[0] = turn(v[0], 32)
        v[2] = (v[2] + v[3]) & mask
        v[3] = turn(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & mask
        v[3] = turn(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & mask
        v[1] = turn(v[1], 17) ^ v[2]
        v[2] = turn(v[2], 32)

    end = len(message) - len(message) % 8
    tail = message[end:] + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for (m,) in struct.iter_unpack("<Q", message[:end] + tail):
        v[3] ^= m
        sip_round()
        sip_round()
        v[0] ^= m
    v[2] ^= 0xFF
    for _ in range(4):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


# Published with the reference implementation: key 00…0f, message 00 01 02 … of this many bytes.
VECTORS = {0: 0x726FDB47DD0E0E31, 8: 0x93F5F5799A932462, 15: 0xA129CA6149BE45E5, 16: 0x3F2ACC7F57C29BDB}


@pytest.mark.parametrize("length", VECTORS)
def test_the_scalar_reference_gives_the_published_values(length):
    assert siphash(KEY, bytes(range(length))) == VECTORS[length]


@pytest.mark.parametrize("length", [8, 16])
def test_the_keyed_hash_gives_the_published_values(length):
    words = [np.array([w], dtype=np.uint64) for (w,) in struct.iter_unpack("<Q", bytes(range(length)))]
    assert coins.keyed_hash(KEY, words).tolist() == [VECTORS[length]]


@given(st.binary(min_size=16, max_size=16), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40))
def test_the_keyed_hash_equals_the_scalar_reference(key, words):
    message = struct.pack(f"<{len(words)}Q", *words)
    columns = [np.array([w, 0], dtype=np.uint64) for w in words]
    got = coins.keyed_hash(key, columns)
    assert got.tolist() == [siphash(key, message), siphash(key, bytes(len(message)))]


def test_occurrences_count_equal_entries():
    keys = np.array([5, 9, 5, 5, 9, 1], dtype=np.uint64)
    assert coins.occurrence(keys).tolist() == [0, 0, 1, 2, 1, 0]
    assert coins.occurrence(keys, np.array([0, 0, 1, 0, 0, 1])).tolist() == [0, 0, 0, 1, 1, 0]
    assert coins.occurrence(keys[:0]).tolist() == []


# -- what a curator does with them ---------------------------------------------------------------------------------


def make(rows, persons=None):
    columns = {"a": [r[0] for r in rows], "b": [r[1] for r in rows]}
    if persons is None:
        return encode(columns, DOMAIN)
    return encode({**columns, "p": persons}, DOMAIN, unit="p")


def multiset(table):
    """Rows of a table, with their persons when it knows them."""
    columns = [c.tolist() for c in table._columns.values()]
    if table._persons is not None:
        columns.append([tuple(i) for i in table._persons.identity[table._persons.of_row].tolist()])
    return Counter(zip(*columns, strict=True))


row = st.tuples(st.integers(0, 2), st.integers(0, 1))
many_rows = st.lists(row, max_size=25)
some_key = st.binary(min_size=16, max_size=16)
some_rows_of_persons = st.lists(st.tuples(row, st.sampled_from("abcde")), max_size=25)


@given(many_rows, some_key, st.randoms(use_true_random=False), st.integers(1, 5))
def test_blocks_do_not_depend_on_the_order_of_rows(rows, key, random, blocks):
    shuffled = list(rows)
    random.shuffle(shuffled)
    before = [multiset(t) for t in make(rows).split(blocks, key)]
    assert before == [multiset(t) for t in make(shuffled).split(blocks, key)]
    assert sum(before, Counter()) == Counter(rows)
    rate = Fraction(1, 3)
    assert multiset(make(rows).sample(rate, key)) == multiset(make(shuffled).sample(rate, key))


@given(many_rows.filter(bool), some_key, st.data())
def test_one_row_changes_one_block_by_itself(rows, key, data):
    gone = data.draw(st.integers(0, len(rows) - 1))
    whole = [multiset(t) for t in make(rows).split(3, key)]
    neighbour = [multiset(t) for t in make(rows[:gone] + rows[gone + 1 :]).split(3, key)]
    lost = [w - n for w, n in zip(whole, neighbour, strict=True)]
    assert all(n <= w for w, n in zip(whole, neighbour, strict=True))
    assert sum(lost, Counter()) == Counter([rows[gone]])
    rate = Fraction(2, 5)
    sampled, without = (multiset(make(r).sample(rate, key)) for r in (rows, rows[:gone] + rows[gone + 1 :]))
    assert sampled - without in (Counter(), Counter([rows[gone]]))
    assert without <= sampled


def test_position_based_blocks_would_be_caught():
    """The property above can fail: blocks by position do."""
    rows = [(i % 3, 0) for i in range(9)]
    whole = [Counter(rows[b::3]) for b in range(3)]
    neighbour = [Counter((rows[:2] + rows[3:])[b::3]) for b in range(3)]
    assert any(not n <= w for w, n in zip(whole, neighbour, strict=True))


@given(some_rows_of_persons, some_key, st.integers(1, 4))
def test_a_person_is_in_one_block_with_all_rows(rows_of, key, blocks):
    table = make([r for r, _ in rows_of], [p for _, p in rows_of])
    homes: dict[int, set[int]] = {}
    for b, block in enumerate(table.split(blocks, key)):
        for *_, person in multiset(block):
            homes.setdefault(person, set()).add(b)
    assert all(len(where) == 1 for where in homes.values())
    sampled = {person for *_, person in multiset(table.sample(Fraction(1, 2), key))}
    kept = multiset(table.sample(Fraction(1, 2), key))
    assert kept == Counter({r: n for r, n in multiset(table).items() if r[-1] in sampled})


@given(some_rows_of_persons, some_key, st.integers(1, 4), st.randoms(use_true_random=False))
def test_clipping_bounds_every_person_and_does_not_depend_on_order(rows_of, key, most, random):
    def clip(pairs):
        return multiset(make([r for r, _ in pairs], [p for _, p in pairs]).clip(most, key))

    clipped = clip(rows_of)
    shuffled = list(rows_of)
    random.shuffle(shuffled)
    assert clip(shuffled) == clipped
    given_rows, kept_rows = Counter(p for _, p in rows_of), Counter()
    for (*_, person), n in clipped.items():
        kept_rows[person] += n
    assert sorted(kept_rows.values()) == sorted(min(most, n) for n in given_rows.values())
    whole = multiset(make([r for r, _ in rows_of], [p for _, p in rows_of]))
    assert clipped <= whole


@settings(max_examples=60)
@given(some_rows_of_persons, st.lists(row, max_size=6), some_key, st.integers(1, 3))
def test_one_person_changes_nothing_for_the_others(rows_of, new_rows, key, most):
    others = [(r, p) for r, p in rows_of if p != "a"]

    def clip_others(pairs):
        table = make([r for r, _ in pairs], [p for _, p in pairs])
        a = encode({"a": [0], "b": [0], "p": ["a"]}, DOMAIN, unit="p")._persons.identity[0].tolist()
        return Counter({r: n for r, n in multiset(table.clip(most, key)).items() if r[-1] != tuple(a)})

    assert clip_others(rows_of) == clip_others(others) == clip_others(others + [(r, "a") for r in new_rows])


def test_rows_without_a_person_do_not_count():
    table = encode({"a": [0, 1, 2], "b": [0, 0, 0], "p": ["x", None, "x"]}, DOMAIN, unit="p")
    assert sum(multiset(table.clip(5, KEY)).values()) == 2
    assert sum(multiset(table).values()) == 2


def test_without_persons_keeps_the_rows_and_forgets_whose_they_are():
    table = make([(0, 1), (0, 1), (2, 0)], ["x", "x", "y"]).without_persons()
    assert multiset(table) == Counter({(0, 1): 2, (2, 0): 1})
    assert table.unit_column is None
    # Rows are now on their own: with enough keys the two of x part.
    assert any(len([b for b in table.split(2, secrets.token_bytes(16)) if multiset(b)[(0, 1)] == 1]) for _ in range(60))


def test_blocks_are_uniform_for_equal_rows_and_for_persons():
    n = 40_000
    tables = {"equal rows": make([(1, 1)] * n), "persons": make([(0, 0)] * n, list(range(n)))}
    for what, table in tables.items():
        for blocks in (2, 7):
            sizes = [sum(multiset(b).values()) for b in table.split(blocks, secrets.token_bytes(16))]
            assert stats.chisquare(sizes).pvalue > REJECT, what
    skewed = coins.block_of(coins.keyed_hash(KEY, [np.arange(n, dtype=np.uint64)]) // np.uint64(10) * np.uint64(9), 7)
    assert stats.chisquare(np.bincount(skewed, minlength=7)).pvalue < REJECT  # the test can fail


@pytest.mark.parametrize(
    ("rate", "wrong"), [(Fraction(1, 10), 0.08), (Fraction(1, 2), 0.45), (Fraction(97, 100), 0.95)]
)
def test_the_sampling_rate_is_right(rate, wrong):
    n = 40_000
    kept = sum(multiset(make([(1, 1)] * n).sample(rate, secrets.token_bytes(16))).values())
    assert stats.binomtest(kept, n, float(rate)).pvalue > REJECT
    assert stats.binomtest(kept, n, wrong).pvalue < REJECT  # fourteen standard deviations away, or more


def test_extreme_rates():
    table = make([(0, 0)] * 100)
    assert sum(multiset(table.sample(Fraction(1), KEY)).values()) == 100
    assert sum(multiset(table.sample(Fraction(1, 2**60), KEY)).values()) == 0
    coin = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert coins.is_heads(coin, Fraction(1, 2)).tolist() == [True, True, False, False]
    assert coins.is_heads(coin, Fraction(1)).all()
    assert coins.block_of(coin, 4).tolist() == [0, 1, 2, 3]


def test_clipping_chooses_uniformly_among_rows_duplicates_included():
    """One person with rows x, x, y, z keeps two: each of the pairs {xx, xy, xz, yz} in proportion 1 : 2 : 2 : 1."""
    table = make([(0, 0), (0, 0), (1, 0), (2, 0)], ["p"] * 4)
    outcomes: Counter = Counter()
    for _ in range(3000):
        kept = tuple(sorted(r[0] for r in multiset(table.clip(2, secrets.token_bytes(16))).elements()))
        outcomes[kept] += 1
    kinds = [(0, 0), (0, 1), (0, 2), (1, 2)]
    assert set(outcomes) == set(kinds)
    observed = [outcomes[k] for k in kinds]
    assert stats.chisquare(observed, [500, 1000, 1000, 500]).pvalue > REJECT
    assert stats.chisquare(observed, [750, 750, 750, 750]).pvalue < REJECT


def test_different_keys_make_independent_blocks():
    n = 4000
    table = make([(0, 0)] * n, list(range(n)))
    where = []
    for _ in range(2):
        blocks = table.split(2, secrets.token_bytes(16))
        first = {person for *_, person in multiset(blocks[0])}
        where.append(np.array([tuple(p) in first for p in table._persons.identity.tolist()]))
    agree = int((where[0] == where[1]).sum())
    assert stats.binomtest(agree, n, 0.5).pvalue > REJECT


def test_rows_of_more_than_64_bits_are_told_apart():
    """Any two that differ in one column have words that differ, and coins of their own."""
    columns = 150
    rows = np.vstack([np.zeros((1, columns)), np.eye(columns)]).astype(np.uint8)
    words = coins.words_of(list(rows.T), [2] * columns)
    assert len(set(zip(*(w.tolist() for w in words), strict=True))) == columns + 1


def test_equal_rows_are_numbered_through_all_blocks(monkeypatch):
    """A table that comes in blocks has the coins of one that comes at once."""
    monkeypatch.setattr(table_blocks, "_WAITING", 4)
    domain = Domain.of({"a": 2})
    pieces = [table_blocks.Block({"a": np.zeros(5, dtype=np.uint8)}, None, 5) for _ in range(6)]
    key = secrets.token_bytes(16)
    coins_seen = np.concatenate([c for _, c in table_blocks.coins_of(pieces, domain, key)])
    assert len(set(coins_seen.tolist())) == 30
