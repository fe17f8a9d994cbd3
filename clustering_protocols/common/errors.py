"""The exceptions of Coterie: one class for each problem of the closed list.

An invalid message from a peer raises a :class:`CoterieError`. The error names the
violated rule and is shown as a problem document or as a line for the operator.
Incorrect calls by our own code raise :class:`ValueError` or :class:`TypeError`, which
indicate a bug.

The text of an error never contains values of a row, an id, a token or a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.common.error_catalogue import Problem


class CoterieError(Exception):
    """Base class of all errors that a user can resolve.

    message: a description of what is wrong.
    field: the invalid parameter or field; ``detail`` begins with it.
    remedy: what to do about this cause; by default the remedy of the problem.
    cells: lines that repeat the detail with values of cells. Only the operator's own
        terminal and desk show them.
    """

    problem: ClassVar[Problem] = Problem.INTERNAL
    _classes: ClassVar[dict[Problem, type[CoterieError]]] = {}

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        remedy: str = "",
        cells: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.detail = f"{field}: {message}" if field else message
        self.remedy = remedy or self.problem.remedy
        self.cells = tuple(cells)

    def __init_subclass__(cls, *, problem: Problem) -> None:
        super().__init_subclass__()
        cls.problem = problem
        # A subclass that shares its base's problem must not replace the base.
        CoterieError._classes.setdefault(problem, cls)

    def __str__(self) -> str:
        return f"{self.problem.title}: {self.detail} {self.remedy}"

    @staticmethod
    def of(problem: Problem, detail: str) -> CoterieError:
        """Return an exception of the class that belongs to a problem."""
        return CoterieError._classes[problem](detail)


class Malformed(CoterieError, problem=Problem.MALFORMED):
    """The input could not be parsed."""


class InvalidParameters(CoterieError, problem=Problem.INVALID_PARAMETERS):
    """The parameters, layout or terms are invalid or do not fit together."""


class InvalidArray(CoterieError, problem=Problem.INVALID_ARRAY):
    """An array has a wrong name, dtype, shape or value."""


class AgreementMismatch(CoterieError, problem=Problem.AGREEMENT_MISMATCH):
    """A message belongs to another agreement, session or slot."""


class VersionMismatch(CoterieError, problem=Problem.VERSION_MISMATCH):
    """The two sides use releases that are not compatible."""


class DigestMismatch(CoterieError, problem=Problem.DIGEST_MISMATCH):
    """A body does not have the digest that its header announced."""


class UnsupportedMedia(CoterieError, problem=Problem.UNSUPPORTED_MEDIA):
    """The media type or encoding of a body is not accepted."""


class LengthRequired(CoterieError, problem=Problem.LENGTH_REQUIRED):
    """The request does not announce the length of its body."""


class TooLarge(CoterieError, problem=Problem.TOO_LARGE):
    """The body exceeds the size limit."""


class Unauthenticated(CoterieError, problem=Problem.UNAUTHENTICATED):
    """The credential is missing, unknown, expired or revoked."""


class Forbidden(CoterieError, problem=Problem.FORBIDDEN):
    """The credential is valid but belongs to a different role."""


class NotOffered(CoterieError, problem=Problem.NOT_OFFERED):
    """The administrator of this analyst has not enabled the feature."""


class NotFound(CoterieError, problem=Problem.NOT_FOUND):
    """The resource does not exist, or the caller may not see it."""


class SessionExists(CoterieError, problem=Problem.SESSION_EXISTS):
    """A session with this id exists and has different terms."""


class InvitationUsed(CoterieError, problem=Problem.INVITATION_USED):
    """Another set of keys has already used this invitation."""


class InvitationUnreadable(InvalidParameters, problem=Problem.INVITATION_UNREADABLE):
    """The text is not an invitation, or its coordinator did not sign it."""


class InvitationExpired(CoterieError, problem=Problem.INVITATION_EXPIRED):
    """The invitation has expired."""


class ShapeConflict(CoterieError, problem=Problem.SHAPE_CONFLICT):
    """The number of rows or columns differs within a group."""


class RoundClosed(CoterieError, problem=Problem.ROUND_CLOSED):
    """A contribution was sent for a round or attempt that is not open."""


class ContributionDiffers(CoterieError, problem=Problem.CONTRIBUTION_DIFFERS):
    """A different contribution was already stored for the same attempt of a round."""


class NotReady(CoterieError, problem=Problem.NOT_READY):
    """The current state of the session does not allow the request."""


class SessionOver(CoterieError, problem=Problem.SESSION_OVER):
    """The session has ended; ``state`` and ``reason`` say how."""

    def __init__(self, detail: str, state: str = "", reason: str | None = None) -> None:
        super().__init__(detail)
        self.state = state
        self.reason = reason


class RowsNotAligned(CoterieError, problem=Problem.ROWS_NOT_ALIGNED):
    """The parties of a row group reported different digests of their rows."""


class OverlapTooSmall(CoterieError, problem=Problem.OVERLAP_TOO_SMALL):
    """A row group has fewer rows in common than the terms require."""


class ColumnsNotAligned(CoterieError, problem=Problem.COLUMNS_NOT_ALIGNED):
    """The parties of a column group reported different digests of their columns."""


class ProtocolFailed(CoterieError, problem=Problem.PROTOCOL_FAILED):
    """The protocol cannot continue with the parties' data."""


