"""What the product answers to calls of the vectors.

Each call takes the input of a case and returns its output: see spec/conformance.md.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import RootModel

from benchmarks.vectors import json_form
from benchmarks.vectors.form import VectorCase
from clustering_protocols import engine, session_terms
from clustering_protocols.common.errors import (
    AgreementMismatch,
    CoterieError,
    Equivocation,
)
from clustering_protocols.contract.party import Memory, PartyContext
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.randomness import (
    KeyedStream,
    derive_key,
    length_prefixed,
)
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import codec, hash_chain
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy import envelopes, field, tags
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import (
    PartyKeys,
    PublicKeys,
    compute_mark,
    party_keys,
    safety_number,
)
from clustering_protocols.secrecy.ristretto import RistrettoKey, hash_values
from clustering_protocols.shared_stages.alignment.digests import digest_names
from clustering_protocols.shared_stages.alignment.identifiers import normalise_id
from clustering_protocols.shared_stages.alignment.linkage import binding, hash_points
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.shared_stages.masked_sums import CheckedSum, MaskedSum
from clustering_protocols.shared_stages.row_selection import admit_table
from clustering_protocols.shared_stages.secrets import ColumnSecret
from clustering_protocols.simulation import Session
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member, RosterEntry
from clustering_protocols.terms.canonical import canonical_json, digest
from clustering_protocols.terms.terms import Layout, read_terms
from party_sdk.analyst_client.invitations import Invitation

Input = dict[str, Any]
Output = dict[str, Any]
JOIN_CODE: Final = "k3-Zq_9x"
_NO_KEY: Final = "00" * 32


def as_base64(content: bytes) -> str:
    """Return bytes as text."""
    return base64.b64encode(content).decode()


# Parties whose keys are known: a column group that adds up

SECRET: Final = sha256(b"the secret of a group").hexdigest()
_ROUND: Final = 3


@cache
def open_session(n: int) -> Session:
    """Return the session of the n members of a sum."""
    layout = Layout.lattice(n)
    data = {slot: MatrixSource(np.zeros((10, 2))) for slot in layout.names}
    return Session(Dummy(), layout, data, seed=5)


def describe_sum(n: int, slot: str, transcript: str, name: str) -> dict[str, Any]:
    """Return what a sum of n members is bound to, and the keys of one of them."""
    context = open_session(n).context(slot)
    agreed = context.session
    own = party_keys(context.entropy, agreed.terms.session, slot)
    return {
        "agreement": agreed.agreement_digest,
        "secret": SECRET,
        "transcript": transcript,
        "name": name,
        "members": [
            {"slot": each, "x25519": agreed.member(each).keys.x25519}
            for each in agreed.slots
        ],
        "slot": slot,
        "private": own.opening.private_bytes_raw().hex(),
    }


def _find_sum(given: Input) -> tuple[PartyContext, MaskedSum]:
    """Return where a party stands and the sum of a case, or raise ValueError."""
    members = [member["slot"] for member in given["members"]]
    place = (given["slot"], given["transcript"], given["name"])
    known = describe_sum(len(members), *place)
    if any(given[name] != value for name, value in known.items()):
        raise ValueError("the case is of another session")
    context = replace(
        open_session(len(members)).context(given["slot"]),
        memory=Memory().remember([ColumnSecret(secret=SECRET)]),
        round=_ROUND,
        attempt=1,
        transcripts={(_ROUND, 1): given["transcript"]},
    )
    return context, MaskedSum.from_context(context, members, given["name"])


def _parts(given: Input, name: str) -> list[bytes | str | int]:
    """Return parts: texts, numbers, and bytes as {"hex": …}."""
    return [
        bytes.fromhex(part["hex"]) if isinstance(part, dict) else part
        for part in given[name]
    ]


def _stream(given: Input) -> KeyedStream:
    return KeyedStream(bytes.fromhex(given["key"]))


def as_words(text: list[str]) -> WordArray:
    """Return words that are written as decimal text."""
    return np.array([int(word) for word in text], dtype=np.uint64)


def as_text(words: WordArray) -> list[str]:
    """Return words as decimal text."""
    return [str(word) for word in words.tolist()]


# Sections 1 and 2


def derive(given: Input) -> Output:
    """Derive a key."""
    secret, salt = bytes.fromhex(given["secret"]), bytes.fromhex(given["salt"])
    return {"key": derive_key(secret, *_parts(given, "info"), salt=salt).hex()}


def draw_words(given: Input) -> Output:
    """Draw several lists of words from one stream."""
    stream = _stream(given)
    return {"words": [as_text(stream.words(size)) for size in given["sizes"]]}


class _GivenBytes(KeyedStream):
    """A stream whose next bytes are given."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    def take(self, size: int) -> bytes:
        """Take the next bytes."""
        found, self._left = self._left[:size], self._left[size:]
        return found

    def fill(self, words: WordArray) -> None:
        """Take the next words."""
        words[:] = np.frombuffer(self.take(words.nbytes), np.uint64)


