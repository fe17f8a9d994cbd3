"""Whether two contributions say the same, envelopes opened."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from clustering_protocols.common.errors import CoterieError, Malformed
from clustering_protocols.contract import SessionContext
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Envelope, Packet
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.secrecy.envelopes import Binding, open_envelope
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.terms.agreements import Agreement
from party_sdk.conformance.comparison import find_difference

TURNED: Final[Mapping[str, tuple[str, ...]]] = {"projections": ("rows", "anchors")}
"""By kind of contribution, arrays that a party may turn: its map is its own choice."""
ROUNDED: Final[Mapping[tuple[str, str], int]] = {
    ("moments", "share"): 1,
    ("profiles", "profile-share"): 1,
    ("race", "share"): 1,
    ("start", "group-distances"): 0,
    ("updates", "closing"): 1,
    ("updates", "distances"): 0,
    ("updates", "gathered"): 1,
    ("updates", "scattered"): 0,
    ("updates", "share"): 1,
}
"""Contributions, by stage and kind, whose words are rounded sums of real numbers.

With each: how many tags stand behind the words.
"""


class Bounds(NamedTuple):
    """Between which numbers those of an array lie, and of what they are multiples.

    high: None is the number of the party's rows.
    """

    low: float
    high: float | None
    step: float = 0.0

    def admit(self, array: NDArray[Any], n_rows: int) -> bool:
        """Return whether all numbers of an array are such."""
        high = n_rows if self.high is None else self.high
        inside = (array >= self.low) & (array <= high)
        whole = array % self.step == 0 if self.step else True
        return bool((inside & whole).all())


_REACH: Final = Bounds(-1e100, 1e100)
CHOSEN: Final[Mapping[str, Mapping[str, Bounds]]] = {
    "candidates": {"centroids": _REACH, "sizes": Bounds(0, None, 5)},
    "start-centroids": {"centroids": _REACH},
    "lane-starts": {"centroids": _REACH},
    "codes": {"codes": _REACH},
}
"""By kind of record, arrays that are a party's own choice within bounds."""
COUNTED: Final = frozenset({1, 2, 4, 6})
"""Sums of profiles that count, and have no real numbers."""
COUNTED_POWERS: Final = frozenset({1, 3, 5})
"""Phases of moments that count, or add nothing."""
TEXTS: Final[Mapping[str, tuple[str, ...]]] = {"profile-told": ("text",)}
"""By kind of contribution, arrays that hold JSON: what it says is compared."""
TOLERANCE: Final = 1e-9
"""How far floats of a contribution may be off, relative to the largest."""
UNITS: Final = 2**20
"""How far such words may be off: as far as rounding may lift a sum above its bound."""
_NO_ENTROPY: Final = bytes(32)


class Leeway(NamedTuple):
    """In what two right contributions may differ.

    turned: arrays that turn together.
    units: how far words may be off.
    chosen: kinds of records whose arrays are a choice within bounds.
    values: how many different numbers a column of such an array may have; 0 for any.
    """

    turned: tuple[str, ...] = ()
    units: int = 0
    chosen: tuple[str, ...] = ()
    values: int = 0


_NO_LEEWAY: Final = Leeway()


def leeway_of(asked: Packet, given: Packet, session: SessionContext) -> Leeway:
    """Return in what an answer to a task may differ from another that is right."""
    kind, params = given.header.record["kind"], session.params
    if isinstance(params, ProductQuantisation) and kind == "codes":
        return _leeway_of_codes(given, params)
    sealed = {each.label.kind for each in given.envelopes}
    return Leeway(
        turned=TURNED.get(kind, ()),
        units=UNITS if _is_rounded(asked, given, session) else 0,
        chosen=tuple(sorted(sealed & set(CHOSEN))),
    )


def _is_rounded(asked: Packet, given: Packet, session: SessionContext) -> bool:
    """Return whether machines may round the words of an answer in different ways."""
    stage, values = _stage(given), asked.header.record["values"]
    if (stage, given.header.record["kind"]) not in ROUNDED:
        return False
    if stage == "moments":  # all but logarithms are the same bits everywhere
        return values["phase"] not in COUNTED_POWERS and any(
            field.log1p
            for each in session.terms.preparation or ()
            for field in each.fields
        )
    return values.get("sum") not in COUNTED


def _leeway_of_codes(given: Packet, params: ProductQuantisation) -> Leeway:
    """Return it of codes: a codebook is a choice, unless each row can be a centre."""
    if params.privacy.mechanism != "none":
        return Leeway(chosen=("codes",))
    if len(given.arrays["codes"]) <= params.codebook_size:
        return _NO_LEEWAY
    return Leeway(chosen=("codes",), values=params.codebook_size)


def _stage(given: Packet) -> str:
    """Return the name of a contribution's stage, that of a run without its number."""
    return re.sub(r"-[0-9]+$", "", given.address.stage)


