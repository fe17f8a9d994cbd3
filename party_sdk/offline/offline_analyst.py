"""The machine without network: the party itself, whose analyst is a file."""

from __future__ import annotations

from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final, NoReturn

from clustering_protocols.common.errors import GuardRefused, Unavailable
from clustering_protocols.engine import packets
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.terms.agreements import Member
from clustering_protocols.wire.answers import Preview, Receipt, SessionStatus
from clustering_protocols.wire.notices import ReceiverAdded, Receivers, Way
from clustering_protocols.wire.states import SlotState, StopReason
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.analyst_client.requests import parse_answer
from party_sdk.home.files import private_folder, write_private
from party_sdk.offline import questions
from party_sdk.offline.files import JSON_TYPE, AnswerFile, JoinContent, TaskFile
from party_sdk.offline.questions import Question
from party_sdk.party.folder import PartyFolder

_IN_PLACE_OF_A_TOKEN: Final = "kept on the connected machine"  # noqa: S105  a sentence, no secret


class AnswerReady(Exception):
    """Something is to be sent: ``answer`` goes to the connected machine."""

    def __init__(self, answer: AnswerFile) -> None:
        super().__init__()
        self.answer = answer


class NothingMore(Exception):
    """The file says nothing more: the next one has to be fetched."""


class OfflineAnalyst(Analyst):
    """Answers what a party asks from a file, and stops where something is to be sent.

    Every call raises :class:`NothingMore` if the file does not say, and
    :class:`AnswerReady` if this is to be sent.
    """

    def __init__(self, task: TaskFile) -> None:
        self._task = task
        self._said = task.by_question

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def as_party(self, token: str) -> OfflineAnalyst:
        """Return itself: the token is kept on the connected machine."""
        del token
        return self

    def preview(self, code: str) -> Preview:
        """Return what the invitation is for."""
        del code
        return parse_answer(Preview, self._read(questions.PREVIEW))

    def join(self, code: str, member: Member, proof: str) -> str:
        """Return what stands for a token, once the slot was taken."""
        if not self._task.has_joined:
            content = JoinContent(code=code, member=member, proof=proof)
            self._send(questions.JOIN, JSON_TYPE, content.model_dump_json().encode())
        return _IN_PLACE_OF_A_TOKEN

    def decline(self, code: str, state: SlotState, reason: str) -> None:
        """Refuse: the coordinator waits for no file.

        Raises Unavailable: always.
        """
        del code, state, reason
        raise Unavailable(
            "This machine has no network: what a file asks is answered by a file.",
            remedy="Tell the coordinator yourself that you do not join.",
        )

    def stop(self, session: str, reason: StopReason) -> None:
        """Refuse: a file that is carried arrives when people meet, and they can say it.

        Raises Unavailable: always.
        """
        del session, reason
        raise Unavailable(
            "This machine has no network: what a file asks is answered by a file.",
            remedy="Tell the coordinator yourself that this party stopped for good.",
        )

    def session(self, session: str) -> SessionStatus:
        """Return where the session stood."""
        return parse_answer(SessionStatus, self._read(questions.name_session(session)))

    def agreement(self, session: str) -> bytes:
        """Return the exact bytes of the agreement."""
        return self._read(questions.name_agreement(session))

    def task(self, session: str, wait: float) -> bytes | None:
        """Return the task; what is answered is not asked again."""
        del wait
        question = questions.name_task(session)
        task = self._read(question) or None
        del self._said[question]
        return task

    def contribute(
        self,
        session: str,
        round_: int,
        attempt: int,
        content: bytes,
        wait: float = 0,
        *,
        digest: str = "",
    ) -> tuple[Receipt, bytes | None]:
        """Return the receipt, once it was sent."""
        del wait
        sent = questions.name_contribution(session, round_, attempt)
        receipt = questions.name_receipt(sent, digest or sha256(content).hexdigest())
        if receipt not in self._said:
            self._send(sent, MEDIA_TYPE, content)
        return parse_answer(Receipt, self._read(receipt)), None

    def result(self, session: str) -> bytes:
        """Return this party's result."""
        return self._read(questions.name_result(session))

    def add_receiver(self, session: str, way: Way, address: str) -> ReceiverAdded:
        """Stop: no file says who is told."""
        del session, way, address
        raise NothingMore

    def receivers(self, session: str) -> Receivers:
        """Stop: no file says who is told."""
        del session
        raise NothingMore

    def remove_receiver(self, session: str, receiver_id: str) -> None:
        """Stop: no file says who is told."""
        del session, receiver_id
        raise NothingMore

    def _read(self, question: Question) -> bytes:
        if question not in self._said:
            raise NothingMore
        return self._said[question].content

    def _send(self, question: Question, media_type: str, body: bytes) -> NoReturn:
        method, path = question
        raise AnswerReady(
            AnswerFile(
                session=self._task.session,
                slot=self._task.slot,
                number=self._task.number,
                method=method,
                path=path,
                media_type=media_type,
                body=body,
            )
        )


class Turns:
    """Which files a party has answered: none is answered twice, none that is older."""

    def __init__(self, folder: PartyFolder) -> None:
        self._folder = folder
        self._path = folder.path / "step"

    def check(self, task: TaskFile) -> None:
        """Refuse a file of another party, or one that comes too late.

        Raises GuardRefused: nothing has changed: the right file can still come.
        """
        here = (self._folder.session, self._folder.slot)
        if here != (task.session, task.slot):
            raise GuardRefused(
                f"This file is for {task.session} {task.slot}, not for "
                f"{' '.join(here)}."
            )
        last = int(self._path.read_text()) if self._path.exists() else 0
        if task.number <= last:
            raise GuardRefused(
                f"This is file number {task.number}, and number {last} was answered "
                "already: fetch again, and use that file."
            )
        asked = task.by_question.get(questions.name_task(task.session))
        if asked is None or asked.status != HTTPStatus.OK:
            return
        address = packets.read(asked.body).address
        if not self._folder.exists:
            return
        last = self._folder.load_standing().answered.round
        if address.round < last:
            raise GuardRefused(
                f"This file asks for round {address.round}, and round {last} was "
                "answered already."
            )

    def count(self, task: TaskFile) -> None:
        """Note that a file was answered."""
        private_folder(self._folder.path)
        write_private(self._path, str(task.number).encode())


def read_file(path: Path) -> bytes:
    """Return the bytes of a file that was carried; :class:`GuardRefused` if none is."""
    try:
        return path.read_bytes()
    except OSError:
        raise GuardRefused(f"{path.name!r} cannot be read.") from None
