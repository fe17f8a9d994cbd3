"""The exponent of fuzzy c-means that fits the size of a table."""

from __future__ import annotations

import math

SMALLEST, LARGEST = 1.1, 2.0
"""Below 1.1, degrees are nearly 0 or 1; above 2, they are fuzzier than is usual."""


def exponent_by_size(n_rows: int, n_columns: int) -> float:
    """Return the least exponent at which rows without clusters show none, from 1.1 to 2.

    V. Schwämmle and O. N. Jensen, "A simple and fast method to determine the parameters
    for fuzzy c-means cluster analysis", 2010, equation 5. For few columns the equation
    gives more than the usual 2, which is then used.
    """
    n, d = max(n_rows, 1), max(n_columns, 1)
    of_rows = (1418.0 / n + 22.05) / d**2
    of_size: float = (12.33 / n + 0.243) * d ** (-0.0406 * math.log(n) - 0.1134)
    return min(max(1.0 + of_rows + of_size, SMALLEST), LARGEST)
