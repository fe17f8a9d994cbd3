"""Match keys of one party: proposals, a preview on its table, and its unlinked rows.

A proposed key is usable if enough rows have a value and almost no two rows share one.
Only when two parties link their rows does it become clear whether a key finds the same
people.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.identifiers import join_parts
from clustering_protocols.shared_stages.alignment.match_keys import (
    KeyValues,
    compute_key_values,
    key_columns,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from party_sdk.tables.columns import to_texts, without_codes
from party_sdk.tables.read_options import ReadOptions
from party_sdk.tables.report import KeyPreview
from party_sdk.tables.table import Table
from party_sdk.tables.table_opening import list_columns, open_source, read_excerpt
from party_sdk.tables.words import fold, fold_words

_ROLES: Final = {
    "number": "ssn socsecid socialsecuritynumber insurancenumber insuranceno kvnr "
    "versichertennummer versicherungsnummer nhsnumber nir ahv ahvnr bsn codicefiscale dni",
    "given": "given givenname firstname first forename vorname prénom prenom nombre nome "
    "voornaam",
    "surname": "surname lastname last familyname family nachname familienname nom apellido "
    "apellidos cognome achternaam",
    "birth": "birthdate dateofbirth dob birth birthday geburtsdatum gebdatum geboren "
    "datenaissance datedenaissance naissance fechanacimiento fechadenacimiento nacimiento "
    "datadinascita nascita geboortedatum",
    "sex": "sex gender geschlecht sexe genre sexo género sesso genere geslacht",
    "postcode": "postcode postalcode zip zipcode plz postleitzahl codepostal codigopostal "
    "cap",
    "city": "city town suburb place ort stadt wohnort ville ciudad città citta stad "
    "woonplaats",
    "house": "streetnumber housenumber houseno hausnummer hausnr",
    "street": "street address address1 streetname strasse straße anschrift adresse rue "
    "calle dirección via indirizzo straat",
    "phone": "phone telephone mobile telefon handy téléphone teléfono telefono telefoon",
    "mail": "mail email emailaddress",
}
_ROLE_BY_WORD: Final = {
    fold(word): role for role, words in _ROLES.items() for word in words.split()
}


def person_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return the column for each role of a person's data, such as ``surname``.

    A column whose entire name means the role takes precedence over one whose name
    merely contains such a word. If there are several, the first one is used.
    """
    names = list(columns)
    roles_by_name = {
        n: _ROLE_BY_WORD[key] for n in names if (key := fold(n)) in _ROLE_BY_WORD
    }
    columns_by_role = {role: name for name, role in reversed(roles_by_name.items())}
    for name in names:
        words = fold_words(name)
        roles = {_ROLE_BY_WORD[word] for word in words if word in _ROLE_BY_WORD}
        if name not in roles_by_name and len(roles) == 1:
            columns_by_role.setdefault(roles.pop(), name)
    return columns_by_role


_PARTS: Final = {
    "number": "{number} | no-punctuation",
    "given": "{given} | transliterate | no-punctuation",
    "surname": "{surname} | transliterate | no-punctuation",
    "names": "{given}, {surname} | transliterate | sorted-names",
    "given sound": "{given} | soundex",
    "surname sound": "{surname} | soundex",
    "given start": "{given} | transliterate | first:3",
    "surname start": "{surname} | transliterate | first:3",
    "birth": "{birth} | date",
    "year": "{birth} | year",
    "year and month": "{birth} | year-month",
    "month and day": "{birth} | month-day",
    "sex": "{sex} | first:1",
    "postcode": "{postcode} | no-punctuation",
    "city": "{city} | transliterate | no-punctuation",
    "street": "{street} | transliterate | no-punctuation",
    "phone": "{phone} | digits",
    "mail": "{mail}",
}
_KEYS: Final = (
    ("number",),
    ("given", "surname", "birth"),
    ("names", "birth"),
    ("given sound", "surname sound", "birth"),
    ("surname", "birth", "postcode"),
    ("given", "birth", "postcode"),
    ("given", "surname", "street"),
    ("birth", "city"),
    ("surname", "street", "postcode"),
    ("given", "street", "postcode"),
    ("birth", "street"),
    ("given", "surname", "phone"),
    ("birth", "phone"),
    ("birth", "mail"),
    ("surname", "mail"),
    ("given start", "surname start", "birth"),
    ("given", "surname", "year and month", "postcode"),
    ("given", "surname", "month and day", "postcode"),
    ("given sound", "birth", "sex", "postcode"),
    ("given", "surname", "year", "postcode"),
    ("given", "surname", "city"),
    ("birth", "postcode", "sex"),
    ("birth", "postcode"),
)
"""The parts of each possible match key, the most reliable key first."""


