"""Student's quantiles are SciPy's."""

from __future__ import annotations

import pytest
from scipy.special import stdtrit

from discreet.release.student import half_width


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 11, 40, 101, 1000])
@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.999])
def test_the_half_width_holds_so_much(freedom: int, level: float) -> None:
    assert half_width(freedom, level) == pytest.approx(stdtrit(freedom, (1 + level) / 2), rel=1e-11)
