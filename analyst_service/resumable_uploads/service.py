"""What may be added to an upload, and when it is whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import AuthService, Caller
from analyst_service.clock import Clock
from analyst_service.contributions.repository import ContributionRepository, SlotAttempt
from analyst_service.contributions.service import (
    AnswerPlace,
    check_open,
    check_valid,
    same_bytes,
    slot_of,
)
from analyst_service.resumable_uploads.repository import PieceRepository
from analyst_service.sessions.service import SessionService
from analyst_service.storage.models import Contribution, PartialUpload, Piece, Session
from clustering_protocols.common.errors import (
    ContributionDiffers,
    Malformed,
    NotFound,
    OffsetMismatch,
    StorageFull,
    Unavailable,
)
from coterie_http.resumption import least_piece


@dataclass(frozen=True, slots=True)
class IncomingPiece:
    """A piece as its request announces it; the last one says that it is."""

    offset: int
    length: int
    digest: str
    is_last: bool

    @property
    def end(self) -> int:
        """Return where the next piece would begin."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class UploadProgress:
    """How far an upload has come."""

    digest: str
    size: int
    offset: int
    is_complete: bool = False

    @classmethod
    def of(cls, contribution: Contribution) -> UploadProgress:
        """Return where an upload stands whose contribution is stored."""
        size = contribution.size
        return cls(contribution.digest, size, size, is_complete=True)


@dataclass(frozen=True, slots=True)
class ClaimedPieces:
    """Pieces that are being put together, by anyone who took them."""

    key: SlotAttempt
    digest: str
    size: int
    pieces: tuple[str, ...]


