"""One exception per problem of the closed list.

A peer's bad message raises a :class:`CoterieError`: it names the rule and ends up as a
problem document or as a line for the operator. Wrong use by our own code raises
:class:`ValueError` or :class:`TypeError` and is a defect.

The text of an error never holds a row, an id, a token or a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.common.error_catalogue import Problem


class CoterieError(Exception):
    """Base of all errors that a person can mend; carries its problem and a detail.

    message: what is wrong.
    field: the wrong parameter or field, with which ``detail`` begins.
    remedy: for this cause; by default the problem's own remedy.
    cells: the detail with values of cells, a line each: only the operator's own
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
        CoterieError._classes.setdefault(problem, cls)  # keeps an earlier base class

    def __str__(self) -> str:
        return f"{self.problem.title}: {self.detail} {self.remedy}"

    @staticmethod
    def of(problem: Problem, detail: str) -> CoterieError:
        """Return the exception that belongs to a problem."""
        return CoterieError._classes[problem](detail)


class Malformed(CoterieError, problem=Problem.MALFORMED):
    """Bytes that do not parse."""


class InvalidParameters(CoterieError, problem=Problem.INVALID_PARAMETERS):
    """Parameters, layout or terms that do not fit together."""


class InvalidArray(CoterieError, problem=Problem.INVALID_ARRAY):
    """An array with a wrong name, dtype, shape or value."""


class AgreementMismatch(CoterieError, problem=Problem.AGREEMENT_MISMATCH):
    """A message of another agreement, session or slot."""


class VersionMismatch(CoterieError, problem=Problem.VERSION_MISMATCH):
    """Two releases that do not understand each other."""


class DigestMismatch(CoterieError, problem=Problem.DIGEST_MISMATCH):
    """A body that does not have the announced digest."""


class UnsupportedMedia(CoterieError, problem=Problem.UNSUPPORTED_MEDIA):
    """A media type or encoding that is not accepted."""


class LengthRequired(CoterieError, problem=Problem.LENGTH_REQUIRED):
    """A body of unknown length."""


class TooLarge(CoterieError, problem=Problem.TOO_LARGE):
    """A body over the limit."""


class Unauthenticated(CoterieError, problem=Problem.UNAUTHENTICATED):
    """A missing, unknown, expired or revoked credential."""


class Forbidden(CoterieError, problem=Problem.FORBIDDEN):
    """A credential of another role."""


class NotOffered(CoterieError, problem=Problem.NOT_OFFERED):
    """A feature that the administrator of this analyst has not turned on."""


class NotFound(CoterieError, problem=Problem.NOT_FOUND):
    """Nothing here, or nothing for this caller."""


class SessionExists(CoterieError, problem=Problem.SESSION_EXISTS):
    """The same session id with other terms."""


class InvitationUsed(CoterieError, problem=Problem.INVITATION_USED):
    """A one-time code that somebody else has used."""


class InvitationUnreadable(InvalidParameters, problem=Problem.INVITATION_UNREADABLE):
    """A text that is no invitation, or one that its coordinator did not sign."""


class InvitationExpired(CoterieError, problem=Problem.INVITATION_EXPIRED):
    """A one-time code past its time."""


class ShapeConflict(CoterieError, problem=Problem.SHAPE_CONFLICT):
    """Rows or columns that differ within a group."""


class RoundClosed(CoterieError, problem=Problem.ROUND_CLOSED):
    """A contribution to a round or attempt that is not open."""


class ContributionDiffers(CoterieError, problem=Problem.CONTRIBUTION_DIFFERS):
    """A second, different answer to one attempt of a round."""


class NotReady(CoterieError, problem=Problem.NOT_READY):
    """A request that the current state of the session does not allow yet."""


class SessionOver(CoterieError, problem=Problem.SESSION_OVER):
    """A session that has ended: its state, and the problem that ended it, if any."""

    def __init__(self, detail: str, state: str = "", reason: str | None = None) -> None:
        super().__init__(detail)
        self.state = state
        self.reason = reason


class RowsNotAligned(CoterieError, problem=Problem.ROWS_NOT_ALIGNED):
    """Row digests of a row group that differ."""


class OverlapTooSmall(CoterieError, problem=Problem.OVERLAP_TOO_SMALL):
    """Fewer common rows in a row group than the terms ask for."""


class ColumnsNotAligned(CoterieError, problem=Problem.COLUMNS_NOT_ALIGNED):
    """Column digests of a column group that differ."""


class ProtocolFailed(CoterieError, problem=Problem.PROTOCOL_FAILED):
    """A protocol that cannot continue with its data."""


class DeadlinePassed(CoterieError, problem=Problem.DEADLINE_PASSED):
    """A round, or the recruiting, that ran out of time."""


class PartyStopped(CoterieError, problem=Problem.PARTY_STOPPED):
    """A party stopped for good: it sends nothing more, or its stop ended the session."""


class Cancelled(CoterieError, problem=Problem.CANCELLED):
    """A session that its coordinator stopped."""


class RiskNotAccepted(CoterieError, problem=Problem.RISK_NOT_ACCEPTED):
    """A risk code that the party's policy does not list."""


class GuardRefused(CoterieError, problem=Problem.GUARD_REFUSED):
    """A local guard that stops the run."""


class KeyNotAuthentic(CoterieError, problem=Problem.KEY_NOT_AUTHENTIC):
    """A key, mark or signature that does not belong to the named institution."""


class SignatureRefused(CoterieError, problem=Problem.SIGNATURE_REFUSED):
    """A signature at the opening or closing that is not of the current transcript."""


class CertificateRefused(KeyNotAuthentic, problem=Problem.CERTIFICATE_REFUSED):
    """An analyst whose TLS certificate is not valid: nothing was sent to it."""


class EnvelopeRefused(CoterieError, problem=Problem.ENVELOPE_REFUSED):
    """An envelope that fails to open."""


class Equivocation(CoterieError, problem=Problem.EQUIVOCATION):
    """Two different tasks under one round and attempt."""


class TaskRefused(CoterieError, problem=Problem.TASK_REFUSED):
    """A task that may not follow what the party has answered."""


class AuditBroken(CoterieError, problem=Problem.AUDIT_BROKEN):
    """A hash-chained log that was changed, or lacks an entry that a receipt names."""


class InvalidData(CoterieError, problem=Problem.INVALID_DATA):
    """A table that cannot be clustered as it is."""


class Timeout(CoterieError, problem=Problem.TIMEOUT):
    """A request that came too slowly."""


class HeaderTooLarge(CoterieError, problem=Problem.HEADER_TOO_LARGE):
    """Headers over the limit."""


class TooManyRequests(CoterieError, problem=Problem.TOO_MANY_REQUESTS):
    """More requests at once than a caller, or the service, may have."""


class Internal(CoterieError, problem=Problem.INTERNAL):
    """An unexpected error in the analyst service."""


class QuotaReached(CoterieError, problem=Problem.QUOTA_REACHED):
    """More storage or sessions than the coordinator's quota allows."""


class StorageFull(CoterieError, problem=Problem.STORAGE_FULL):
    """No room for the bytes."""


class Unavailable(CoterieError, problem=Problem.UNAVAILABLE):
    """A service that cannot answer now."""