@dataclass(frozen=True, kw_only=True)
class ContributionReader:
    """Reads what a party sends, with the keys of all to whom it seals.

    receivers: private X25519 keys (hex) by slot.
    """

    agreement: Agreement
    receivers: Mapping[str, str]

    def find_difference(
        self,
        task: bytes,
        expected: bytes,
        found: bytes,
        *,
        tolerance: float = 0.0,
        leeway: Leeway = _NO_LEEWAY,
    ) -> str:
        """Return where two answers to a task differ, and how; empty where they do not.

        tolerance: of floats, relative to the largest of their array.
        leeway: the tag behind words that may be off goes uncompared.
        """
        asked, right = packets.read(task), packets.read(expected)
        try:
            came = self._describe(asked, packets.read(found), leeway)
        except CoterieError as error:
            return f".contribution: {error.problem.slug}: {error.detail}"
        due = self._describe(asked, right, leeway)
        if leeway.units:
            n_tags = ROUNDED[_stage(right), due["record"]["kind"]]
            _take_near_words(due["arrays"], came["arrays"], leeway.units, n_tags)
        return find_difference(due, came, tolerance, ".contribution")

    def open_chosen(self, task: bytes, found: bytes) -> dict[str, bytes]:
        """Return what a program chose and sealed to others: records, by their kind."""
        asked, given = packets.read(task), packets.read(found)
        return {
            each.label.kind: self._open(asked, given, each)
            for each in given.envelopes
            if each.label.kind in CHOSEN
        }

    def _describe(self, asked: Packet, given: Packet, leeway: Leeway) -> dict[str, Any]:
        """Return what a contribution says."""
        record = given.header.record
        n_rows = self.agreement.member(given.address.slot).n_rows
        return {
            **given.header.model_dump(mode="json"),
            "record": record,
            "arrays": _describe_arrays(given.arrays, leeway.turned)
            | _describe_chosen(record["kind"], given.arrays, leeway, n_rows)
            | _read_texts(given),
            "own": list(given.own),
            "lines": list(given.history),
            "signatures": len(given.signatures),
            "sealed": [
                _describe_sealed(self._open(asked, given, each), leeway, n_rows)
                for each in given.envelopes
            ],
        }

    def _open(self, asked: Packet, given: Packet, sent: Envelope) -> bytes:
        """Return what an envelope holds; raises EnvelopeRefused if it does not open."""
        label, slot = sent.label, given.address.slot
        bound = Binding(
            transcript=hash_chain.digest(asked.history[-1]),
            session=given.address.session,
            sender=slot,
            receiver=label.peer,
            kind=label.kind,
            **dict(label.when),
        )
        own = PartyKeys(_NO_ENTROPY, "", "")
        own.opening = X25519PrivateKey.from_private_bytes(
            bytes.fromhex(self.receivers[label.peer])
        )
        sender = self.agreement.member(slot).keys
        return open_envelope(sent.sealed, bound, own, sender)


def _describe_sealed(content: bytes, leeway: Leeway, n_rows: int) -> dict[str, Any]:
    """Return what a sealed record says; of what is chosen whether it may be so."""
    record, arrays = codec.decode(content)
    chosen = _describe_chosen(record["kind"], arrays, leeway, n_rows)
    return {"record": record, "arrays": _describe_arrays(arrays, ()) | chosen}


def _describe_chosen(
    kind: str, arrays: Mapping[str, NDArray[Any]], leeway: Leeway, n_rows: int
) -> dict[str, Any]:
    """Return of arrays of a kind that are a choice whether they may be so."""
    if kind not in leeway.chosen:
        return {}
    return {
        name: {
            "dtype": str(arrays[name].dtype),
            "shape": list(arrays[name].shape),
            "items": bounds.admit(arrays[name], n_rows),
            "few different": _count_values(arrays[name]) <= leeway.values
            or not leeway.values,
        }
        for name, bounds in CHOSEN[kind].items()
        if name in arrays
    }


def _count_values(array: NDArray[Any]) -> int:
    """Return how many different numbers the column has that has most."""
    columns = array.reshape(len(array), -1).T
    return max((len(np.unique(column)) for column in columns), default=0)


def _describe_arrays(
    arrays: Mapping[str, NDArray[Any]], turned: Collection[str]
) -> dict[str, Any]:
    """Return arrays as JSON values: words as text, floats as numbers."""
    found: dict[str, Any] = {
        name: {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "items": _describe_items(array),
        }
        for name, array in arrays.items()
        if name not in turned
    }
    parts = [arrays[name] for name in turned if name in arrays]
    if parts:
        found |= {name: list(arrays[name].shape) for name in turned if name in arrays}
        widths = {part.shape[-1] for part in parts}
        if len(widths) == 1:
            rows = np.vstack(parts)
            found["inner products"] = (rows @ rows.T).ravel().tolist()
    return found


def _read_texts(given: Packet) -> dict[str, Any]:
    """Return what arrays of text say."""
    names = TEXTS.get(str(given.header.record["kind"]), ())
    try:
        return {
            name: json.loads(given.arrays[name].tobytes() or b"null")
            for name in names
            if name in given.arrays
        }
    except ValueError:
        raise Malformed("A text is no JSON.") from None


def _take_near_words(
    due: dict[str, Any], came: dict[str, Any], units: int, n_tags: int
) -> None:
    """Put in a share the words that are due, where they are near those that came."""
    shape = due["words"]["dtype"], due["words"]["shape"]
    other = came.get("words", {"dtype": "", "shape": []})
    if (other["dtype"], other["shape"]) != shape:
        return
    expected, found = (
        np.array(arrays["words"]["items"], dtype=np.uint64) for arrays in (due, came)
    )
    off = (expected - found)[: expected.size - n_tags].view(np.int64)
    if ((off >= -units) & (off <= units)).all():
        came["words"]["items"] = due["words"]["items"]


def _describe_items(array: NDArray[Any]) -> list[Any]:
    items: list[Any] = array.ravel().tolist()
    return items if array.dtype.kind == "f" else [str(item) for item in items]
