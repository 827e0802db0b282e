"""Measurements know their noise: variances, widths and coverage are exact, and files come back as they went."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from discreet.domain import Attribute, Domain
from discreet.errors import FileFormatError, InputError, NotAReleaseError
from discreet.io.archive import read_archive, write_archive
from discreet.measurement import Measurement, Measurements, Noise
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.unit import Sensitivity

DOMAIN = Domain.of({"a": 2, "b": 3})


def law(kind, scale):
    """All whole numbers that matter, and their probabilities."""
    reach = math.ceil(60 * scale) + 5
    z = np.arange(-reach, reach + 1, dtype=float)
    weight = np.exp(-np.abs(z) / scale) if kind == "laplace" else np.exp(-(z**2) / (2 * scale**2))
    return z, weight / weight.sum()


KINDS = ["laplace", "gaussian"]
SCALES = [1 / 800, 1 / 600, 1 / 400, 0.05, 0.3, 0.5, 1.0, 2.5, 9.99, 10.01, 33.0, 999.0, 1001.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_variances_are_exact(kind, scale):
    z, p = law(kind, scale)
    exact = float((z**2 * p).sum())
    assert Noise(kind, scale).variance == pytest.approx(exact, rel=1e-9, abs=1e-80)
    assert Noise(kind, scale).standard_deviation == pytest.approx(math.sqrt(exact), rel=1e-9, abs=1e-40)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999])
def test_half_widths_are_the_least_that_cover(kind, scale, level):
    z, p = law(kind, scale)
    t = Noise(kind, scale).half_width(level)
    assert p[np.abs(z) <= t].sum() >= level - 1e-6
    if t > 0:
        assert p[np.abs(z) <= t - 1].sum() < level + 1e-6


@given(st.sampled_from(KINDS), st.floats(1e-5, 1e9), st.floats(0.01, 0.99))
def test_no_scale_is_too_small_or_too_large(kind, scale, level):
    noise = Noise(kind, scale)
    assert math.isfinite(noise.variance)
    if scale > 1:
        assert 0.5 < noise.variance / (scale**2 * (2 if kind == "laplace" else 1)) < 1.1
        assert 0 <= noise.half_width(level) < 10 * scale
    if scale < 0.01:
        assert noise.half_width(level) == 0


def test_large_gaussian_widths_need_no_memory():
    assert Noise("gaussian", 1e12).half_width(0.9) == pytest.approx(1.6448536e12, rel=1e-6)


def test_no_noise():
    assert Noise("none").variance == 0
    assert Noise("none").half_width() == 0


@pytest.mark.parametrize(
    ("kind", "scale"), [("uniform", 1.0), ("laplace", -1.0), ("laplace", math.nan), ("none", math.inf)]
)
def test_noise_that_is_none_of_ours(kind, scale):
    with pytest.raises(InputError, match="noise"):
        Noise(kind, scale)


@pytest.mark.parametrize("level", [0, 1, -0.5, math.nan])
def test_levels_lie_between_zero_and_one(level):
    with pytest.raises(InputError, match="level"):
        Noise("laplace", 1.0).half_width(level)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scale", "level"), [(2.0, 0.9), (15.0, 0.5), (15.0, 0.95)])
def test_intervals_cover_as_often_as_they_say(kind, scale, level):
    """Draws of the real noise around a known truth; the exact coverage is at least the level, and just above it."""
    truth = np.full(15_000, 500, dtype=np.int64)
    domain = Domain.of({"x": len(truth)})
    noisy = SecureGateway().add_noise(NoiseCall(kind, scale, Sensitivity(1, 1, 1, 1)), truth)
    grid = Fraction(1, 4)
    m = Measurement("x", noisy, Noise(kind, scale), domain, clique=("x",), grid=grid)
    low, high = m.interval(level)
    covered = int(((low <= 500 / 4) & (high >= 500 / 4)).sum())
    z, p = law(kind, scale)
    exact = p[np.abs(z) <= Noise(kind, scale).half_width(level)].sum()
    assert stats.binomtest(covered, len(truth), exact).pvalue > 1e-6
    assert level <= exact < level + 0.2
    assert m.standard_deviation == Noise(kind, scale).standard_deviation / 4


# -- tables --------------------------------------------------------------------------------------------------------


def example():
    return Measurements(
        [
            Measurement("a", np.array([3, -1]), Noise("laplace", 2.0), DOMAIN.project(["a"]), clique=("a",)),
            Measurement(
                "a × b",
                np.array([[2**40, 0, -5], [1, 2, 3]]),
                Noise("gaussian", 1.5),
                DOMAIN,
                clique=("a", "b"),
                cost={"kind": "gaussian", "scale": "1.5"},
            ),
            Measurement("sums", np.array([7]), Noise("laplace", 0.1), DOMAIN, grid=Fraction(1, 3)),
            Measurement.public(DOMAIN, (), 1000),
        ],
        {"unit": "one row", "budget": {"notion": "pure"}},
    )


def test_a_file_comes_back_as_it_went(tmp_path):
    before = example()
    before.save(tmp_path / "m.zip")
    after = Measurements.load(tmp_path / "m.zip")
    assert after.release == before.release
    assert len(after) == len(before)
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one.counts, other.counts)
        assert other.counts.dtype == np.int64
        for name in ("label", "noise", "domain", "clique", "grid", "origin", "cost"):
            assert getattr(one, name) == getattr(other, name), name
    assert repr(after) == repr(before)
    assert after.is_release


def test_what_was_peeked_at_is_in_the_file(tmp_path):
    domain = Domain.of({"a": Attribute.categorical("a", ["x", "y"], peeked={"levels"})})
    m = Measurement("a", np.zeros(2, dtype=int), Noise("laplace", 1.0), domain, clique=("a",))
    Measurements([m]).save(tmp_path / "m.zip")
    header, _ = read_archive(tmp_path / "m.zip")
    assert header["peeked"] == {"a": ["levels"]}
    assert Measurements.load(tmp_path / "m.zip").domain.peeked == {"a": ("levels",)}


@pytest.mark.parametrize("origin", ["exact", "research"])
def test_only_releases_and_public_knowledge_can_be_saved(tmp_path, origin):
    hidden = Measurement(
        "a", np.zeros(2, dtype=int), Noise("none"), DOMAIN.project(["a"]), clique=("a",), origin=origin
    )
    measurements = Measurements([*example(), hidden], example().release)
    assert not measurements.is_release
    with pytest.raises(NotAReleaseError, match=f"'a' carries no privacy guarantee.*{origin}"):
        measurements.save(tmp_path / "m.zip")
    assert list(tmp_path.iterdir()) == []


def damage(header, **changes):
    header["measurements"][0].update(changes)


@pytest.mark.parametrize(
    "change",
    [
        lambda h, a: h.update(kind="model"),
        lambda h, a: h.pop("domain"),
        lambda h, a: h.pop("release"),
        lambda h, a: h.update(measurements=5),
        lambda h, a: damage(h, noise="uniform"),
        lambda h, a: damage(h, scale=-1),
        lambda h, a: damage(h, scale="wide"),
        lambda h, a: damage(h, clique=["b"]),
        lambda h, a: damage(h, clique=["nowhere"]),
        lambda h, a: damage(h, columns=["nowhere"]),
        lambda h, a: damage(h, grid="a third"),
        lambda h, a: damage(h, grid="1/0"),
        lambda h, a: damage(h, grid="-1"),
        lambda h, a: damage(h, origin="trust me"),
        lambda h, a: a.pop("counts00000"),
        lambda h, a: a.update(counts00000=np.zeros(3, dtype=np.int64)),
        lambda h, a: a.update(counts00000=np.array([0.5, 1.0])),
    ],
)
def test_files_that_are_not_well_formed(tmp_path, change):
    example().save(tmp_path / "m.zip")
    header, arrays = read_archive(tmp_path / "m.zip")
    header, arrays = {k: v for k, v in header.items() if k != "arrays"}, dict(arrays)
    change(header, arrays)
    write_archive(tmp_path / "bad.zip", header, arrays)
    with pytest.raises(FileFormatError):
        Measurements.load(tmp_path / "bad.zip")


def test_counts_cannot_be_changed():
    counts = np.array([1, 2])
    m = Measurement("a", counts, Noise("laplace", 1.0), DOMAIN.project(["a"]), clique=("a",))
    counts[0] = 99
    assert m.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        m.counts[0] = 5
    with pytest.raises(AttributeError):
        m.label = "b"


def test_public_tables():
    m = Measurement.public(DOMAIN, ("b", "a"), np.arange(6).reshape(3, 2))
    assert m.clique == ("a", "b")
    assert m.counts.tolist() == [[0, 2, 4], [1, 3, 5]]  # the axes were in the order of the names given
    assert (m.origin, m.noise, m.label) == ("public", Noise("none"), "public a × b")
    low, high = m.interval()
    assert np.array_equal(low, high)
    for table, clique in ((np.zeros(2), ("b",)), (np.zeros((2, 3)), ("b", "a"))):
        with pytest.raises(InputError, match="wrong shape"):
            Measurement.public(DOMAIN, clique, table)
    for table in ([0.5, 1], [math.nan, 1], [math.inf, 1]):
        with pytest.raises(InputError, match="whole counts"):
            Measurement.public(DOMAIN, "a", table)


def test_finding_tables():
    measurements = example()
    assert measurements.table(["b", "a"]).label == "a × b"
    assert measurements.table([]).origin == "public"
    assert measurements.cliques == (("a",), ("a", "b"), ())
    assert measurements.domain == DOMAIN
    with pytest.raises(InputError, match=r"no table of \('b',\) was measured"):
        measurements.table("b")
    with pytest.raises(InputError, match="no measurements"):
        _ = Measurements([]).domain
    assert measurements[2].values.tolist() == [pytest.approx(7 / 3)]


def test_tables_of_the_wrong_shape_or_kind():
    with pytest.raises(InputError, match="must be whole numbers"):
        Measurement("a", np.array([0.5, 1]), Noise("none"), DOMAIN, clique=("a",))
    with pytest.raises(InputError, match="grid of 'a' must be positive"):
        Measurement("a", np.array([1, 1]), Noise("none"), DOMAIN, clique=("a",), grid=Fraction(-1))
    with pytest.raises(InputError, match="wrong shape"):
        Measurement("a", np.zeros(3, dtype=int), Noise("laplace", 1.0), DOMAIN, clique=("a",))
    with pytest.raises(InputError, match="no noise, so it is no release"):
        Measurement("a", np.zeros(2, dtype=int), Noise("none"), DOMAIN, clique=("a",))


def test_representations_say_how_noisy_a_table_is():
    assert repr(example()[0]) == "Measurement('a', 2 cells, laplace noise, standard deviation 2.8, release)"
    assert repr(example()[3]) == "Measurement('public total', 1 cell, no noise, public)"
