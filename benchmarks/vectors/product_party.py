"""Calls of sessions, answered by the product: a party from its first task to its labels."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

from clustering_protocols import engine, session_terms
from clustering_protocols.common.errors import AgreementMismatch, Equivocation
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.shared_stages.row_selection import arrive
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import read_terms
from party_sdk.analyst_client.invitations import Invitation

Input = dict[str, Any]
Output = dict[str, Any]
_T = TypeVar("_T")


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
        self._arrival = arrive(terms, params, given["slot"], rows)
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
        return self._unless_stopped(
            lambda: {"contribution": _text(self._answer(_bytes(given["task"])))}
        )

    def conclude(self, given: Input) -> Output:
        """Read a result; return the labels."""
        known = (self._journal, self._memory)

        def read() -> Output:
            result = _bytes(given["result"])
            outcome = self._party.conclude(*known, result, self._arrival.data)
            return {"labels": self._arrival.put_back(outcome).labels.tolist()}

        return self._unless_stopped(read)

    def _unless_stopped(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except engine.FINAL as error:
            self._journal = self._journal.refuse(error)
            raise

    def _answer(self, task: bytes) -> bytes:
        self._journal.check_going()
        here = packets.read(task).address
        when, last = (here.round, here.attempt), self._journal
        if when == (last.round, last.attempt):
            if task != self._task:
                raise Equivocation(f"Round {when[0]}, attempt {when[1]}.")
            return self._contribution
        before = self._before if here.round == last.round else self._memory
        found = self._party.reply(last, before, task, self._arrival.data)
        self._journal, self._before = found.journal, before
        self._memory, self._task = found.memory, task
        self._contribution = found.contribution
        return self._contribution


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def calls() -> dict[str, Callable[[Input], Output]]:
    """Return the calls of one program, which share a party."""
    party = ProductParty()
    return {"init": party.begin, "step": party.step, "conclude": party.conclude}
