"""Layers of vectors: files of cases that need no session."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Final

import numpy as np

from benchmarks.vectors.form import VECTORS, Layer, VectorCase, read_layer
from benchmarks.vectors.product import (
    as_base64,
    as_text,
    as_words,
    build_case,
    build_invitation,
    describe_sum,
    open_session,
)
from clustering_protocols.engine import packets, signatures
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.envelopes import Binding, seal
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.secrecy.masks import add_tagged_shares
from clustering_protocols.secrecy.prime import P
from clustering_protocols.shared_stages.secrets import GroupSecret
from clustering_protocols.simulation import Session
from clustering_protocols.simulation.session import (
    COORDINATOR,
    build_agreement,
    derive_entropies,
)
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import About, Layout, Slot
from party_sdk.analyst_client.invitations import Invitation

_OTHER: Final = "ab" * 32
Changes = Mapping[str, Mapping[str, Mapping[str, Any]]]


def vary(
    section: str, call: str, given: Mapping[str, Any], changes: Changes
) -> list[VectorCase]:
    """Return cases of one call, whose inputs differ from ``given``.

    changes: by the problem with which the calls must fail ('' if they have an output),
        what each case changes, by its name.
    """
    return [
        build_case(name, section, call, {**given, **change}, fails=problem)
        for problem, by_name in changes.items()
        for name, change in by_name.items()
    ]


def restate(layer: str, *calls: str) -> list[VectorCase]:
    """Return cases that are edited by hand in a layer's file, with new outputs.

    A new case starts with an empty output, or with the problem with which it must fail.

    calls: those whose cases are all edited by hand; all calls by default.
    """
    return [
        build_case(
            *(case.name, case.section, case.call, case.input),
            fails=case.problem,
            tolerance=case.tolerance,
        )
        for case in read_layer(VECTORS / f"{layer}.json").cases
        if not calls or case.call in calls
    ]


# The roster, and what a party signs before the first task

_STATIONS: Final = "stations"
_PAIR: Final = ("north", "south")


def build_roster() -> list[VectorCase]:
    """Return cases of lines of the roster, joins, invitations and agreements.

    They are of a session of two parties, all of whose secrets are known.
    """
    layout = Layout(
        slots=tuple(Slot(name=n, row=i, column=0) for i, n in enumerate(_PAIR))
    )
    rows = {name: MatrixSource(np.zeros((12, 3))) for name in _PAIR}
    about = About(title="Größe und Gewicht", purpose="Naïve café")
    seed = 11
    entropies = derive_entropies(seed, _STATIONS, _PAIR)
    agreement = build_agreement(
        Dummy(n_clusters=3), layout, rows, seed, session=_STATIONS, about=about
    ).decode()
    read: dict[str, Any] = json.loads(agreement)
    terms, roster = read["terms"], read["roster"]
    terms_digest = digest(terms.encode())
    coordinator = entropies[COORDINATOR]
    invitation = build_invitation(coordinator, _STATIONS, _PAIR[0], terms_digest)
    secret = invitation.secret
    return [
        *restate("roster", "canonical", "line", "join-proof"),
        *_invitations(invitation),
        *_agreements(agreement, terms, secret.hex(), roster),
        build_case("of an agreement", "5", "safety-number", {"agreement": agreement}),
    ]


def _invitations(invitation: Invitation) -> list[VectorCase]:
    text, secret = str(invitation), invitation.secret.hex()
    wrapped = text.replace("/north/", "/nor\n> th/")
    other_end = "00" if text[-2:] != "00" else "11"
    changes = {
        "": {
            "as it is written": {"text": text},
            "in a mail that wraps it": {"text": f"Please join:\n> <{wrapped}>"},
        },
        "invitation-unreadable": {
            "another digest of the terms": {
                "text": text.replace(invitation.terms, _OTHER)
            },
            "another signature": {"text": text[:-2] + other_end},
            "a secret that is too short": {"text": text.replace(secret, secret[:-2])},
            "an older version": {"text": text.replace("#coterie-2/", "#coterie-1/")},
        },
    }
    return vary("4", "invitation", {}, changes)


def _agreements(
    agreement: str, terms: str, secret: str, roster: Sequence[dict[str, Any]]
) -> list[VectorCase]:
    given = {
        "agreement": agreement,
        "terms": terms,
        "session_secret": secret,
        "own": roster[0],
    }

    def changed(index: int, **changes: Any) -> dict[str, str]:
        """Return the agreement with a line of the roster changed."""
        lines = [
            {**line, **(changes if place == index else {})}
            for place, line in enumerate(roster)
        ]
        text = {"roster": lines, "terms": terms}
        written = json.dumps(text, ensure_ascii=False, separators=(",", ":"))
        return {"agreement": written}

    foreign = Institution.derive(bytes(32)).key
    short = json.dumps({"roster": roster[:1], "terms": terms})
    changes: Changes = {
        "": {
            "as it was joined": {},
            "without an own line, as a coordinator checks it": {"own": None},
        },
        "agreement-mismatch": {
            "other terms": {"terms": terms.replace("Größe", "Länge")},
            "own line changed": changed(0, n_rows=13),
        },
        "key-not-authentic": {
            "another's mark is foreign": changed(1, mark=_OTHER),
            "another's key was swapped": changed(1, keys=roster[0]["keys"]),
            "another's signature is of another institution": changed(
                1, identity=foreign
            ),
            "under another session secret": {"session_secret": _OTHER},
        },
        "malformed": {"a slot is missing": {"agreement": short}},
    }
    return vary("5", "agreement", given, changes)


# The codec, and packets with real values

_FLOATS: Final = [1.0, 1e-7, -0.0, 0.1, 1e22, 5e-324, -1.7976931348623157e308]
_ADDRESS: Final = packets.Address(
    stage="x", round=2, attempt=1, session="s", agreement=_OTHER, slot="south"
)


class _Update(Record):
    """A task with a field that is each party's own."""

    kind = "update"

    number: int
    members: list[str]
    centres: Annotated[FloatArray, Spec("k", "F")]


