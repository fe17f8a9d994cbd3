"""Compares contributions with their envelopes opened, and JSON values in general."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.vectors.form import VectorCase
from benchmarks.vectors.product import private_keys
from clustering_protocols.common.errors import CoterieError, Malformed
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Envelope, Packet
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.secrecy.envelopes import Binding, open_envelope
from clustering_protocols.terms.agreements import Agreement

TURNED: Final[Mapping[str, tuple[str, ...]]] = {"projections": ("rows", "anchors")}
"""By kind of contribution, arrays that a party may turn: its map is its own choice."""
ROUNDED: Final[Mapping[tuple[str, str], int]] = {
    ("start", "group-distances"): 0,
    ("updates", "closing"): 1,
    ("updates", "distances"): 0,
    ("updates", "gathered"): 1,
    ("updates", "scattered"): 0,
    ("updates", "share"): 1,
}
"""Contributions, by stage and kind, whose words are rounded sums of real numbers.

The value is how many tags stand behind the words.
"""
CHOSEN: Final = "candidates"
"""A kind of record whose arrays are a party's own choice: centroids of its rows, sizes."""
_REACH: Final = 1e100
_SIZE_STEP: Final = 5
TOLERANCE: Final = 1e-9
"""How far floats of a contribution may be off, relative to the largest of an array."""
UNITS: Final = 2**20
"""How far words of `ROUNDED` may be off: as rounding may lift a sum above its bound."""


def leeway_of(given: Packet) -> dict[str, Any]:
    """Return how an answer to a task may differ from another: fields of a case."""
    kind = given.header.record["kind"]
    rounded = (_stage(given), kind) in ROUNDED
    chosen = {each.label.kind for each in given.envelopes} & {CHOSEN}
    return {
        "tolerance": TOLERANCE,
        "turned": list(TURNED.get(kind, ())),
        "units": UNITS if rounded else 0,
        "chosen": list(chosen),
    }


def _stage(given: Packet) -> str:
    """Return the name of a contribution's stage, without the number of a run."""
    return re.sub(r"-[0-9]+$", "", given.address.stage)


@dataclass(frozen=True, kw_only=True)
class ContributionReader:
    """Reads what a party sends, with the keys of all to whom it seals.

    receivers: private X25519 keys (hex) by slot.
    """

    agreement: Agreement
    receivers: Mapping[str, str]

    def find_difference(self, case: VectorCase, expected: bytes, found: bytes) -> str:
        """Return where an answer to a task differs, and how; empty where it does not.

        case: the step, which says how answers may differ. Tags behind words that may be
            off go uncompared.
        """
        asked, right = (
            packets.parse(decode(case.input["task"])),
            packets.parse(expected),
        )
        try:
            came = self._describe(asked, packets.parse(found), case)
        except CoterieError as error:
            return f".contribution: {error.problem.slug}: {error.detail}"
        due = self._describe(asked, right, case)
        if case.units:
            n_tags = ROUNDED[_stage(right), due["record"]["kind"]]
            _replace_near_words(due["arrays"], came["arrays"], case.units, n_tags)
        return find_difference(due, came, case.tolerance, ".contribution")

    def _describe(
        self, asked: Packet, given: Packet, case: VectorCase
    ) -> dict[str, Any]:
        """Return what a contribution says, as JSON values."""
        n_rows = self.agreement.member(given.address.slot).n_rows
        return {
            **given.header.model_dump(mode="json"),
            "record": given.header.record,
            "arrays": _describe_arrays(given.arrays, case.turned),
            "own": list(given.own),
            "lines": list(given.history),
            "signatures": len(given.signatures),
            "sealed": [
                _describe_sealed(self._open(asked, given, each), case, n_rows)
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
        own = private_keys(self.receivers[label.peer])
        sender = self.agreement.member(slot).keys
        return open_envelope(sent.sealed, bound, own, sender)


def _describe_sealed(content: bytes, case: VectorCase, n_rows: int) -> dict[str, Any]:
    """Return what a sealed record says; of chosen arrays whether they are in bounds."""
    record, arrays = codec.decode(content)
    said = _describe_arrays(arrays, ())
    if record["kind"] in case.chosen:
        centroids, sizes = arrays["centroids"], arrays["sizes"]
        counts = (sizes >= 0) & (sizes <= n_rows) & (sizes % _SIZE_STEP == 0)
        said["centroids"]["items"] = bool((np.abs(centroids) <= _REACH).all())
        said["sizes"]["items"] = bool(counts.all())
    return {"record": record, "arrays": said}


def _describe_arrays(
    arrays: Mapping[str, NDArray[Any]], turned: Collection[str]
) -> dict[str, Any]:
    """Return arrays as JSON values: words as text, floats as numbers."""
    found: dict[str, Any] = {
        name: {
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "items": array.ravel().tolist()
            if array.dtype.kind == "f"
            else array.astype(str).ravel().tolist(),
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


def _replace_near_words(
    due: dict[str, Any], came: dict[str, Any], units: int, n_tags: int
) -> None:
    """Replace the words that came in a share by those that are due, if all are near."""
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


def decode(text: object) -> bytes:
    """Return the bytes of base64; raise :class:`Malformed` for other text."""
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        raise Malformed("The program answered what is not base64.") from None


def find_difference(
    expected: Any, found: Any, tolerance: float = 0.0, place: str = ""
) -> str:
    """Return where two JSON values differ first, and how; empty if they are the same.

    tolerance: how far floats may be off, relative to the largest of their list.
    """
    if _are_numbers([expected, found]):
        expected, found = [expected], [found]
    if isinstance(expected, dict) and isinstance(found, dict):
        names = sorted(expected.keys() ^ found.keys())
        if names:
            where = "missing" if names[0] in expected else "too much"
            return f"{place}.{names[0]}: {where}"
        members = {f".{name}": (each, found[name]) for name, each in expected.items()}
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f"{place}: {len(expected)} items are due, {len(found)} came"
        if _are_numbers(expected) and _are_numbers(found):
            return _compare_numbers(expected, found, tolerance, place)
        pairs = zip(expected, found, strict=True)
        members = {f"[{number}]": pair for number, pair in enumerate(pairs)}
    elif type(expected) is type(found) and expected == found:
        members = {}
    else:
        return f"{place}: {_shorten(expected)} is due, {_shorten(found)} came"
    differences = (
        find_difference(*pair, tolerance, place + at) for at, pair in members.items()
    )
    return next(filter(None, differences), "")


def _are_numbers(values: list[Any]) -> bool:
    return all(type(value) in {int, float} for value in values)


def _compare_numbers(
    expected: list[float], found: list[float], tolerance: float, place: str
) -> str:
    largest = max((abs(value) for value in expected), default=0.0)
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        close = abs(one - other) <= tolerance * largest
        signs = tolerance or math.copysign(1, one) == math.copysign(1, other)
        if not (close and signs):
            return f"{place}[{number}]: {one!r} is due, {other!r} came"
    return ""


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:60]} … ({len(text)} characters)"
