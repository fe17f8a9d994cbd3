"""How large the numbers of a party may be."""

import numpy as np
import pytest

from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.common.limits import LARGEST_NUMBER as LARGEST
from clustering_protocols.shared_stages.statistics import magnitudes


@pytest.mark.parametrize("value", [0.0, 1e99, LARGEST, -LARGEST])
def test_numbers_whose_squares_add_up_are_taken(value: float) -> None:
    magnitudes.check_magnitudes("It", np.empty(0), np.array([[0.0, value]]))


@pytest.mark.parametrize(
    "value", [np.nextafter(LARGEST, np.inf), -1e300, np.inf, np.nan]
)
@pytest.mark.parametrize("place", [0, 1])
def test_larger_numbers_are_refused_wherever_they_stand(
    value: float, place: int
) -> None:
    arrays = [np.zeros(3), np.zeros((2, 2))]
    arrays[place].flat[-1] = value
    with pytest.raises(InvalidArray, match=r"It holds numbers larger than 1e\+100"):
        magnitudes.check_magnitudes("It", *arrays)
