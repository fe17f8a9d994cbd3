"""Layer: lines of the roster, joins, invitations, agreements, safety numbers."""

from __future__ import annotations

import json
from typing import Any, Final

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.product import build_case, restate
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.simulation.session import (
    COORDINATOR,
    build_agreement,
    derive_entropies,
)
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import About, Layout, Slot
from party_sdk.analyst_client.invitations import Invitation

SEED: Final = 11
SESSION: Final = "stations"
SLOTS: Final = ("north", "south")
OTHER: Final = "ab" * 32


class _KnownSession:
    """A session of two parties, all of whose secrets are known."""

    def __init__(self) -> None:
        import numpy as np

        layout = Layout(
            slots=tuple(Slot(name=n, row=i, column=0) for i, n in enumerate(SLOTS))
        )
        rows = {name: MatrixSource(np.zeros((12, 3))) for name in SLOTS}
        about = About(title="Größe und Gewicht", purpose="Naïve café")
        self.entropies = derive_entropies(SEED, SESSION, SLOTS)
        self.agreement = build_agreement(
            Dummy(n_clusters=3), layout, rows, SEED, session=SESSION, about=about
        ).decode()
        read: dict[str, Any] = json.loads(self.agreement)
        self.terms: str = read["terms"]
        self.roster: list[dict[str, Any]] = read["roster"]
        self.terms_digest = digest(self.terms.encode())
        secret = roster_entries.derive_session_secret(
            self.entropies[COORDINATOR], SESSION
        )
        self.secret = secret.hex()
        self.coordinator = Institution.derive(self.entropies[COORDINATOR])

    def line(self, **changes: Any) -> dict[str, Any]:
        """Return the line of the first slot, without mark and signature."""
        first = {**self.roster[0], **changes}
        return {k: v for k, v in first.items() if k not in {"mark", "signature"}}

    def invitation(self) -> Invitation:
        """Return the invitation of the first slot."""
        return Invitation(
            url="https://analyst.example.org",
            session=SESSION,
            slot=SLOTS[0],
            code="k3-Zq_9x",
            secret=bytes.fromhex(self.secret),
            terms=self.terms_digest,
            coordinator=self.coordinator.key,
            signature=roster_entries.sign_terms(self.coordinator, self.terms_digest),
        )


def build_layer() -> Layer:
    """Return the layer."""
    known = _KnownSession()
    return Layer(
        layer="roster",
        about="Sections 4 and 5: what a party checks and says before the first task.",
        cases=[
            *restate("roster", "canonical"),
            *_lines(known),
            _join(known),
            *_invitations(known),
            *_agreements(known),
            build_case(
                "of an agreement", "5", "safety-number", {"agreement": known.agreement}
            ),
        ],
    )


def _lines(known: _KnownSession) -> list[VectorCase]:
    private = Institution.derive(known.entropies[SLOTS[0]]).key_bytes.hex()
    same = {
        "session_secret": known.secret,
        "session": SESSION,
        "terms": known.terms_digest,
        "private": private,
    }
    lines = {
        "a line without a name": known.line(),
        "a name with letters beyond ASCII": known.line(
            institution="Klinikum Süd, Łódź"
        ),
    }
    return [
        build_case(name, "5", "line", {**same, "line": line})
        for name, line in lines.items()
    ]


def _join(known: _KnownSession) -> VectorCase:
    entropy, member = known.entropies[SLOTS[0]], known.roster[0]
    keys = PartyKeys(entropy, SESSION, SLOTS[0])
    return build_case(
        "the first join",
        "5",
        "join-proof",
        {
            "entropy": entropy.hex(),
            "ed25519_private": keys.signing.private_bytes_raw().hex(),
            "session": SESSION,
            "member": member,
            "code": "k3-Zq_9x",
            "joins": 0,
        },
    )


def _invitations(known: _KnownSession) -> list[VectorCase]:
    text = str(known.invitation())
    wrapped = text.replace("/north/", "/nor\n> th/")
    good = {
        "as it is written": text,
        "in a mail that wraps it": f"Please join:\n> <{wrapped}>",
    }
    bad = {
        "another digest of the terms": text.replace(known.terms_digest, OTHER),
        "another signature": text[:-2] + ("00" if text[-2:] != "00" else "11"),
        "a secret that is too short": text.replace(known.secret, known.secret[:-2]),
        "an older version": text.replace("#coterie-2/", "#coterie-1/"),
    }
    return [
        build_case(name, "4", "invitation", {"text": text}, fails=problem)
        for texts, problem in ((good, ""), (bad, "invitation-unreadable"))
        for name, text in texts.items()
    ]


def _agreements(known: _KnownSession) -> list[VectorCase]:
    given = {
        "agreement": known.agreement,
        "terms": known.terms,
        "session_secret": known.secret,
        "own": known.roster[0],
    }

    def changed(index: int, **changes: Any) -> str:
        """Return the agreement with a line of the roster changed."""
        roster = [dict(line) for line in known.roster]
        roster[index].update(changes)
        text = {"roster": roster, "terms": known.terms}
        return json.dumps(text, ensure_ascii=False, separators=(",", ":"))

    other = Institution.derive(bytes(32))
    replaced: dict[str, dict[str, Any]] = {
        "as it was joined": {},
        "without an own line, as a coordinator checks it": {"own": None},
    }
    mismatched = {
        "other terms": {"terms": known.terms.replace("Größe", "Länge")},
        "own line changed": {"agreement": changed(0, n_rows=13)},
    }
    foreign = {
        "another's mark is foreign": {"agreement": changed(1, mark=OTHER)},
        "another's key was swapped": {
            "agreement": changed(1, keys=known.roster[0]["keys"])
        },
        "another's signature is of another institution": {
            "agreement": changed(1, identity=other.key)
        },
        "under another session secret": {"session_secret": OTHER},
    }
    short = {"roster": known.roster[:1], "terms": known.terms}
    missing = {"a slot is missing": {"agreement": json.dumps(short)}}
    return [
        build_case(name, "5", "agreement", {**given, **change}, fails=problem)
        for changes, problem in (
            (replaced, ""),
            (mismatched, "agreement-mismatch"),
            (foreign, "key-not-authentic"),
            (missing, "malformed"),
        )
        for name, change in changes.items()
    ]
