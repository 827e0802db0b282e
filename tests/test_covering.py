"""Of crossed settings, every two values are together in every run; the others are tried with ``--slow``."""

from itertools import combinations, product

import pytest
from covering import covering


@pytest.mark.parametrize(("sizes", "most"), [((2, 3), 6), ((3, 3, 2), 9), ((3, 4, 2, 2), 13), ((7,), 7)])
def test_every_two_values_are_together(sizes, most):
    every = list(product(*map(range, sizes)))
    chosen = [every[i] for i in covering(every)]
    assert len(chosen) <= most
    together = {pair for values in chosen for pair in combinations(enumerate(values), 2)}
    for (i, one), (j, other) in combinations(enumerate(sizes), 2):
        assert all(((i, a), (j, b)) in together for a in range(one) for b in range(other))


@pytest.mark.crossed
@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b", "xyz")
@pytest.mark.parametrize(("c", "d"), [(1, 2), (3, 4)])
def test_some_are_left_to_slow_runs(a, b, c, d, request):
    """Where all of it was asked for: so many are fast, and this one is or is marked."""
    ours = [i for i in request.session.items if i.originalname == request.function.__name__]
    fast = [i.callspec.params for i in ours if not i.get_closest_marker("slow")]
    assert len(fast) <= 10 or len(ours) == 1
    if len(fast) > 1:
        assert {(p["a"], p["b"]) for p in fast} == set(product(range(3), "xyz"))
        assert {(p["b"], p["c"], p["d"]) for p in fast} == {(b, *e) for b in "xyz" for e in ((1, 2), (3, 4))}
