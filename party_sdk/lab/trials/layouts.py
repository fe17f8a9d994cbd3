"""Who holds what: a layout as people say it, or as the tables themselves show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, TypeAlias, TypeGuard

from pydantic import ValidationError

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.validation_messages import invalid_parameters
from clustering_protocols.numerics.data_source import (
    DataSource,
    MatrixSource,
    SparseSource,
)
from clustering_protocols.terms.terms import Layout

Lattice: TypeAlias = tuple[int, int]
"""Row groups × column groups."""

Said: TypeAlias = Literal["rows", "columns"] | Lattice | Layout
"""A layout as people say it."""

_FORMS = (
    "layout is 'rows' (each party holds other rows), 'columns' (each holds other columns "
    "of the same rows), a pair (row groups, column groups), or a Layout"
)


def regular(groups: Lattice) -> Layout:
    """Return a regular layout; :class:`InvalidParameters` where there is no such one."""
    try:
        return Layout.lattice(*groups)
    except ValidationError as error:
        raise invalid_parameters(error) from None


def usual_lattice(protocol: str, rows: int | None, columns: int | None) -> Lattice:
    """Return numbers of row and column groups, where not both are said, to try a method.

    Three row groups, or column groups where the protocol takes no others: as many as all
    of them can do with.
    """
    ways = catalogue.protocol(protocol).methods
    can = {kind for way in ways for kind in way.partitionings}
    by_rows = not can or "horizontal" in can
    columns = columns or (1 if rows != 1 and (rows or by_rows) else 3)
    if rows is None:
        rows = 3 if columns == 1 else 2 if "mixed" in can else 1
    return rows, columns


def layout_of(said: Said, n_tables: int) -> Layout:
    """Return the layout of so many tables.

    Raises InvalidParameters if it is no layout, or of another number of parties.
    """
    if isinstance(said, str):
        if said not in {"rows", "columns"}:
            raise InvalidParameters(f"{_FORMS}, not {said!r}.")
        return regular((n_tables, 1) if said == "rows" else (1, n_tables))
    layout = read_layout(said)
    if len(layout.slots) != n_tables:
        raise InvalidParameters(
            f"The layout has {len(layout.slots)} slots, and there are {n_tables} tables: "
            "bring one for each slot."
        )
    return layout


def layout_of_one(said: Said | None) -> Layout:
    """Return the layout to which one table is dealt out.

    Raises InvalidParameters if it does not say how many parties there are.
    """
    if said is None or isinstance(said, str):
        raise InvalidParameters(
            "One table is dealt out to parties: say to how many, as in layout=(3, 1) "
            "for three row groups. Tables that parties hold come in a list."
        )
    return read_layout(said)


def read_layout(said: Layout | Lattice) -> Layout:
    """Return a layout, or the regular one of a pair; :class:`InvalidParameters`."""
    if isinstance(said, Layout):
        return said
    if _is_pair(said):
        return regular((int(said[0]), int(said[1])))
    raise InvalidParameters(f"{_FORMS}, not {said!r}.")


def _is_pair(said: Any) -> TypeGuard[Lattice]:
    """Return whether callers gave what the type says: two numbers above 0."""
    if not isinstance(said, tuple | list) or len(said) != 2:
        return False
    return all(map(_is_number, said))


def _is_number(groups: Any) -> bool:
    """Return whether it is a whole number above 0, of numpy too."""
    is_whole = isinstance(groups, Integral) and not isinstance(groups, bool)
    return is_whole and int(groups) > 0


def infer_layout(sources: Sequence[DataSource]) -> Layout:
    """Return the layout that tables show by themselves.

    Tables with the same columns are split by rows; tables without a common column are
    split by columns. Matrices have no names: those of the same width and of other
    lengths are split by rows, those of the same length and other widths by columns.

    Raises InvalidParameters if both could be meant.
    """
    if len(sources) < 2:
        raise InvalidParameters("A session has two parties or more: give their tables.")
    if any(isinstance(source, MatrixSource | SparseSource) for source in sources):
        by_rows, by_columns = _of_matrices(sources)
    else:
        names = [set(source.columns) for source in sources]
        by_rows = all(each == names[0] for each in names)
        by_columns = all(one.isdisjoint(other) for one, other in combinations(names, 2))
    if by_rows == by_columns:
        raise InvalidParameters(
            "The tables do not show whether parties hold other rows or other columns: "
            f"say it. {_FORMS[0].upper()}{_FORMS[1:]}."
        )
    return layout_of("rows" if by_rows else "columns", len(sources))


def _of_matrices(sources: Sequence[DataSource]) -> tuple[bool, bool]:
    widths = {len(source.columns) for source in sources}
    lengths = {source.n_rows for source in sources}
    return (
        len(widths) == 1 and len(lengths) > 1,
        len(lengths) == 1 and len(widths) > 1,
    )
