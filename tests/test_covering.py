"""What is crossed: every two values are together in every run."""

from itertools import combinations

import pytest
from covering import every_pair


@pytest.mark.parametrize(("sizes", "most"), [((2, 3), 6), ((3, 3, 2), 9), ((3, 4, 2, 2), 13)])
def test_every_two_values_are_together_in_a_fast_one(sizes, most):
    settings = [[f"{i}{v}" for v in range(size)] for i, size in enumerate(sizes)]
    every = every_pair(*settings)
    assert len({p.values for p in every}) == len(every)
    fast = [p.values for p in every if not p.marks]
    assert len(fast) <= most
    together = {pair for values in fast for pair in combinations(values, 2)}
    for one, other in combinations(settings, 2):
        assert all((a, b) in together for a in one for b in other)
