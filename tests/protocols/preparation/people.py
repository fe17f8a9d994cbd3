"""Synthetic people with match keys, held by several parties."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.terms.terms import Layout

KEYS = ("given + surname + birth | date", "surname | soundex + birth | date", "phone")
COLUMNS = ("given", "surname", "birth", "phone")


class Person(NamedTuple):
    """Cells of a row, in the order of :data:`COLUMNS`."""

    given: str
    surname: str
    birth: str
    phone: str


def person(number: int) -> Person:
    """Return a person whom no other number is, by any of the keys."""
    year, day = divmod(number, 28)
    letters = "bdfglmprst"
    code = "".join(letters[int(digit)] for digit in f"{number:03}")
    return Person(
        f"given{code}", f"{code}a{code}", f"{1900 + year}-06-{1 + day:02}", f"0{number}"
    )


def rows_of(
    people: Sequence[Person], columns: Sequence[str] = COLUMNS, seed: int = 0
) -> MatrixSource:
    """Return two numbers of each person, and of the columns of the keys its cells."""
    rows = np.random.default_rng(seed).normal(size=(len(people), 2))
    ids = [join_parts([getattr(each, name) for name in columns]) for each in people]
    return MatrixSource(rows, [f"x{seed}-0", f"x{seed}-1"], ids=ids)


def parties(
    *held: Sequence[Person], columns: Sequence[str] = COLUMNS
) -> tuple[Layout, dict[str, MatrixSource]]:
    layout = Layout.lattice(1, len(held))
    given = zip(layout.names, held, strict=True)
    return layout, {
        slot: rows_of(people, columns, place)
        for place, (slot, people) in enumerate(given)
    }
