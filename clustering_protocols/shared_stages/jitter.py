"""Numbers moved by at most half their last digit, so that rounding shows no axes.

Rounded numbers lie on a lattice, and a motion leaves it one: who has rows up to a motion
finds the fields in it, with their units. A cell moves by a uniform share of half the last
digit that the dictionary tells; it follows from a secret of its home, the row and the field
alone, so that no second session averages it away. Without ids a row is known by its
clustered cells: sessions over other variables move it anew. Yes or no and levels stay as
they are, and so do variables that are only described: no motion shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import derive_key
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.schema import Field, Schema


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JitteredRows:
    """A data source whose numbers are moved by at most half their last digit.

    source: fields as the dictionary describes them, in its order; NaN is no value.
    key: 32 secret bytes of the home, for this use alone.
    words: uint64 (n,); one of each row, the same in every session.
    """

    source: DataSource = field(repr=False)
    schema: Schema = field(repr=False)
    key: bytes = field(repr=False)
    words: WordArray = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return self.source.n_rows

    @property
    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.source.columns

    @property
    def ids(self) -> Sequence[str] | None:
        """Return the ids of the rows."""
        return self.source.ids

    def batches(self) -> Iterator[FloatArray]:
        """Yield the rows, moved; NaN stays NaN."""
        begin = 0
        for batch in self.source.batches():
            moved = np.array(batch)
            words = self.words[begin : begin + len(batch)]
            for place, each in enumerate(self.schema.fields):
                digit = each.last_digit
                if digit is not None and each.role == "cluster":
                    shares = _shares(derive_key(self.key, "jitter", each.name), words)
                    moved[:, place] = _move_values(
                        batch[:, place], shares * digit / 2, each
                    )
            begin += len(batch)
            yield moved


def check(dictionary: Sequence[Schema]) -> None:
    """Refuse to move numbers whose last digit no dictionary tells.

    Raises InvalidParameters: it names the field.
    """
    if not dictionary:
        raise InvalidParameters(
            "a dictionary has to say how many decimals each number has.", field="jitter"
        )
    for each in (one for schema in dictionary for one in schema.fields):
        numeric = not (each.is_category or each.type == "boolean")
        if numeric and each.last_digit is None:
            raise InvalidParameters(
                f"the dictionary does not say how many decimals {each.name!r} "
                "has (decimals).",
                field="jitter",
            )


def check_prepared(plans: Sequence[ColumnPlan]) -> None:
    """Refuse to fill missing values: rows that were filled alike would show the field."""
    for name in (fill.name for plan in plans for fill in plan.fills):
        raise InvalidParameters(
            f"missing values of {name!r} are filled with one number, which shows "
            "the field. Leave such rows out (missing 'drop').",
            field="jitter",
        )


def _shares(key: bytes, words: WordArray) -> FloatArray:
    """Return numbers (n,) between -1 and 1: AES as a keyed function of the words."""
    blocks = np.zeros((len(words), 2), dtype="<u8")
    blocks[:, 0] = words
    # one block a word and no message: what ECB shows of repeats is meant here
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  see above
    drawn = np.frombuffer(encryptor.update(blocks.tobytes()), dtype="<u8")[::2]
    return np.asarray(2.0 * (drawn >> np.uint64(11)) / 2.0**53 - 1.0)


def _move_values(values: FloatArray, by: FloatArray, each: Field) -> FloatArray:
    """Return values (n,) moved, inwards where the declared range ends."""
    low, high = each.bounds
    moved = values + by
    outside = (moved < low) | (moved > high)
    return np.where(outside, values - by, moved)