def build_records() -> list[VectorCase]:
    """Return cases of records, and of packets of a session of two parties."""
    layout = Layout.lattice(2)
    rows = {slot: MatrixSource(np.zeros((12, 3))) for slot in layout.names}
    session = Session(Dummy(n_clusters=3), layout, rows, seed=7)
    session.run_to_end()
    sent = {}
    for message in session.sent:
        packet = packets.parse(message.payload)
        if packet.address.slot == layout.names[0]:
            way = f"{message.sender} to {message.receiver}, round {message.round}"
            sent[f"{packet.header.record['kind']}: {way}"] = message.payload
    task = _Update(number=1, members=["Größe"], centres=np.array([_FLOATS[:3]]))
    own_fields = {
        name: packets.write_packet(_ADDRESS, task, own=own, history=["{}", "{}"])
        for name, own in {
            "a task without own fields": (),
            "the same task, a value of its own": ("members",),
            "the same task, a value and an array of its own": ("centres", "members"),
        }.items()
    }
    texts = {"": {**sent, **own_fields}, "malformed": _malformed_packets()}
    changes = {
        problem: {name: {"bytes": as_base64(each)} for name, each in by_name.items()}
        for problem, by_name in texts.items()
    }
    return [
        *restate("records", "read-record", "write-record"),
        *vary("3", "read-packet", {}, changes),
    ]


def _malformed_packets() -> dict[str, bytes]:
    good = packets.write_packet(
        _ADDRESS, _Update(number=1, members=[], centres=np.eye(1))
    )
    header, arrays = codec.decode(good)
    field = np.frombuffer(codec.encode({"number": 2}, {}), np.uint8)
    unknown: dict[str, Any] = {"peer": "a", "kind": "x", "stage": "x"}
    label = {**unknown, "round": 2, "attempt": 1}
    placeless = {k: v for k, v in header["address"].items() if k != "round"}
    empty = np.zeros(0, np.uint8)

    def signed(array: str, content: Any) -> bytes:
        return codec.encode(header, {**arrays, array: content})

    return {
        "no content": codec.encode(header, {}),
        "a content that is no record": codec.encode(header, {"content": empty}),
        "a field that stands twice": signed("own", field),
        "an address without a round": codec.encode(
            {**header, "address": placeless}, arrays
        ),
        "a label without its envelope": codec.encode(
            {**header, "envelopes": [label]}, arrays
        ),
        "an envelope without its label": signed("envelope.0", empty),
        "an array that has no place": signed("x", empty),
        "a signature of 63 bytes": signed(
            "transcript.signatures", np.zeros((1, 63), np.uint8)
        ),
        "lines that are not UTF-8": signed(
            "transcript.lines", np.array([255], np.uint8)
        ),
    }


# The transcript, and the signatures of opening and closing


def build_transcript() -> list[VectorCase]:
    """Return cases of lines of the transcript, and of its signatures."""
    followed = restate("transcript", "follow")
    transcript = str((followed[0].output or {})["transcript"])
    keys = {slot: PartyKeys(bytes(32), "wards", slot) for slot in (*_PAIR, "west")}
    said = signatures.bytes_to_sign("opening", transcript)
    signed = [each.signing.sign(said).hex() for each in keys.values()]
    given = {
        "stage": "opening",
        "transcript": transcript,
        "keys": {slot: each.public.ed25519 for slot, each in keys.items()},
        "signatures": signed,
        "least": 3,
    }
    absent = [*signed[:2], "00" * 64]
    exchanged = [signed[1], signed[0], signed[2]]
    two_of_three = {"signatures": absent, "least": 2}
    changes: Changes = {
        "": {
            "all have signed": {},
            "one of three is absent where two are enough": two_of_three,
        },
        "protocol-failed": {
            "one of three is absent where all are needed": {"signatures": absent},
            "another transcript": {"transcript": _OTHER},
            "another stage": {"stage": "closing"},
            "two signatures were exchanged": {"signatures": exchanged},
            "one signature too few": {"signatures": signed[:2]},
        },
    }
    return [
        *followed,
        *restate("transcript", "sign-transcript"),
        *vary("7", "check-signatures", given, changes),
    ]


