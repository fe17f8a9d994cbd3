"""A party's rows as values of match keys, and which of them may be compared.

A row has no value of a key where a cell is empty or stands for no value, or nothing is
left of it. A value that two rows of one party share says of neither which it is, so that
neither is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.shared_stages.alignment.identifiers import (
    Step,
    apply_steps,
    parts_of,
)
from clustering_protocols.shared_stages.alignment.match_keys.match_key import (
    KeyPart,
    columns_of,
    read_match_key,
)
from clustering_protocols.shared_stages.alignment.match_keys.steps import step_function
from clustering_protocols.shared_stages.alignment.stand_ins import without_stand_ins

_BETWEEN: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The values of one key, in the order of the rows.

    values: None where a row has none, also of those that rows share.
    n_filled: how many rows have a value.
    n_stand_ins: how many have none because a cell stands for no value.
    """

    key: str
    values: Sequence[str | None] = field(repr=False)
    n_filled: int
    n_stand_ins: int = 0

    @property
    def n_unique(self) -> int:
        """Return how many rows have a value that no other has."""
        return sum(value is not None for value in self.values)

    @property
    def uniqueness(self) -> float:
        """Return the share of the filled rows whose value no other row has."""
        return self.n_unique / self.n_filled if self.n_filled else 1.0

    def show(self, row: int) -> str:
        """Return a row's value as its own people read it; empty where it has none."""
        return (self.values[row] or "").replace(_BETWEEN, " + ")


def key_values(
    names: Sequence[str], keys: Sequence[str], normalisation: Sequence[Step]
) -> list[KeyValues]:
    """Return the values of match keys of a party's rows.

    names: the ids of the rows: of each the texts of :func:`columns_of` the keys.

    Raises InvalidData if an id has another number of parts.
    Raises GuardRefused if a library is missing.
    """
    parts = [read_match_key(key) for key in keys]
    cells = _read_cells(names, columns_of(keys), normalisation)
    values = {column: without_stand_ins(texts) for column, texts in cells.items()}
    stand_ins = {
        column: {
            row for row, text in enumerate(cells[column]) if text and not kept[row]
        }
        for column, kept in values.items()
    }
    columns = {p: _part_values(p, values) for key in parts for p in key}
    return [
        _compare(
            [columns[part] for part in key_parts],
            key,
            len(set().union(*(stand_ins[column] for column in columns_of([key])))),
        )
        for key, key_parts in zip(keys, parts, strict=True)
    ]


def check_uniqueness(found: Sequence[KeyValues], least: float) -> None:
    """Refuse a key whose values too many rows share.

    Raises InvalidData: with the share of each such key.
    """
    shared = [each for each in found if each.uniqueness < least]
    if shared:
        named = "; ".join(f"{e.key!r}: {e.uniqueness:.1%}" for e in shared)
        raise InvalidData(
            f"Values of match keys have to be nearly unique: of {least:.0%} of the rows "
            f"that have one. Here the share is smaller. {named}. Ask the coordinator "
            "for other keys: coterie table --link proposes some."
        )


def _read_cells(
    names: Sequence[str], columns: Sequence[str], steps: Sequence[Step]
) -> dict[str, list[str]]:
    rows = [parts_of(name) for name in names]
    if any(len(row) != len(columns) for row in rows):
        raise InvalidData(
            f"Match keys take the columns {', '.join(columns)} of each row, in this "
            "order, as its id columns."
        )
    by_column = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return {
        column: _each_once(cells, lambda text: apply_steps(text, steps))
        for column, cells in zip(columns, by_column, strict=True)
    }


def _part_values(part: KeyPart, cells: dict[str, list[str]]) -> list[str]:
    """Return the texts of a part; empty where a cell is, or nothing is left."""
    texts = cells[part.columns[0]]
    if len(part.columns) > 1:
        rows = zip(*(cells[name] for name in part.columns), strict=True)
        texts = [" ".join(row) if all(row) else "" for row in rows]
    steps = [step_function(step) for step in part.steps]
    return _each_once(texts, lambda text: reduce(lambda t, f: f(t), steps, text))


def _each_once(texts: Sequence[str], form: Callable[[str], str]) -> list[str]:
    """Return texts in another form, which is made once of those that are equal."""
    made = {
        text: form(text).replace(_BETWEEN, " ") if text else "" for text in set(texts)
    }
    return [made[text] for text in texts]


def _compare(columns: Sequence[Sequence[str]], key: str, n_stand_ins: int) -> KeyValues:
    rows = zip(*columns, strict=True)
    values = [_BETWEEN.join(row) if all(row) else None for row in rows]
    counted = Counter(value for value in values if value is not None)
    alone = [v if v is not None and counted[v] == 1 else None for v in values]
    return KeyValues(key, alone, counted.total(), n_stand_ins)
