"""Co-occurrences in long form: one line per object and item, with a count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unicodedata import normalize

import numpy as np
import pyarrow as pa
from pyarrow import compute

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.validation_messages import did_you_mean
from clustering_protocols.numerics.data_source import SparseSource
from party_sdk.tables.columns import Column
from party_sdk.tables.read_options import How
from party_sdk.tables.report import sentences
from party_sdk.tables.table_opening import read_cells


@dataclass(frozen=True, slots=True)
class LongForm:
    """Which columns hold object, item and count; without a count each line is one."""

    object: str
    item: str
    count: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the form that ``object,item`` or ``object,item,count`` names."""
        names = [name.strip() for name in text.split(",")]
        if len(names) not in {2, 3} or not all(names):
            raise InvalidData("The long form is OBJECT,ITEM or OBJECT,ITEM,COUNT.")
        return cls(*names)


def occurrences(
    table: pa.Table, form: LongForm, objects: Sequence[str] | None = None
) -> SparseSource:
    """Return co-occurrences as a sparse source of rows; nothing is densified.

    objects: the ids of all objects, which all sites must have alike; rows are in this
        order, and objects without a line have an empty row. By default those that occur
        here, sorted.

    Raises InvalidData if a column is missing or has gaps, or a line names an object that
        is not among ``objects``.
    """
    from scipy.sparse import coo_array  # not above: pages of tables need none

    for name in (form.object, form.item, form.count):
        if name is not None and name not in table.column_names:
            hint = did_you_mean(name, table.column_names)
            raise InvalidData(f"There is no column {name!r}.{hint}")
    rows, known = _codes(table, form.object)
    columns, items = _codes(table, form.item)
    counts = np.ones(len(table))
    if form.count is not None:
        try:
            given = table[form.count].cast(pa.float64())
        except pa.ArrowInvalid:
            raise InvalidData(f"{form.count!r} holds no numbers.") from None
        if given.null_count:
            raise InvalidData(f"{given.null_count} lines have no {form.count!r}.")
        counts = given.to_numpy()
    if objects is None:
        order = {name: index for index, name in enumerate(sorted(known))}
    else:
        order = {normalize("NFKC", name): index for index, name in enumerate(objects)}
    strangers = sum(name not in order for name in known)
    if strangers:
        raise InvalidData(f"{strangers} objects are not in the list of objects.")
    places = np.array([order[name] for name in known], dtype=np.int64)
    by_name = np.argsort(np.argsort(np.array(items)))
    shape = (len(order), len(items))
    R = coo_array((counts, (places[rows], by_name[columns])), shape=shape)
    return SparseSource(R, columns=sorted(items), ids=list(order))


def open_long(
    path: Path,
    form: LongForm,
    objects: Sequence[str] | None = None,
    how: How = How(),  # noqa: B008  frozen
) -> SparseSource:
    """Return a file of co-occurrences in long form as a source of sparse rows.

    path: a file with one line per object and item.
    form, objects: as for :func:`occurrences`.
    how: its dialect, mapping and guards count.
    """
    names = [name for name in (form.object, form.item, form.count) if name]
    columns = [Column(name, "words") for name in names[:2]]
    columns += [Column(name, "number") for name in names[2:]]
    excerpt = read_cells(
        path, How(dialect=how.dialect, mapping=how.mapping, allow=how.allow), columns
    )
    if excerpt.left_out:
        raise InvalidData(sentences(excerpt.left_out, excerpt.counts))
    if not excerpt.batches:
        raise InvalidData(f"{path.name!r} has no rows.")
    table = pa.Table.from_batches(excerpt.batches).rename_columns(names)
    return occurrences(table, form, objects)


def _codes(table: pa.Table, name: str) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Return for each line the number of its name, and the names."""
    column = compute.cast(table[name], pa.string()).combine_chunks()
    if column.null_count:
        raise InvalidData(f"{column.null_count} lines have no {name!r}.")
    coded = column.dictionary_encode()
    names = [normalize("NFKC", text) for text in coded.dictionary.to_pylist()]
    if len(set(names)) < len(names):
        raise InvalidData(f"Two spellings of one name in {name!r}.")
    return coded.indices.to_numpy(), names


def read_objects(path: Path) -> list[str]:
    """Return a list of object ids: one on each line of a text file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InvalidData(f"{path.name!r} is no readable list of objects.") from None
    return [line.strip() for line in lines if line.strip()]