def private_keys(opening: str) -> PartyKeys:
    """Return keys that open envelopes with this private key (hex)."""
    own = PartyKeys(bytes(32), "", "")
    own.opening = X25519PrivateKey.from_private_bytes(bytes.fromhex(opening))
    return own


def exchange(given: Input) -> Output:
    """Return the secret that two X25519 keys share."""
    peer = PublicKeys(x25519=given["public"], ed25519=_NO_KEY)
    return {"shared": private_keys(given["private"]).exchange(peer).hex()}


def draw_party_keys(given: Input) -> Output:
    """Return a party's keys of a session."""
    keys = PartyKeys(bytes.fromhex(given["entropy"]), given["session"], given["slot"])
    return {
        "x25519_private": keys.opening.private_bytes_raw().hex(),
        "ed25519_private": keys.signing.private_bytes_raw().hex(),
        **keys.public.model_dump(),
    }


def draw_own_words(given: Input) -> Output:
    """Draw words that are a party's own, for a purpose of one attempt or of all."""
    bound = (given["session"], given["slot"], given["stage"])
    labels: tuple[str, ...] = ("coterie/draw/2", given["transcript"], given["purpose"])
    if not given["transcript"]:
        labels = ("coterie/lasting-draw/1", given["purpose"])
    key = derive_key(bytes.fromhex(given["entropy"]), *labels, *bound)
    return {"words": as_text(KeyedStream(key).words(given["size"]))}


# Section 5


def write_line(given: Input) -> Output:
    """Write, mark and sign a line of the roster."""
    line = RosterEntry.model_validate(given["line"])
    written = length_prefixed(
        "coterie/line/1", given["session"], given["terms"], canonical_json(line)
    )
    institution = Institution("", bytes.fromhex(given["private"]))
    return {
        "written": written.hex(),
        "mark": compute_mark(bytes.fromhex(given["session_secret"]), written),
        "signature": institution.sign(written),
    }


def prove_join(given: Input) -> Output:
    """Sign the proof of a join."""
    member = Member.model_validate(given["member"])
    proof = roster_entries.sign_join(
        bytes.fromhex(given["entropy"]),
        *(given["session"], member, given["code"], given["joins"]),
    )
    return {"proof": proof}


def read_invitation(given: Input) -> Output:
    """Read an invitation."""
    found = Invitation.parse(given["text"])
    names = ("url", "session", "slot", "code", "terms", "coordinator")
    return {name: getattr(found, name) for name in names} | {
        "session_secret": found.secret.hex()
    }


def build_invitation(
    entropy: bytes, session: str, slot: str, terms_digest: str
) -> Invitation:
    """Return the invitation of a slot, by the coordinator with this entropy."""
    coordinator = Institution.derive(entropy)
    return Invitation(
        url="https://analyst.example.org",
        session=session,
        slot=slot,
        code=JOIN_CODE,
        secret=roster_entries.derive_session_secret(entropy, session),
        terms=terms_digest,
        coordinator=coordinator.key,
        signature=roster_entries.sign_terms(coordinator, terms_digest),
    )


def check_agreement(given: Input) -> Output:
    """Check an agreement; return its digest."""
    own = given.get("own")
    roster_entries.check_agreement(
        given["agreement"].encode(),
        given["terms"].encode(),
        bytes.fromhex(given["session_secret"]),
        None if own is None else Member.model_validate(own),
    )
    return {"digest": digest(given["agreement"].encode())}


# Section 8


def open_envelope(given: Input) -> Output:
    """Open an envelope."""
    peer = PublicKeys(x25519=_NO_KEY, ed25519=given["sender_ed25519"])
    names = ("transcript", "session", "stage", "round", "attempt", "sender", "receiver")
    binding = envelopes.Binding(**{name: given[name] for name in (*names, "kind")})
    sealed = bytes.fromhex(given["envelope"])
    own = private_keys(given["private"])
    return {"content": envelopes.open_envelope(sealed, binding, own, peer).hex()}


# Sections 9 to 11


def _group_key(given: Input, purpose: str) -> bytes:
    secret, salt = bytes.fromhex(given["secret"]), bytes.fromhex(given["agreement"])
    return derive_key(secret, "coterie/group/1", purpose, salt=salt)


def encode_numbers(given: Input) -> Output:
    """Write real numbers as words."""
    point = FixedPoint.of(np.array(given["bounds"], dtype=np.float64), given["bits"])
    words = point.encode(np.array(given["numbers"], dtype=np.float64))
    return {"units": point.unit.tolist(), "words": as_text(words)}


