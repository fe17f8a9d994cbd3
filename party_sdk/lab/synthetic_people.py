"""Synthetic people in two hospitals, with realistic errors and the true matches.

Names have Zipf frequencies, so that some are common. The second hospital enters each
person again: with a typing error, another spelling, a new surname or address, or an
empty cell. Measurements form three clusters; each hospital has half of the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray


def _split_words(text: str) -> list[str]:
    return text.split()


COLUMNS: Final = ("given_name", "surname", "birth_date", "sex", "postcode")
_FEMALE: Final = _split_words(
    "Anna Maria Emma Sophie Laura Julia Lena Sarah Lisa Katharina Elena Johanna Clara "
    "Zoë Renée Ida Eva Martha Helene Charlotte Nina Paula Vera Olga Rosa Irene Agnes"
)
_MALE: Final = _split_words(
    "Paul Lukas Felix Jonas Max Leon David Jakob Simon Tobias Moritz Niklas Erik Oskar "
    "Anton Karl Emil Georg Martin Peter Thomas Stefan Jürgen André Hans Otto Viktor"
)
_BEGINNINGS: Final = _split_words(
    "Hoff Berg Stein Wald Roth Schwarz Neu Alt Ober Nieder Wein Kirch Brun Lang Kurz Grün "
    "Hart Winkel Acker Bach Born Busch Dorn Eich Feld Fisch Frei Gold Hag Heid Holz Kalt "
    "Kerst Klein Korn Lind Mühl Nord Rein Reh Sand Schön Sil Som Tann Tief Vogel Weid Zell"
)
_ENDINGS: Final = _split_words(
    "mann er meier bauer hauser hofer müller schmidt ing berger bach feld wald thal reuter "
    "huber kamp brink horst lein rich"
)
_POSTCODES: Final = tuple(str(70001 + 37 * number) for number in range(60))
_LETTERS: Final = "abcdefghijklmnoprstuvwz"
_OTHER_SPELLINGS: Final = (
    ("ü", "ue"), ("ö", "oe"), ("ä", "ae"), ("ë", "e"), ("é", "e"), ("mann", "man"),
    ("ck", "k"), ("th", "t"), ("schmidt", "schmitt"), ("meier", "mayer"), ("f", "ph"),
)  # fmt: skip
_ERRORS: Final[Mapping[str, float]] = {
    "slip": 0.06, "spelling": 0.06, "swapped": 0.01, "surname": 0.03, "moved": 0.10,
    "birth": 0.03, "empty": 0.03,
}  # fmt: skip
"""The probability with which each error occurs for one person."""

Cells = dict[str, str]


@dataclass(frozen=True, slots=True)
class Hospital:
    """The table of one hospital.

    people: int64 (n,); the person in each row, which is not a column of the table.
    """

    people: IntArray = field(repr=False)
    cells: Sequence[Cells] = field(repr=False)
    measured: FloatArray = field(repr=False)


def make_register(n_people: int, rng: np.random.Generator) -> list[Cells]:
    """Draw random people with names, birth date, sex and postcode."""
    surnames = [b + e for b in _BEGINNINGS for e in _ENDINGS]
    surnames = list(rng.permutation(surnames))
    family = _draw_words(surnames, n_people, rng)
    female = rng.random(n_people) < 0.5
    given_names = np.where(
        female, _draw_words(_FEMALE, n_people, rng), _draw_words(_MALE, n_people, rng)
    )
    earliest = np.datetime64("1935-01-01")
    birth = earliest + rng.integers(0, 80 * 365, n_people)
    postcode = rng.choice(_POSTCODES, n_people)
    rows = zip(
        given_names, family, birth, np.where(female, "f", "m"), postcode, strict=True
    )
    return [dict(zip(COLUMNS, map(str, row), strict=True)) for row in rows]


def make_hospitals(
    n_rows: int, common: float = 0.8, seed: int = 1
) -> tuple[Hospital, Hospital]:
    """Draw the tables of two hospitals, of ``n_rows`` rows each, that share people.

    common: the proportion of each hospital's people who are also in the other hospital.
    """
    rng = np.random.default_rng(seed)
    n_common = round(common * n_rows)
    register = make_register(2 * n_rows - n_common, rng)
    n_own = n_rows - n_common
    people = rng.permutation(n_rows)
    other_people = rng.permutation(
        np.r_[np.arange(n_common), n_rows + np.arange(n_own)]
    )
    centres = 4.0 * rng.normal(size=(3, 6))
    X = centres[rng.integers(0, 3, len(register))]
    X += rng.normal(size=X.shape)
    entries = [_record_with_errors(register[person], rng) for person in other_people]
    return (
        Hospital(people, [register[person] for person in people], X[people, :3]),
        Hospital(other_people, entries, X[other_people, 3:]),
    )


def _draw_words(words: Sequence[str], size: int, rng: np.random.Generator) -> list[str]:
    weights = 1 / np.arange(3, len(words) + 3)
    drawn_words: list[str] = rng.choice(words, size, p=weights / weights.sum()).tolist()
    return drawn_words


def _record_with_errors(person: Cells, rng: np.random.Generator) -> Cells:
    cells = dict(person)
    for error, share in _ERRORS.items():
        if rng.random() < share:
            cells |= _make_error(error, cells, rng)
    return cells


def _make_error(error: str, cells: Cells, rng: np.random.Generator) -> Cells:
    names = COLUMNS[:2]
    if error == "slip":  # a typing error
        column = names[rng.integers(2)]
        text = cells[column]
        cut, letter = rng.integers(1, len(text)), rng.choice(list(_LETTERS))
        kind = rng.integers(4)
        after = text[cut + 1 :]
        swapped = after[:1] + text[cut] + after[1:]
        ends = (letter + after, after, letter + text[cut:], swapped)
        return {column: text[:cut] + ends[kind]}
    if error == "spelling":
        spellings = {column: cells[column] for column in names}
        for spelling, variant in _OTHER_SPELLINGS:
            spellings = {
                c: text.replace(spelling, variant) for c, text in spellings.items()
            }
        return spellings
    if error == "swapped":
        return dict(
            zip(names, (cells[column] for column in reversed(names)), strict=True)
        )
    if error == "surname":
        return {"surname": str(rng.choice(_BEGINNINGS)) + str(rng.choice(_ENDINGS))}
    if error == "moved":
        return {"postcode": str(rng.choice(_POSTCODES))}
    if error == "birth":
        year, month, day = cells["birth_date"].split("-")
        if rng.random() < 0.5 and int(day) <= 12:
            month, day = day, month
        else:
            day = f"{rng.integers(1, 29):02}"
        return {"birth_date": f"{year}-{month}-{day}"}
    return {COLUMNS[rng.integers(len(COLUMNS))]: ""}