# Envelopes. Sealing draws random bytes, so it is not compared.


def build_envelopes() -> list[VectorCase]:
    """Return cases of an envelope to open, and of those that must not open."""
    sender, receiver, third = (
        PartyKeys(bytes(32), "wards", slot) for slot in (*_PAIR, "west")
    )
    place: dict[str, Any] = {
        "transcript": "cd" * 32,
        "session": "wards",
        "stage": "secrets",
        "round": 2,
        "attempt": 1,
        "sender": "north",
        "receiver": "south",
        "kind": "group-secret",
    }
    content = GroupSecret(scope="row", secret=_OTHER).encode()
    sealed = seal(content, Binding(**place), sender, receiver.public)
    given = {
        **place,
        "envelope": sealed.hex(),
        "private": receiver.opening.private_bytes_raw().hex(),
        "sender_ed25519": sender.public.ed25519,
    }
    last = f"{sealed[-1] ^ 1:02x}"
    misplaced = {
        f"another {name}": {name: "other" if isinstance(old, str) else old + 1}
        for name, old in place.items()
    }
    misread: dict[str, dict[str, Any]] = {
        "a bit of the sealed bytes": {"envelope": sealed.hex()[:-2] + last},
        "a foreign signature": {"sender_ed25519": third.public.ed25519},
        "another receiver's key": {"private": third.opening.private_bytes_raw().hex()},
        "signed, and sealed to somebody else": {
            "envelope": seal(content, Binding(**place), sender, third.public).hex()
        },
        "shorter than a signature": {"envelope": sealed.hex()[:120]},
    }
    changes: Changes = {
        "": {"a group secret": {}},
        "envelope-refused": misplaced | misread,
    }
    return vary("8", "open-envelope", given, changes)


# Sums of three members, with a good tag and with bad ones

_WORDS: Final = ([5, -9, 2**48], [0, 2, -7], [11, -(2**40), 1])


def build_sums() -> list[VectorCase]:
    """Return cases of shares, of their total, and of bad totals."""
    slots = open_session(3).session.slots
    same = (sha256(b"told").hexdigest(), "phase-1")

    def share(slot: str, words: list[int]) -> VectorCase:
        given = describe_sum(3, slot, *same)
        text = as_text(np.array(words, np.int64).view(np.uint64))
        title = f"{len(words)} words of {slot}"
        return build_case(title, "10", "share", {**given, "words": text})

    def add_up(shares: Sequence[VectorCase]) -> WordArray:
        return add_tagged_shares(
            as_words((each.output or {})["share"]) for each in shares
        )

    shares = [share(slot, words) for slot, words in zip(slots, _WORDS, strict=True)]
    total = add_up(shares)

    def with_total(total: WordArray) -> dict[str, Any]:
        return {"total": as_text(total)}

    def raised(place: int, by: int) -> dict[str, Any]:
        """Return the total with a number added at a place."""
        changed = total.copy()
        changed[place] += np.uint64(by % 2**64)
        return with_total(changed)

    of_pair = describe_sum(2, open_session(2).session.slots[0], *same)
    given = {
        **describe_sum(3, slots[1], *same),
        "largest": str(2**50),
        **with_total(total),
    }
    bad: dict[str, dict[str, Any]] = {
        "a word is one more": raised(0, 1),
        "the tag is one more": raised(-1, 1 if int(total[-1]) + 1 < P else -1),
        "the tag is p more, the same residue": raised(-1, P),
        "two words are exchanged": with_total(total[[1, 0, 2, 3]]),
        "one share was not added": with_total(add_up(shares[:2])),
        "one share was added twice": with_total(add_up([*shares, shares[0]])),
        "the sum of another name": {"name": "phase-2"},
        "the sum of another round": {"transcript": _OTHER},
        "a word beyond the bound of this sum": {"largest": str(2**40)},
    }
    return [
        *shares,
        build_case("the total", "10", "total", given),
        share(slots[1], list(range(1100))),
        build_case(
            *("two members", "10", "share"),
            {**of_pair, "words": ["1"]},
            fails="guard-refused",
        ),
        *vary("10", "total", given, {"protocol-failed": bad}),
    ]


BUILDERS: Final[Mapping[str, Callable[[], list[VectorCase]]]] = {
    "primitives": partial(restate, "primitives"),
    "roster": build_roster,
    "records": build_records,
    "transcript": build_transcript,
    "sums": build_sums,
    "envelopes": build_envelopes,
    "alignment": partial(restate, "alignment"),
    "linkage": partial(restate, "linkage"),
}


def build_layer(name: str) -> Layer:
    """Return a layer, whose file says what it is about."""
    layer = read_layer(VECTORS / f"{name}.json")
    return layer.model_copy(update={"cases": BUILDERS[name]()})