def make_share(given: Input) -> Output:
    """Return a share of a sum."""
    context, masked = _find_sum(given)
    words = as_words(given["words"])
    made = CheckedSum(scope="column").mask(context, words, masked)
    return {"label": masked.label, "share": as_text(made)}


def unmask_total(given: Input) -> Output:
    """Read the total of a sum."""
    context, masked = _find_sum(given)
    largest = int(given["largest"])

    def fits(words: WordArray) -> bool:
        return bool((np.abs(words.view(np.int64)) <= largest).all())

    total = as_words(given["total"])
    words = CheckedSum(scope="column").unmask(context, total, masked, fits)
    return {"words": as_text(words)}


# Records, packets and the transcript


def read_packet(given: Input) -> Output:
    """Read a packet."""
    packet = packets.parse(base64.b64decode(given["bytes"]))
    arrays = json_form.of_bytes(codec.encode({}, packet.arrays))["arrays"]
    header = packet.header.model_dump(mode="json")
    sealed = [envelope.sealed.hex() for envelope in packet.envelopes]
    return {
        **header,
        "record": packet.header.record,
        "arrays": arrays,
        "own": list(packet.own),
        "sealed": sealed,
        "content_digest": packet.content_digest,
        "lines": list(packet.history),
        "signatures": [bytes(row).hex() for row in packet.signatures],
    }


def follow_lines(given: Input) -> Output:
    """Follow lines of the transcript."""
    known = given["known"]
    found = transcript.follow_lines(
        given["lines"], given["agreement"], known["number"], known["digest"]
    )
    last = hash_chain.digest(given["lines"][-1])
    return {
        "attempts": [each.model_dump(mode="json") for each, _ in found],
        "transcript": last,
    }


def sign_transcript(given: Input) -> Output:
    """Sign the transcript of the opening or the closing."""
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(given["private"]))
    said = signatures.bytes_to_sign(given["stage"], given["transcript"])
    return {"signature": key.sign(said).hex()}


def check_signatures(given: Input) -> Output:
    """Check the signatures of all slots."""
    keys = given["keys"]
    session: Any = SimpleNamespace(
        slots=list(keys),
        member=lambda slot: SimpleNamespace(
            keys=PublicKeys(x25519="00" * 32, ed25519=keys[slot])
        ),
    )
    rows = [list(bytes.fromhex(each)) for each in given["signatures"]]
    told = np.array(rows, np.uint8).reshape(len(rows), packets.SIGNATURE_BYTES)
    signatures.check_signatures(
        session, given["stage"], given["transcript"], told, given["least"]
    )
    return {}


# Ids and match keys


def _place(given: Input) -> tuple[str, str, int]:
    return given["session"], given["agreement"], given["row"]


def find_match_values(given: Input) -> Output:
    """Return the values of rows under match keys, or their ids."""
    alignment = Alignment.model_validate({"method": "ecdh", **given["alignment"]})
    ids = given["ids"]
    data = MatrixSource(np.zeros((len(ids), 1)), ["x"], ids)
    return {"values": [list(key.values) for key in alignment.match_key_values(data)]}


def mask_value(given: Input) -> Output:
    """Return the point of a value of a match key, times a mask."""
    bound = binding(*_place(given), f"key {given['key']}")
    key = RistrettoKey(_GivenBytes(bytes.fromhex(given["scalar"])))
    hashes = hash_values([given["value"].encode()], bound, KeyedStream(bytes(32)))
    (point,) = key.evaluate(hashes)
    return {"point": point.tobytes().hex()}


def mask_point(given: Input) -> Output:
    """Return a point times a mask, and its token."""
    key = RistrettoKey(_GivenBytes(bytes.fromhex(given["scalar"])))
    point = np.frombuffer(bytes.fromhex(given["point"]), np.uint8)
    points = key.multiply(point.reshape(1, -1))
    tokens = hash_points(binding(*_place(given), "token"), points[None])
    return {"point": points.tobytes().hex(), "token": tokens.tobytes().hex()}


# Sessions: a party from its first task to its labels


