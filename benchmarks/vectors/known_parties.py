"""Parties whose keys are known: a column group that adds up."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any, Final, Self

import numpy as np

from clustering_protocols.contract.party import Memory, PartyContext
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.secrecy.keys import party_keys
from clustering_protocols.shared_stages.masked_sums import MaskedSum
from clustering_protocols.shared_stages.secrets import ColumnSecret
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

SECRET: Final = sha256(b"the secret of a group").hexdigest()
_ROUND: Final = 3


@cache
def _open_session(n: int) -> Session:
    layout = Layout.lattice(n)
    data = {slot: MatrixSource(np.zeros((10, 2))) for slot in layout.names}
    return Session(Dummy(), layout, data, seed=5)


class KnownParties:
    """The members of a sum, in one session that follows from their number."""

    def __init__(self, n: int) -> None:
        self.session = _open_session(n)

    def context(self, slot: str, transcript: str) -> PartyContext:
        """Return where a party stands, given the transcript of its round."""
        return replace(
            self.session.context(slot),
            memory=Memory().remember([ColumnSecret(secret=SECRET)]),
            round=_ROUND,
            attempt=1,
            transcripts={(_ROUND, 1): transcript},
        )

    def describe(self, slot: str, transcript: str, name: str) -> dict[str, Any]:
        """Return what a sum is bound to, and the keys of one of its members."""
        context = self.context(slot, transcript)
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

    def check(self, given: dict[str, Any]) -> Self:
        """Refuse, with :class:`ValueError`, another session than this one."""
        known = self.describe(given["slot"], given["transcript"], given["name"])
        if any(given[name] != value for name, value in known.items()):
            raise ValueError("the case is of another session")
        return self

    @staticmethod
    def masked_sum(context: PartyContext, given: dict[str, Any]) -> MaskedSum:
        """Return the sum that a case is about."""
        members = [member["slot"] for member in given["members"]]
        return MaskedSum.from_context(context, members, given["name"])
