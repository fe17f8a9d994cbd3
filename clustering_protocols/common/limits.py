"""Limits that several parts check or report."""

from typing import Final

MAX_GROUP_SLOTS: Final = 250
"""Most slots of a row group and a column group together."""

JSON_BYTES: Final = 1 << 20
"""Largest JSON body that an analyst accepts, unless its administrator sets another."""

BODY_BYTES: Final = 4 << 30
"""Largest contribution that an analyst accepts, unless its administrator sets another."""

MINIMUM_MEMBERS: Final = 3
"""Fewest members of a masked sum: each of two could read the other's share."""

LEAST_OWN_ROWS: Final = 5
"""Fewest rows in a party's own cluster that it describes as a start for others."""

MANY_ROWS: Final = 500_000
"""With more rows k-means++ is slow: it passes over them once per cluster."""

MANY_NUMBERS: Final = 1 << 27
"""With more rows × features (a gibibyte), k-means++ cannot hold one array of all rows."""


def fit_in_one_array(n_rows: int, n_features: int) -> bool:
    """Return whether k-means++ draws from one array of all rows."""
    return n_rows <= MANY_ROWS and n_rows * n_features <= MANY_NUMBERS


MANY_IN_A_GRAPH: Final = 100_000
"""With more rows, spectral clustering clusters the means of small groups of rows.

The graph takes about 1.4 kB a row; the search for neighbours and eigenvectors takes
minutes, and grows faster than the number of rows.
"""

N_REPRESENTATIVES: Final = 10_000
"""The number of groups whose means are clustered: their graph takes some seconds.

Most of the time goes into comparing each row with all groups.
"""


def graph_rows(n_rows: int) -> int:
    """Return how many rows spectral clustering's graph has: all, or one per group."""
    return n_rows if n_rows <= MANY_IN_A_GRAPH else N_REPRESENTATIVES


def sampling_note(n_rows: int) -> dict[str, str]:
    """Return a report's note on rows that were clustered as small groups."""
    sentence = (
        f"The {n_rows:,} rows were clustered as {graph_rows(n_rows):,} small groups; all "
        "rows of a group have one label."
    )
    return {"approximation": sentence}


NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,62}$"
"""The form of session ids and slot names, which are parts of URLs and of folders."""

CONTROLS: Final = (
    r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
)
"""Characters that a terminal or a page obeys instead of showing, for ``[…]`` of a regex.

C0, DEL, C1, line ends, and the marks that change the direction of text.
"""