class ProductParty:
    """The party of the last session that began, as its engine has it between rounds."""

    def begin(self, given: Input) -> Output:
        """Begin a session; forget the one before."""
        invited = Invitation.parse(given["invitation"])
        text, agreement = given["terms"].encode(), given["agreement"].encode()
        terms = read_terms(text)
        named = (terms.session, given["slot"], digest(text))
        if named != (invited.session, invited.slot, invited.terms):
            raise AgreementMismatch("The invitation is for another session.")
        params = session_terms.check_terms(terms)
        own = Member.model_validate(given["own"])
        roster_entries.check_agreement(agreement, text, invited.secret, own)
        table = given["table"]
        rows = MatrixSource(
            *(table[name] for name in ("rows", "columns", "ids")),
            gaps=terms.dictionary is not None,
        )
        self._table = admit_table(terms, params, given["slot"], rows)
        self._party = engine.PartyEngine(
            agreement=agreement,
            slot=given["slot"],
            entropy=bytes.fromhex(given["entropy"]),
            choices=given["choices"],
        )
        self._journal = engine.Journal()
        self._before = self._memory = Memory()
        self._task = self._contribution = b""
        return {}

    def step(self, given: Input) -> Output:
        """Answer a task; the same task again gets the same bytes."""
        with self._stop_at_final_errors():
            task = base64.b64decode(given["task"])
            return {"contribution": as_base64(self._answer(task))}

    def conclude(self, given: Input) -> Output:
        """Read a result; return the labels."""
        with self._stop_at_final_errors():
            result = base64.b64decode(given["result"])
            known = (self._journal, self._memory)
            outcome = self._party.conclude(*known, result, self._table.data)
            return {"labels": self._table.put_back(outcome).labels.tolist()}

    @contextmanager
    def _stop_at_final_errors(self) -> Iterator[None]:
        try:
            yield
        except engine.FINAL as error:
            self._journal = self._journal.stop_by_error(error)
            raise

    def _answer(self, task: bytes) -> bytes:
        self._journal.check_not_stopped()
        at = packets.parse(task).address
        when, last = (at.round, at.attempt), self._journal
        if when == (last.round, last.attempt):
            if task != self._task:
                raise Equivocation(f"Round {when[0]}, attempt {when[1]}.")
            return self._contribution
        before = self._before if at.round == last.round else self._memory
        found = self._party.reply(last, before, task, self._table.data)
        self._journal, self._before = found.journal, before
        self._memory, self._task = found.memory, task
        self._contribution = found.contribution
        return self._contribution


_PARTY: Final = ProductParty()
_CALLS: Final[dict[str, Callable[[Input], Output]]] = {
    "lp": lambda given: {"bytes": length_prefixed(*_parts(given, "parts")).hex()},
    "derive": derive,
    "words": draw_words,
    "uniform": lambda given: {
        "numbers": _stream(given).uniform(given["size"]).tolist()
    },
    "normal": lambda given: {"numbers": _stream(given).normal(given["size"]).tolist()},
    "permutation": lambda given: {
        "order": _stream(given).permutation(given["size"]).tolist()
    },
    "residues": lambda given: {
        "residues": as_text(
            field.draw_residues(
                _GivenBytes(as_words(given["words"]).tobytes()), given["size"]
            )
        )
    },
    "exchange": exchange,
    "party-keys": draw_party_keys,
    "own-words": draw_own_words,
    "line": write_line,
    "join-proof": prove_join,
    "invitation": read_invitation,
    "agreement": check_agreement,
    "safety-number": lambda given: {
        "digits": safety_number(given["agreement"].encode())
    },
    "open-envelope": open_envelope,
    "normal-form": lambda given: {"form": normalise_id(given["id"], given["steps"])},
    "alignment-digest": lambda given: {
        "digest": digest_names(
            _group_key(given, f"alignment/{given['scope']}"), given["names"]
        )
    },
    "row-order": lambda given: {
        "order": KeyedStream(_group_key(given, "row-order"))
        .permutation(given["size"])
        .tolist()
    },
    "tag": lambda given: {
        "tag": str(tags.compute_tag(as_words(given["words"]), _stream(given)))
    },
    "fixed-point": encode_numbers,
    "share": make_share,
    "total": unmask_total,
    "canonical": lambda given: {
        "text": canonical_json(RootModel[Any](given["value"])).decode()
    },
    "write-record": lambda given: {"bytes": as_base64(json_form.to_bytes(given))},
    "read-record": lambda given: json_form.of_bytes(base64.b64decode(given["bytes"])),
    "read-packet": read_packet,
    "follow": follow_lines,
    "sign-transcript": sign_transcript,
    "check-signatures": check_signatures,
    "match-values": find_match_values,
    "mask-value": mask_value,
    "mask-point": mask_point,
    "init": _PARTY.begin,
    "step": _PARTY.step,
    "conclude": _PARTY.conclude,
}


def answer(call: str, given: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the output of a call, or the problem with which it fails."""
    try:
        return _CALLS[call](given), ""
    except CoterieError as error:
        return None, error.problem.slug


def build_case(
    name: str,
    section: str,
    call: str,
    given: dict[str, Any],
    *,
    fails: str = "",
    tolerance: float = 0.0,
) -> VectorCase:
    """Return a case with what the product makes of it.

    fails: the problem with which it must fail; empty if it has an output.

    Raises ValueError if the product does something else.
    """
    output, problem = answer(call, given)
    if problem != fails:
        raise ValueError(f"{name!r} of {call} fails with {problem!r}, not {fails!r}")
    return VectorCase(
        name=name,
        section=section,
        call=call,
        input=given,
        output=output,
        problem=problem,
        tolerance=tolerance,
    )
