"""The connected machine: it fetches what is asked, and sends what was answered."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    KeyNotAuthentic,
    NotReady,
    RoundClosed,
    SessionOver,
)
from clustering_protocols.wire.answers import Preview, Receipt
from clustering_protocols.wire.states import SessionState
from party_sdk.analyst_client.analyst import LONG_POLL_SECONDS, Analyst
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.analyst_client.requests import parse_answer
from party_sdk.home.encryption import SecretFiles
from party_sdk.home.files import private_folder
from party_sdk.offline import questions
from party_sdk.offline.files import AnalystResponse, AnswerFile, TaskFile
from party_sdk.offline.questions import Question


class _CourierState(BaseModel):
    """What the connected machine keeps; secrets of the join, and none of the group.

    ``key`` is that of the institution that joined, ``preview`` what the analyst said of
    the invitation (who joins reads it twice), ``sent`` the digest of the last answer that
    was sent, ``told`` what the analyst said to it.
    """

    url: str
    code: str = Field(repr=False)
    token: str | None = Field(default=None, repr=False)
    number: int = 0
    key: str | None = None
    preview: str = ""
    sent: str = ""
    told: dict[str, str] | None = None


class Courier:
    """One party, seen from the connected machine."""

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self.session, self.slot = session, slot
        self._path = home / "parties" / session / slot / "carrier.json"
        self._files = SecretFiles(home)

    @classmethod
    def of(cls, home: Path, invitation: str) -> Self:
        """Return the party of an invitation; its session secret is not kept here."""
        parsed = Invitation.parse(invitation)
        found = cls(home, parsed.session, parsed.slot)
        if not found._path.exists():
            found._save(_CourierState(url=parsed.url, code=parsed.code))
        return found

    @property
    def url(self) -> str:
        """Return the analyst's address."""
        return self._load().url

    def fetch(self, analyst: Analyst) -> TaskFile:
        """Return what the analyst says now.

        Raises NotReady if nothing is asked of this party now: others are awaited.
        """
        kept, said = self._load(), list[AnalystResponse]()
        if kept.token is None:
            text = analyst.preview(kept.code).model_dump_json()
            kept = kept.model_copy(update={"preview": text})
        else:
            said += self._where_it_stands(analyst.as_party(kept.token))
        preview = parse_answer(Preview, kept.preview.encode())
        said.append(AnalystResponse.of(questions.PREVIEW, preview))
        if kept.told is not None:
            said.append(_read_told(kept.told))
        number = kept.number + 1
        self._save(kept.model_copy(update={"number": number}))
        return TaskFile(
            session=self.session,
            slot=self.slot,
            number=number,
            has_joined=kept.token is not None,
            said=tuple(said),
        )

    def send(self, answer: AnswerFile, analyst: Analyst) -> str:
        """Send an answer; return in a few words what became of it.

        Raises GuardRefused if it is of another session, answers an older file, or was
            sent already.
        Raises KeyNotAuthentic if another institution signed it than the one that
            joined.
        Raises CoterieError if the analyst refuses it.
        """
        kept = self._load()
        digest = sha256(answer.body).hexdigest()
        place = self._check(kept, answer, digest)
        kept = kept.model_copy(update={"sent": digest, "key": answer.key})
        told: Receipt | CoterieError
        try:
            if place is None:
                token = analyst.join(**dict(answer.join_content))
                self._save(kept.model_copy(update={"token": token}))
                return "your slot is taken"
            own = analyst.as_party(kept.token or "")
            told, _ = own.contribute(self.session, *place, answer.body, digest=digest)
            said = "sent, and acknowledged"
        except (RoundClosed, SessionOver) as error:
            told, said = error, "the session continued without it: fetch what is next"
        self._save(kept.model_copy(update={"told": _describe(answer, told, digest)}))
        return said

    def _check(
        self, kept: _CourierState, answer: AnswerFile, digest: str
    ) -> tuple[int, int] | None:
        """Return for which round and attempt an answer is; None of one that joins."""
        here, there = (self.session, self.slot), (answer.session, answer.slot)
        if here != there:
            raise GuardRefused(
                f"This answer is of {' '.join(there)}, not of {' '.join(here)}."
            )
        if kept.sent == digest:
            raise GuardRefused("This answer was sent already: fetch what is next.")
        if answer.number != kept.number:
            raise GuardRefused(
                f"This answers file number {answer.number}; the last that was fetched "
                f"is number {kept.number}: answer that one."
            )
        if kept.key not in {None, answer.key}:
            raise KeyNotAuthentic(
                "Another institution signed this answer than the one that joined."
            )
        place = questions.place_of(answer.question, self.session)
        if place is None and answer.question != questions.JOIN:
            raise GuardRefused("This answer asks for what a party does not send.")
        return place

    def _where_it_stands(self, own: Analyst) -> list[AnalystResponse]:
        said: dict[Question, BaseModel | CoterieError | bytes] = {}
        task: bytes | SessionOver | None
        try:
            task = own.task(self.session, LONG_POLL_SECONDS)
        except SessionOver as over:
            task = over
        now = own.session(self.session)
        said[questions.name_session(self.session)] = now
        is_done = now.state is SessionState.COMPLETED
        if is_done or (now.all_joined and not now.is_over):
            agreement = own.agreement(self.session)
            said[questions.name_agreement(self.session)] = agreement
        if is_done:
            said[questions.name_result(self.session)] = own.result(self.session)
        elif task is None and not now.is_over:
            awaited = ", ".join(now.awaited_slots) or "the analyst"
            raise NotReady(
                f"Nothing is asked of you now. The session waits for {awaited}."
            )
        said[questions.name_task(self.session)] = task or b""
        return [AnalystResponse.of(*each) for each in said.items()]

    def _load(self) -> _CourierState:
        try:
            return _CourierState.model_validate_json(self._files.read(self._path))
        except FileNotFoundError:
            raise NotReady(
                f"Nothing is kept of {self.session} {self.slot} here: fetch with the "
                "invitation first."
            ) from None

    def _save(self, kept: _CourierState) -> None:
        private_folder(self._path.parent)
        self._files.write(self._path, kept.model_dump_json().encode())


def _describe(
    answer: AnswerFile, told: Receipt | CoterieError, digest: str
) -> dict[str, str]:
    response = AnalystResponse.of(answer.question, told)
    return {
        "path": answer.path,
        "digest": digest,
        "status": str(response.status),
        "media_type": response.media_type,
        "body": response.body.decode(),
    }


def _read_told(told: dict[str, str]) -> AnalystResponse:
    """Return what the analyst said to an answer; it names the answer by its digest."""
    return AnalystResponse(
        method=f"PUT {told['digest']}",
        path=told["path"],
        status=int(told["status"]),
        media_type=told["media_type"],
        body=told["body"].encode(),
    )
