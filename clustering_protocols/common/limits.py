"""Limits that more than one part checks, and tells its users."""

from typing import Final

MAX_GROUP_SLOTS: Final = 250
"""Most slots of a row group and a column group together."""

JSON_BYTES: Final = 1 << 20
"""Largest JSON that an analyst takes, unless its administrator says otherwise."""

BODY_BYTES: Final = 4 << 30
"""Largest contribution that an analyst takes, unless its administrator says otherwise."""

MINIMUM_MEMBERS: Final = 3
"""Fewest members of a masked sum: of two, each could take its own share off it."""

LEAST_OWN_ROWS: Final = 5
"""A party describes no cluster of its own with fewer rows, for others to start from."""

MANY_ROWS: Final = 500_000
"""Beyond these k-means++, whose passes are as many as clusters, is slow."""

MANY_NUMBERS: Final = 1 << 27
"""Beyond these, a gibibyte, k-means++ has too many rows × features to hold at once."""


def are_held(n_rows: int, n_features: int) -> bool:
    """Return whether rows are few enough for one array, from which k-means++ draws."""
    return n_rows <= MANY_ROWS and n_rows * n_features <= MANY_NUMBERS


MANY_IN_A_GRAPH: Final = 100_000
"""Beyond these, spectral clustering is that of means of small groups of rows.

The graph takes about 1.4 kB a row, and the search for neighbours and eigenvectors
minutes, which grow faster than the rows.
"""

N_REPRESENTATIVES: Final = 10_000
"""How many such groups: a graph of some seconds.

Each row is compared with all of them, which is what takes the time.
"""


def graph_rows(n_rows: int) -> int:
    """Return the rows of the graph of spectral clustering: all, or the means of groups."""
    return n_rows if n_rows <= MANY_IN_A_GRAPH else N_REPRESENTATIVES


def sampling_note(n_rows: int) -> dict[str, str]:
    """Return a report's note on rows that were clustered as small groups."""
    sentence = (
        f"The {n_rows:,} rows were clustered as {graph_rows(n_rows):,} small groups; all "
        "rows of a group have one label."
    )
    return {"approximation": sentence}


NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,62}$"
"""Of ids of sessions and names of slots, which stand in addresses and folders."""

CONTROLS: Final = (
    r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
)
"""What a terminal or a page obeys instead of showing it, for a class of characters.

C0, DEL, C1, ends of lines, and the marks that turn the direction of text.
"""