def propose_match_keys(table: Any, options: ReadOptions) -> tuple[KeyPreview, ...]:
    """Propose match keys from the columns that identify people, most reliable first.

    The result includes keys that are not usable: see :attr:`KeyPreview.is_usable`.

    Raises InvalidData if the table has no such columns or cannot be read.
    """
    roles = person_columns(list_columns(table, options))
    keys = candidate_keys(roles)
    name_columns = {fold(roles.get(role, "")) for role in ("given", "surname")}
    if name_columns & {"vorname", "nachname", "familienname"}:  # German column names
        keys = [key.replace("soundex", "cologne") for key in keys]
    if not keys:
        raise InvalidData(
            "No columns identify people: match keys need names, a birth date or an "
            "address. Rename columns, or write keys yourself, e.g. 'surname | soundex "
            "+ birth_date | date'."
        )
    return preview_match_keys(table, options, keys)


def preview_match_keys(
    table: Any, options: ReadOptions, keys: Sequence[str]
) -> tuple[KeyPreview, ...]:
    """Preview match keys on a table, using the default normalisation.

    Raises InvalidData if the table lacks a column of a key or cannot be read. Raises
    ValueError if a key is invalid.
    """
    ids = linking_ids(table, options, keys)
    return summarise_keys(compute_key_values(ids, keys, Alignment().normalisation))


def candidate_keys(roles: Mapping[str, str]) -> list[str]:
    """Return the match keys for which ``roles`` contains all columns."""
    keys = []
    for parts in _KEYS:
        transforms = [_PARTS[part] for part in parts]
        try:
            keys.append(" + ".join(part.format_map(roles) for part in transforms))
        except KeyError:
            continue
    return keys


def linking_ids(table: Any, options: ReadOptions, keys: Sequence[str]) -> list[str]:
    """Read the linking id of each row: the joined cells of all columns of the keys."""
    codes, columns = options.file_dialect.codes, key_columns(keys)
    ids: list[str] = []
    with open_source(table, options, columns) as source:
        batches = read_excerpt(source, naming=columns).batches
    for batch in batches:
        cells = [
            without_codes(to_texts(column), codes).to_pylist()
            for column in batch.columns
        ]
        ids += [join_parts(row) for row in zip(*cells, strict=True)]
    return ids


def summarise_keys(keys: Sequence[KeyValues]) -> tuple[KeyPreview, ...]:
    """Return the counts and the first three values of each key."""
    return tuple(
        KeyPreview(
            key=key.key,
            n_rows=len(key.values),
            n_filled=key.n_filled,
            n_unique=key.n_unique,
            n_stand_ins=key.n_stand_ins,
            first=tuple(key.readable_value(row) for row in range(len(key.values))[:3]),
        )
        for key in keys
    )


_MAX_SHOWN: Final = 10


class UnlinkedRow(NamedTuple):
    """A row that was not linked to any other party's row.

    line: its line number in a text file, or its row number in any other table.
    lacks: the positions, from 1, of the keys whose value is missing or not unique.
    word: what ``line`` counts: ``line`` or ``row``.
    """

    line: int
    lacks: tuple[int, ...]
    word: str


def find_unlinked_rows(
    keys: Sequence[KeyValues], data: DataSource, labels: IntArray
) -> list[UnlinkedRow]:
    """Return the rows that were not linked to other parties' rows by match keys."""
    rows = np.flatnonzero(labels < 0).tolist()
    word, lines = "row", [row + 1 for row in rows]
    if isinstance(data, Table):
        word, lines = data.locations.name_rows(rows)
    return [
        UnlinkedRow(
            line,
            tuple(n for n, key in enumerate(keys, 1) if key.values[row] is None),
            word,
        )
        for row, line in zip(rows, lines, strict=True)
    ]


def unlinked_to_csv(rows: Sequence[UnlinkedRow]) -> bytes:
    """Format unlinked rows as CSV: the line numbers, and which keys lack a value."""
    lines = [f"{row.line},{' '.join(map(str, row.lacks))}" for row in rows]
    return "\n".join(["line,keys without a value", *lines, ""]).encode()


def describe_unlinked(rows: Sequence[UnlinkedRow]) -> list[str]:
    """Describe at most ten unlinked rows, those that lack the most keys first."""
    if not rows:
        return []
    ordered = sorted(rows, key=lambda row: (-len(row.lacks), row.line))
    lines = [
        f"  {row.word} {row.line}: no value, or a shared one, of key "
        f"{', '.join(map(str, row.lacks))}"
        for row in ordered[:_MAX_SHOWN]
        if row.lacks
    ]
    n_complete = sum(not row.lacks for row in rows)
    more = "" if len(rows) <= _MAX_SHOWN else "; --json lists all"
    return [
        f"unlinked rows: {len(rows)}, of which {n_complete} have a value of every key{more}",
        *lines,
    ]
