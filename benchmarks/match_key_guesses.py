"""Whom guesses name at another hospital, when rows are linked by match keys.

    python -m benchmarks.match_key_guesses [--people 100000] [--rows 5000]

A made city has a register of names, birth dates, sex and postcodes. One hospital holds some
of its people, a second one others; half are common. Who guesses has the register, and wants
to know who of the others is at the first hospital. Equal values have equal tokens, whatever
the keys are, so that the guesses are compared as values.

one key       a leader holds the only key, as for exact ids, and colludes with the analyst:
              every value can be tested.
in turn       every party has a key: what a guesser enters is bounded, one value for each of
              its rows and match keys. With the analyst it reads which values meet.
alone         the same party without the analyst: it reads which of its rows are linked, and
              not by which key.

Named is who is not common, and whose row a guess tells from all other people.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.identifiers import join
from clustering_protocols.shared_stages.alignment.match_keys.key_values import (
    KeyValues,
    key_values,
)
from clustering_protocols.shared_stages.alignment.match_keys.match_key import columns_of
from clustering_protocols.shared_stages.alignment.params import Alignment
from party_sdk.lab.made_people import COLUMNS, make_register
from party_sdk.tables.linkage import candidate_keys, person_columns


def values_of(
    register: Sequence[dict[str, str]], people: IntArray, keys: Sequence[str]
) -> list[KeyValues]:
    """Return the values of the keys of some people."""
    columns = columns_of(keys)
    ids = [join([register[person][name] for name in columns]) for person in people]
    return key_values(ids, keys, Alignment().normalisation)


def count_named(
    own: Sequence[KeyValues],
    guessed: Sequence[KeyValues],
    strangers: IntArray,
    entered: Sequence[IntArray],
) -> int:
    """Return how many strangers are named by the people that are entered for each key.

    own: the values of the first hospital's rows.
    guessed: the values of the whole register; of a shared one nobody is named.
    strangers: the rows of the first hospital that are not common, as people.
    """
    named: set[int] = set()
    for key, values, people in zip(own, guessed, entered, strict=True):
        held = {value for value in key.values if value is not None}
        named.update(p for p in people.tolist() if values.values[p] in held)
    return len(named.intersection(strangers.tolist()))


def main() -> int:
    """Print the shares; end with 1 if a form names more than its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=5_000)
    asked = parser.parse_args()
    n, rows = asked.people, asked.rows
    rng = np.random.default_rng(3)
    register = make_register(n, rng)
    keys = candidate_keys(person_columns(COLUMNS))
    drawn = rng.permutation(n)
    first, common = drawn[:rows], drawn[: rows // 2]
    strangers = np.setdiff1d(first, common)
    own = values_of(register, first, keys)
    everybody = values_of(register, np.arange(n), keys)
    others = np.setdiff1d(np.arange(n), common)

    def tell(form: str, entered: Sequence[IntArray], n_values: int) -> float:
        share = count_named(own, everybody, strangers, entered) / len(strangers)
        print(f"{form:44} {n_values:9,} values  {share:6.1%} named")
        return share

    guesses = rng.permutation(others)
    per_key = [guesses[k * rows : (k + 1) * rows] for k in range(len(keys))]
    twice = Counter(key.key for key in everybody if key.uniqueness < 0.99)
    print(
        f"{n:,} people, {rows:,} rows at either hospital, {len(keys)} keys"
        f" ({len(twice)} not nearly unique in the city)"
    )
    all_of = tell("one key, leader and analyst", [others] * len(keys), n * len(keys))
    bound = min(1.0, len(keys) * rows / len(others))
    turn = tell("in turn, a party and the analyst", per_key, len(keys) * rows)
    alone = tell(
        "in turn, a party alone", [guesses[:rows]] * len(keys), len(keys) * rows
    )
    print(f"{'in turn, the analyst alone':44} {0:9,} values  {0:6.1%} named")
    return int(not (alone < 2 * rows / n and turn <= 1.05 * bound and turn < all_of))


if __name__ == "__main__":
    sys.exit(main())
