"""Whether two contributions say the same, envelopes opened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from clustering_protocols.common.errors import CoterieError
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Envelope, Packet
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.secrecy.envelopes import Binding, open_envelope
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.terms.agreements import Agreement
from party_sdk.conformance.comparison import find_difference

TURNED: Final[Mapping[str, tuple[str, ...]]] = {"projections": ("rows", "anchors")}
"""By kind of contribution, arrays that a party may turn: its map is its own choice."""
ROUNDED: Final[Mapping[tuple[str, int], int]] = {
    ("closing", 1): 1,
    ("gathered", 1): 1,
    ("scattered", 1): 0,
    ("share", 2): 1,
}
"""Contributions, kind and version, whose words are rounded sums of real numbers.

With each: how many tags stand behind the words.
"""
TOLERANCE: Final = 1e-9
"""How far floats of a contribution may be off, relative to the largest."""
UNITS: Final = 2**20
"""How far such words may be off: as far as rounding may lift a sum above its bound."""
_NO_ENTROPY: Final = bytes(32)


class Leeway(NamedTuple):
    """In what two right contributions may differ: arrays that turn, units of words."""

    turned: tuple[str, ...]
    units: int


def leeway_of(record: Mapping[str, Any]) -> Leeway:
    """Return in what contributions of a kind and version may differ."""
    kind, version = record["kind"], record["version"]
    units = UNITS if (kind, version) in ROUNDED else 0
    return Leeway(turned=TURNED.get(kind, ()), units=units)


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
        turned: Collection[str] = (),
        units: int = 0,
    ) -> str:
        """Return where two answers to a task differ, and how; empty where they do not.

        tolerance: of floats, relative to the largest of their array.
        turned: arrays of which inner products alone are compared.
        units: how far words of a share may be off; their tag then goes uncompared.
        """
        asked = packets.read(task)
        try:
            came = self._describe(asked, packets.read(found), turned)
        except CoterieError as error:
            return f".contribution: {error.problem.slug}: {error.detail}"
        due = self._describe(asked, packets.read(expected), turned)
        if units:
            n_tags = ROUNDED[due["record"]["kind"], due["record"]["version"]]
            _take_near_words(due["arrays"], came["arrays"], units, n_tags)
        return find_difference(due, came, tolerance, ".contribution")

    def _describe(
        self, asked: Packet, given: Packet, turned: Collection[str]
    ) -> dict[str, Any]:
        """Return what a contribution says."""
        return {
            **given.header.model_dump(mode="json"),
            "record": given.header.record,
            "arrays": _describe_arrays(given.arrays, turned),
            "own": list(given.own),
            "lines": list(given.history),
            "signatures": len(given.signatures),
            "sealed": [self._open(asked, given, each) for each in given.envelopes],
        }

    def _open(self, asked: Packet, given: Packet, sent: Envelope) -> dict[str, Any]:
        """Return what an envelope says; raises EnvelopeRefused if it does not open."""
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
        record, arrays = codec.decode(open_envelope(sent.sealed, bound, own, sender))
        return {"record": record, "arrays": _describe_arrays(arrays, ())}


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
