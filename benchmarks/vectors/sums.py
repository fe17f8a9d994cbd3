"""Layer: sums of three members, with a good tag and with bad ones."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import numpy as np

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.product import KnownParties, as_text, as_words, build_case
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.masks import add_tagged_shares
from clustering_protocols.secrecy.prime import P

_TRANSCRIPT: Final = sha256(b"told").hexdigest()
_NAME: Final = "phase-1"
_LARGEST: Final = 2**50
_WORDS: Final = ([5, -9, 2**48], [0, 2, -7], [11, -(2**40), 1])


def build_layer() -> Layer:
    """Return the layer."""
    parties = KnownParties(3)
    slots = parties.session.session.slots
    shares = [_share(slot, words) for slot, words in zip(slots, _WORDS, strict=True)]
    cases: list[VectorCase] = [
        *shares,
        build_case("the total", "10", "total", _read(_total(shares))),
        _share(slots[1], list(range(1100))),
        _too_few(),
    ]
    return Layer(
        layer="sums",
        about="Section 10: shares of three members, their total, and bad totals.",
        cases=[*cases, *_bad_totals(shares)],
    )


def _describe_sum(slot: int, **changes: Any) -> dict[str, Any]:
    parties = KnownParties(3)
    name = parties.session.session.slots[slot]
    return {**parties.describe(name, _TRANSCRIPT, _NAME), **changes}


def _share(slot: str, words: list[int]) -> VectorCase:
    parties = KnownParties(3)
    given = parties.describe(slot, _TRANSCRIPT, _NAME)
    text = as_text(np.array(words, np.int64).view(np.uint64))
    name = f"{len(words)} words of {slot}"
    return build_case(name, "10", "share", {**given, "words": text})


def _too_few() -> VectorCase:
    parties = KnownParties(2)
    slot = parties.session.session.slots[0]
    given = parties.describe(slot, _TRANSCRIPT, _NAME)
    return build_case(
        *("two members", "10", "share"),
        {**given, "words": ["1"]},
        fails="guard-refused",
    )


def _total(shares: list[VectorCase]) -> WordArray:
    return add_tagged_shares(as_words((each.output or {})["share"]) for each in shares)


def _read(total: WordArray, **changes: Any) -> dict[str, Any]:
    given = _describe_sum(1, largest=str(_LARGEST), total=as_text(total))
    return {**given, **changes}


def _bad_totals(shares: list[VectorCase]) -> list[VectorCase]:
    total = _total(shares)

    def changed(place: int, by: int) -> WordArray:
        """Return the total with a number added at a place."""
        found = total.copy()
        found[place] += np.uint64(by % 2**64)
        return found

    exchanged = total[[1, 0, 2, 3]]
    bad = {
        "a word is one more": _read(changed(0, 1)),
        "the tag is one more": _read(changed(-1, 1 if int(total[-1]) + 1 < P else -1)),
        "the tag is p more, the same residue": _read(changed(-1, P)),
        "two words are exchanged": _read(exchanged),
        "one share was not added": _read(_total(shares[:2])),
        "one share was added twice": _read(_total([*shares, shares[0]])),
        "the sum of another name": _read(total, name="phase-2"),
        "the sum of another round": _read(total, transcript="ab" * 32),
        "a word beyond the bound of this sum": _read(total, largest=str(2**40)),
    }
    return [
        build_case(name, "10", "total", given, fails="protocol-failed")
        for name, given in bad.items()
    ]
