"""Numbers moved by at most half their last digit, so that rounding shows no axes.

Rounded numbers lie on a lattice, and a motion leaves it one: who has rows up to a motion
finds the fields in it, with their units. A cell moves by a uniform share of half the last
digit that the dictionary tells; it follows from a secret of its home, the row and the field
alone, so that no second session averages it away. Yes or no and levels stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from clustering_protocols.arrays import FloatArray, WordArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.randomness import derive_key
from clustering_protocols.recipe import Plan
from clustering_protocols.schema import Field, Schema


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JitteredRows:
    """A data source whose numbers are moved by at most half their last digit.

    Attributes
    ----------
    source : DataSource
        Fields as the dictionary describes them, in its order; NaN is no value.
    schema : Schema
    key : bytes
        32 secret bytes of the home, for this use alone.
    words : uint64 array of shape (n,)
        One of each row, the same in every session.
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
                if (digit := each.last_digit) is not None:
                    shares = _shares(derive_key(self.key, "jitter", each.name), words)
                    moved[:, place] = _moved(batch[:, place], shares * digit / 2, each)
            begin += len(batch)
            yield moved


def check(dictionary: Sequence[Schema]) -> None:
    """Refuse to move numbers whose last digit no dictionary tells.

    Raises
    ------
    InvalidParameters
        It names the field.
    """
    if not dictionary:
        raise InvalidParameters(
            "jitter: a dictionary has to say how many decimals each number has."
        )
    for each in (one for schema in dictionary for one in schema.fields):
        numeric = not (each.is_category or each.type == "boolean")
        if numeric and each.last_digit is None:
            raise InvalidParameters(
                f"jitter: the dictionary does not say how many decimals {each.name!r} "
                "has (decimals)."
            )


def check_prepared(plans: Sequence[Plan]) -> None:
    """Refuse to fill missing values: rows that were filled alike would show the field."""
    for name in (fill.name for plan in plans for fill in plan.fills):
        raise InvalidParameters(
            f"jitter: missing values of {name!r} are filled with one number, which shows "
            "the field. Leave such rows out (missing 'drop')."
        )


def _shares(key: bytes, words: WordArray) -> FloatArray:
    """Return numbers (n,) between -1 and 1: AES as a keyed function of the words."""
    blocks = np.zeros((len(words), 2), dtype="<u8")
    blocks[:, 0] = words
    # one block a word and no message: what ECB shows of repeats is meant here
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  see above
    drawn = np.frombuffer(encryptor.update(blocks.tobytes()), dtype="<u8")[::2]
    return np.asarray(2.0 * (drawn >> np.uint64(11)) / 2.0**53 - 1.0)


def _moved(values: FloatArray, by: FloatArray, each: Field) -> FloatArray:
    """Return values (n,) moved, inwards where the declared range ends."""
    low, high = each.bounds
    moved = values + by
    outside = (moved < low) | (moved > high)
    return np.where(outside, values - by, moved)
