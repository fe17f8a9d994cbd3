"""Numerical limits and patterns that several packages check or report."""

from typing import Final

MAX_GROUP_SLOTS: Final = 250
"""The maximum total number of slots in a row group and a column group."""

JSON_BYTES: Final = 1 << 20
"""The default maximum size of a JSON body that the analyst accepts."""

BODY_BYTES: Final = 4 << 30
"""The default maximum size of a contribution that the analyst accepts."""

MINIMUM_MEMBERS: Final = 3
"""The minimum number of members of a masked sum; two could read each other's share."""

LEAST_OWN_ROWS: Final = 5
"""The minimum size of a local cluster whose mean a party sends as an initial centre."""

FEW_ROWS: Final = 10
"""The sum of fewer rows of a party reveals too much of each of them."""

MANY_ROWS: Final = 500_000
"""The largest number of rows for k-means++, which reads all rows once per cluster."""

MANY_NUMBERS: Final = 1 << 27
"""The largest number of values (1 GiB) that k-means++ holds in a single array."""


def fits_in_one_array(n_rows: int, n_features: int) -> bool:
    """Return whether a table is small enough for k-means++ to read it as one array."""
    return n_rows <= MANY_ROWS and n_rows * n_features <= MANY_NUMBERS


LARGEST_NUMBER: Final = 1e100
"""Largest magnitude of a number from others, so that sums of squares fit into float64."""

MANY_IN_A_GRAPH: Final = 100_000
"""The largest number of rows that spectral clustering does not group first.

The graph takes about 1.4 kB per row; the search for neighbours and eigenvectors takes
minutes, and grows faster than the number of rows.
"""

N_REPRESENTATIVES: Final = 10_000
"""The number of groups to which a larger table is reduced.

Their graph takes a few seconds; most of the time is spent comparing rows with groups.
"""


def count_graph_rows(n_rows: int) -> int:
    """Return the number of rows, or of groups of rows, in spectral clustering's graph."""
    return n_rows if n_rows <= MANY_IN_A_GRAPH else N_REPRESENTATIVES


def build_grouping_note(n_rows: int) -> dict[str, str]:
    """Return the note for a report on rows that were clustered as small groups."""
    sentence = (
        f"The {n_rows:,} rows were clustered as {count_graph_rows(n_rows):,} small groups; all "
        "rows of a group have one label."
    )
    return {"approximation": sentence}


NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,62}$"
"""The pattern of session ids and slot names, which appear in URLs and folder names."""

CONTROLS: Final = (
    r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
)
"""Control characters, for use inside a character class of a regular expression.

They are C0, DEL, C1, line separators, and the marks that change the direction of text.
"""
