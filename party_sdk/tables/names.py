"""Names of columns: cleaned, looked up, and guessed at where one does not exist."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import normal
from party_sdk.tables.report import format_names

IdColumns = str | Sequence[str] | None
UNNAMED = re.compile(r"Unnamed: \d+(_level_\d+)?")
TRUTHS = frozenset(
    {"class", "label", "target", "truth", "klasse", "cluster", "species"}
)


class Names:
    """The columns of a table: all of them, in their order, cleaned.

    A column without a name is called by its position, as pandas does.

    Raises InvalidData if two columns have the same name.
    """

    def __init__(self, given: Iterable[str]) -> None:
        found = list(given)
        self.all = tuple(
            normal(name) or f"Unnamed: {i}" for i, name in enumerate(found)
        )
        self._places = {name: place for place, name in enumerate(self.all)}
        if len(self._places) < len(self.all):
            counted = Counter(self.all)
            twice = sorted(name for name, count in counted.items() if count > 1)
            where = [str(i + 1) for i, name in enumerate(self.all) if name in twice[:1]]
            raise InvalidData(
                f"Two columns have the same name: {format_names(twice)}, columns "
                f"{', '.join(where[:10])}."
            )
        pairs = zip(self.all, found, strict=True)
        blank = [name for name, as_given in pairs if as_given.strip() != as_given]
        said = f"Blanks around the names of {format_names(blank)} were taken off."
        self.warnings = (said,) if blank else ()

    def position(self, name: str) -> int:
        """Return where a column stands.

        Raises InvalidData if there is none of that name; the sentence says what there
            is.
        """
        self.require([name])
        return self._places[normal(name)]

    def require(self, wanted: Iterable[str]) -> None:
        """Refuse names that no column has."""
        absent = [name for name in wanted if normal(name) not in self._places]
        if not absent:
            return
        near = [close for name in absent for close in _near(name, self.all)]
        hint = f" Did you mean {format_names(near)}?" if near else ""
        raise InvalidData(
            f"There is no column {', '.join(map(repr, absent))}.{hint} "
            f"There are {format_names(self.all)}."
        )


def _near(name: str, known: Sequence[str]) -> list[str]:
    folded = {other.casefold(): other for other in known}
    found = get_close_matches(normal(name).casefold(), folded, n=1, cutoff=0.6)
    return [folded[close] for close in found]


def normalise_id_columns(id_column: IdColumns) -> tuple[str, ...]:
    """Return the columns that name the rows; none where they have no names."""
    if id_column is None or isinstance(id_column, str):
        return () if id_column is None else (normal(id_column),)
    names = tuple(normal(name) for name in id_column)
    if len(set(names)) < len(names):
        raise InvalidData("A column names the rows twice.")
    return names


def choose_columns(
    names: Names, ids: Sequence[str], columns: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the columns to cluster: those that are chosen, or all but the ids."""
    names.require([*(columns or ()), *ids])
    named = set(ids)
    wanted = [
        clean for name in columns or names.all if (clean := normal(name)) not in named
    ]
    if columns and len(wanted) < len(columns):
        raise InvalidData("A column both names the rows and is to be clustered.")
    if len(set(wanted)) < len(wanted):
        raise InvalidData(
            f"{len(wanted)} columns need as many different names: one is chosen twice."
        )
    if not wanted:
        raise InvalidData("There is no column to cluster.")
    return tuple(wanted)


def maybe_truth(wanted: Iterable[str]) -> list[str]:
    """Return the columns that may hold what a clustering is to find."""
    return [name for name in wanted if name.casefold() in TRUTHS]
