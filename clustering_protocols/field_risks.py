"""Fields that show in rows up to a motion, as far as the data dictionary tells them.

Rounded numbers lie on a lattice, two values and levels on parallel planes, and rows that
were imputed alike in one plane. A motion leaves all of these: who has the rows up to a
motion may find the axes of such fields (``tests/protocols/omnifc/test_rounded.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Schema

_MOST_NAMES: Final = 5


def sentences(
    dictionary: Sequence[Schema], plans: Sequence[ColumnPlan] = ()
) -> list[str]:
    """Return what an analyst that has rows up to a motion may find, a text each.

    dictionary: of each column group.
    plans: what becomes of the fields of each column group, where the terms say it.
    """
    found = [_of_rounded(dictionary, plans), _of_few_values(dictionary)]
    found.append(_of_imputed(plans))
    return [text for text in found if text]


def _of_rounded(dictionary: Sequence[Schema], plans: Sequence[ColumnPlan]) -> str:
    curved = set(_logarithms(plans))
    names = [
        field.name
        for schema in dictionary
        for field in schema.fields
        if field.last_digit is not None and field.name not in curved
    ]
    if not names:
        return ""
    return f"Rounded numbers may show the analyst which directions are {_list_names(names)}."


def _of_few_values(dictionary: Sequence[Schema]) -> str:
    names = [
        field.name
        for schema in dictionary
        for field in schema.fields
        if field.is_category or field.type == "boolean"
    ]
    if not names:
        return ""
    return (
        "Yes or no and levels may show the analyst which directions are "
        f"{_list_names(names)}. Leave out what must not show."
    )


def _of_imputed(plans: Sequence[ColumnPlan]) -> str:
    names = [fill.name for plan in plans for fill in plan.fills]
    if not names:
        return ""
    return (
        "Rows with the same imputed value may show the analyst which direction is "
        f"{_list_names(names, 'or')}. With missing 'drop', such rows take no part."
    )


def _logarithms(plans: Sequence[ColumnPlan]) -> Iterator[str]:
    """Yield fields whose logarithm is taken: what was rounded is even no more."""
    for plan in plans:
        yield from (
            field.name
            for field in plan.schema.fields
            if plan.preparation.of(field).log1p
        )


def _list_names(names: Iterable[str], joint: str = "and") -> str:
    """Return names for people: the first five, and how many more there are."""
    quoted = [repr(name) for name in names]
    shown, more = quoted[:_MOST_NAMES], len(quoted) - _MOST_NAMES
    if more > 0:
        return f"{', '.join(shown)} {joint} {more} more"
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} {joint} {shown[-1]}"