class DeadlinePassed(CoterieError, problem=Problem.DEADLINE_PASSED):
    """The deadline of a round, or for joining, has passed."""


class PartyStopped(CoterieError, problem=Problem.PARTY_STOPPED):
    """A party stopped permanently and will send nothing more in this session."""


class Cancelled(CoterieError, problem=Problem.CANCELLED):
    """The coordinator cancelled the session."""


class RiskNotAccepted(CoterieError, problem=Problem.RISK_NOT_ACCEPTED):
    """The session has a risk that the party's policy does not accept."""


class GuardRefused(CoterieError, problem=Problem.GUARD_REFUSED):
    """One of the party's own safety limits does not allow the action."""


class KeyNotAuthentic(CoterieError, problem=Problem.KEY_NOT_AUTHENTIC):
    """A key, mark or signature does not belong to the named institution."""


class SignatureRefused(CoterieError, problem=Problem.SIGNATURE_REFUSED):
    """A party's signature is not a valid signature of the current transcript."""


class CertificateRefused(KeyNotAuthentic, problem=Problem.CERTIFICATE_REFUSED):
    """The analyst's TLS certificate is not valid, so nothing was sent."""


class EnvelopeRefused(CoterieError, problem=Problem.ENVELOPE_REFUSED):
    """An encrypted message from another party could not be opened."""


class Equivocation(CoterieError, problem=Problem.EQUIVOCATION):
    """The analyst sent two different tasks for the same round and attempt."""


class TaskRefused(CoterieError, problem=Problem.TASK_REFUSED):
    """The protocol does not allow this task after the party's previous answers."""


class AuditBroken(CoterieError, problem=Problem.AUDIT_BROKEN):
    """A hash-chained log was altered, or lacks an entry that a receipt names."""


class InvalidData(CoterieError, problem=Problem.INVALID_DATA):
    """The table cannot be clustered in its present form."""


class Timeout(CoterieError, problem=Problem.TIMEOUT):
    """The request arrived too slowly."""


class HeaderTooLarge(CoterieError, problem=Problem.HEADER_TOO_LARGE):
    """The headers of the request exceed the size limit."""


class TooManyRequests(CoterieError, problem=Problem.TOO_MANY_REQUESTS):
    """The caller, or all callers together, sent too many requests at once."""


class Internal(CoterieError, problem=Problem.INTERNAL):
    """An unexpected error occurred in the analyst service."""


class QuotaReached(CoterieError, problem=Problem.QUOTA_REACHED):
    """The coordinator's quota of storage or sessions is used up."""


class StorageFull(CoterieError, problem=Problem.STORAGE_FULL):
    """There is not enough disk space to store the bytes."""


class Unavailable(CoterieError, problem=Problem.UNAVAILABLE):
    """The service cannot answer at the moment."""
