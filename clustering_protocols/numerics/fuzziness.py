"""The fuzziness exponent of fuzzy c-means, chosen by the size of a table."""

from __future__ import annotations

import math

SMALLEST, LARGEST = 1.1, 2.0
"""Below 1.1, memberships are nearly 0 or 1; above 2, they are unusually fuzzy."""


def exponent_by_size(n_rows: int, n_columns: int) -> float:
    """Return the smallest exponent (1.1 to 2) at which random rows show no clusters.

    V. Schwämmle and O. N. Jensen, "A simple and fast method to determine the parameters
    for fuzzy c-means cluster analysis", 2010, equation 5. With few columns, the
    equation exceeds the customary value 2, which is then used instead.
    """
    n, d = max(n_rows, 1), max(n_columns, 1)
    of_rows = (1418.0 / n + 22.05) / d**2
    of_size: float = (12.33 / n + 0.243) * d ** (-0.0406 * math.log(n) - 0.1134)
    return min(max(1.0 + of_rows + of_size, SMALLEST), LARGEST)
