"""Rounding steps are 1, 2 or 5 times a power of ten."""

from decimal import Decimal

import numpy as np
import pytest

from clustering_protocols.numerics.round_numbers import round_down, round_up

EXACT = [
    (0.05, 0.05, 0.05),
    (0.0501, 0.1, 0.05),
    (1.0, 1.0, 1.0),
    (1.5, 2.0, 1.0),
    (2.5, 5.0, 2.0),
    (5.1, 10.0, 5.0),
    (123.0, 200.0, 100.0),
    (3e-9, 5e-9, 2e-9),
]


@pytest.mark.parametrize(("number", "above", "below"), EXACT)
def test_round_numbers_above_and_below(
    number: float, above: float, below: float
) -> None:
    assert round_up(np.array([number])).tolist() == [above]
    assert round_down(number) == below


def test_what_is_rounded_is_one_two_or_five_and_nearest() -> None:
    numbers = 10.0 ** np.random.default_rng(0).uniform(-200, 200, 500)
    for number, above in zip(numbers, round_up(numbers), strict=True):
        assert Decimal(repr(float(above))).normalize().as_tuple().digits in {
            (1,),
            (2,),
            (5,),
        }
        assert number <= above <= 2.5 * number
        assert number / 2.5 <= round_down(float(number)) <= number


def test_numbers_that_differ_by_rounding_have_one_step() -> None:
    """Members of a sum have it from machines that differ in the last bits."""
    assert round_down(np.nextafter(0.2, 0)) == round_down(0.2) == 0.2


def test_nothing_and_the_extremes() -> None:
    assert round_up(np.array([[0.0, 2.0]])).tolist() == [[0.0, 2.0]]
    assert round_up(np.array([1e-320])).tolist() == [1e-300]
    assert round_up(np.array([6e300, np.inf])).tolist() == [5e300, 5e300]