class PieceService:
    """Uploads in pieces, in one transaction."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._sessions = SessionService(transaction, clock)
        self._contributions = ContributionRepository(transaction)
        self._rows = PieceRepository(transaction)
        self._auth = AuthService(transaction, clock)
        self._clock = clock

    def begin(
        self, caller: Caller, place: AnswerPlace, digest: str, size: int, room: int
    ) -> UploadProgress:
        """Begin an upload, or return how far one of the same bytes has come.

        room: how many bytes can be taken now.

        Raises ContributionDiffers if an upload of other bytes is under way: one at a
            time for each answer.
        Raises Unavailable if one that ended is being removed still.
        Raises StorageFull if there is no room for one that is new.
        """
        key = self._key(caller, place)
        known = self._contributions.contribution(key)
        if known is not None:
            return UploadProgress.of(same_bytes(known, digest))
        upload = self._rows.upload(key, lock=True)
        if upload is None:
            if size > room:
                raise StorageFull(
                    f"The analyst's data folder has no room for {size} bytes."
                )
            now = self._clock.now()
            row = PartialUpload(
                **key._asdict(), digest=digest, size=size, changed_at=now
            )
            self._rows.add(row)
            return UploadProgress(digest, size, 0)
        _check_going(upload)
        if (upload.digest, upload.size) != (digest, size):
            raise ContributionDiffers(
                "An upload of other bytes is under way for this attempt; DELETE it first."
            )
        return self._build_progress(key, upload)

    def read_progress(self, caller: Caller, place: AnswerPlace) -> UploadProgress:
        """Return how far an upload has come; NotFound where none was begun."""
        key = self._key(caller, place)
        known = self._contributions.contribution(key)
        if known is not None:
            return UploadProgress.of(known)
        return self._build_progress(key, self._upload(key))

    def check(
        self, caller: Caller, place: AnswerPlace, piece: IncomingPiece
    ) -> UploadProgress:
        """Return how far an upload has come to which a piece may be added.

        Raises OffsetMismatch if the piece leaves a gap, or lies over another.
        Raises Malformed if it is too short, or ends beyond the upload, or is not its
            last.
        """
        session, key = self._place(caller, place)
        known = self._contributions.contribution(key)
        if known is None:
            return self._check(key, self._open(session, place, key), piece)
        if piece.is_last and piece.end == known.size:
            return UploadProgress.of(known)  # the answer to it was lost
        raise ContributionDiffers("This attempt was answered before.")

    def add(
        self,
        caller: Caller,
        place: AnswerPlace,
        piece: IncomingPiece,
        keep: Callable[[], None],
    ) -> UploadProgress:
        """Add a piece that has come, unless it was added before; ``keep`` its blob."""
        check_valid(caller, self._auth.still_valid([caller]))
        session, key = self._place(caller, place)
        upload = self._open(session, place, key, lock=True)
        before = self._check(key, upload, piece)
        if before.offset != piece.offset:  # a repeat
            return before
        keep()
        self._rows.add(
            Piece(
                **key._asdict(),
                position=piece.offset,
                size=piece.length,
                digest=piece.digest,
            )
        )
        upload.changed_at = self._clock.now()
        return UploadProgress(upload.digest, upload.size, piece.end)

    def take(
        self, caller: Caller, place: AnswerPlace, patience: timedelta
    ) -> ClaimedPieces | Contribution:
        """Take all pieces to put them together; or return what is stored already.

        patience: after how long without a sign of life (:meth:`renew`) anyone who took
            them before is taken for dead. Should they live, both store the same bytes
            once.

        Raises OffsetMismatch if some are missing.
        Raises Unavailable if somebody is at it, who is not known to be dead.
        """
        (session, key), now = self._place(caller, place), self._clock.now()
        known = self._contributions.contribution(key)
        if known is not None:
            return known
        upload = self._open(session, place, key, lock=True)
        missing = upload.size - self._rows.offset(key)
        if missing:
            raise OffsetMismatch(f"{missing} of {upload.size} bytes are missing.")
        # from the future it would be by a clock that was put back
        if upload.sealing_at is not None and abs(now - upload.sealing_at) < patience:
            raise Unavailable("Its pieces are being put together; ask again.")
        upload.sealing_at = now
        digests = tuple(self._rows.digests(key))
        return ClaimedPieces(key, upload.digest, upload.size, digests)

    def renew(self, key: SlotAttempt) -> None:
        """Give a sign of life of anyone who puts the pieces together."""
        upload = self._rows.upload(key, lock=True)
        if upload is not None and upload.sealing_at is not None:
            upload.sealing_at = self._clock.now()

    def release(self, key: SlotAttempt) -> None:
        """Let others put the pieces together."""
        upload = self._rows.upload(key, lock=True)
        if upload is not None:
            upload.sealing_at = None

    def end(self, key: SlotAttempt) -> None:
        """Take nothing more; the keeper removes what came."""
        upload = self._rows.upload(key, lock=True)
        if upload is not None:
            upload.ended_at = self._clock.now()

    def give_up(self, caller: Caller, place: AnswerPlace) -> None:
        """End the caller's upload; repeating it changes nothing."""
        self.end(self._key(caller, place))

    def _key(self, caller: Caller, place: AnswerPlace) -> SlotAttempt:
        _, key = self._place(caller, place)
        return key

    def _place(self, caller: Caller, place: AnswerPlace) -> tuple[Session, SlotAttempt]:
        session = self._sessions.visible(caller, place.session)
        return session, SlotAttempt(
            session.id, place.round, place.attempt, slot_of(caller)
        )

    def _open(
        self,
        session: Session,
        place: AnswerPlace,
        key: SlotAttempt,
        *,
        lock: bool = False,
    ) -> PartialUpload:
        check_open(session, place)
        upload = self._upload(key, lock=lock)
        _check_going(upload)
        return upload

    def _upload(self, key: SlotAttempt, *, lock: bool = False) -> PartialUpload:
        upload = self._rows.upload(key, lock=lock)
        if upload is None:
            raise NotFound("No upload was begun here; PUT begins one.")
        return upload

    def _build_progress(
        self, key: SlotAttempt, upload: PartialUpload
    ) -> UploadProgress:
        return UploadProgress(upload.digest, upload.size, self._rows.offset(key))

    def _check(
        self, key: SlotAttempt, upload: PartialUpload, piece: IncomingPiece
    ) -> UploadProgress:
        standing = self._build_progress(key, upload)
        if piece.offset != standing.offset and not self._was_added(key, piece):
            raise OffsetMismatch(
                f"The upload has {standing.offset} bytes; the piece begins at "
                f"{piece.offset}."
            )
        if piece.end > upload.size:
            raise Malformed(
                f"The piece ends at byte {piece.end} of an upload of {upload.size}."
            )
        if piece.is_last and piece.end != upload.size:
            raise Malformed(
                f"The last piece ends at byte {piece.end} of {upload.size}."
            )
        least = 1 if piece.end == upload.size else least_piece(upload.size)
        if piece.length < least and not piece.is_last:
            raise Malformed(f"Pieces of this upload have at least {least} bytes.")
        return standing

    def _was_added(self, key: SlotAttempt, piece: IncomingPiece) -> bool:
        known = self._rows.piece(key, piece.offset)
        return known is not None and (known.size, known.digest) == (
            piece.length,
            piece.digest,
        )


def _check_going(upload: PartialUpload) -> None:
    if upload.ended_at is not None:
        raise Unavailable("This upload has ended and is being removed; begin it again.")
