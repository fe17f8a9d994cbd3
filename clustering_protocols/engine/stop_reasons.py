"""In which word a party says why it stopped for good.

A word says whose turn it is, and no more. Which check refused stays at home: it would
tell others something of the rows, or of the party's policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.wire.states import StopReason

_BY_ROWS: Final = (
    Problem.INVALID_DATA,
    Problem.SHAPE_CONFLICT,
    Problem.ROWS_NOT_ALIGNED,
    Problem.OVERLAP_TOO_SMALL,
    Problem.COLUMNS_NOT_ALIGNED,
)
_BY_PEOPLE: Final = (
    Problem.CANCELLED,
    Problem.DEADLINE_PASSED,
    Problem.PARTY_STOPPED,
    Problem.SESSION_OVER,
)
_BY_RULES: Final = (
    Problem.MALFORMED,
    Problem.INVALID_ARRAY,
    Problem.AGREEMENT_MISMATCH,
    Problem.PROTOCOL_FAILED,
    Problem.RISK_NOT_ACCEPTED,
    Problem.GUARD_REFUSED,
    Problem.KEY_NOT_AUTHENTIC,
    Problem.SIGNATURE_REFUSED,
    Problem.CERTIFICATE_REFUSED,
    Problem.ENVELOPE_REFUSED,
    Problem.EQUIVOCATION,
    Problem.TASK_REFUSED,
    Problem.AUDIT_BROKEN,
)
_BY_PROGRAM: Final = (
    Problem.INVALID_PARAMETERS,
    Problem.VERSION_MISMATCH,
    Problem.DIGEST_MISMATCH,
    Problem.UNSUPPORTED_MEDIA,
    Problem.LENGTH_REQUIRED,
    Problem.TOO_LARGE,
    Problem.UNAUTHENTICATED,
    Problem.FORBIDDEN,
    Problem.NOT_OFFERED,
    Problem.QUOTA_REACHED,
    Problem.NOT_FOUND,
    Problem.SESSION_EXISTS,
    Problem.INVITATION_USED,
    Problem.INVITATION_UNREADABLE,
    Problem.INVITATION_EXPIRED,
    Problem.ROUND_CLOSED,
    Problem.CONTRIBUTION_DIFFERS,
    Problem.OFFSET_MISMATCH,
    Problem.NOT_READY,
    Problem.TIMEOUT,
    Problem.HEADER_TOO_LARGE,
    Problem.TOO_MANY_REQUESTS,
    Problem.INTERNAL,
    Problem.STORAGE_FULL,
    Problem.UNAVAILABLE,
)

STOP_REASONS: Final[Mapping[Problem, StopReason]] = MappingProxyType(
    dict.fromkeys(_BY_PEOPLE, StopReason.LEFT)
    | dict.fromkeys(_BY_RULES, StopReason.REFUSED)
    | dict.fromkeys(_BY_ROWS, StopReason.DATA)
    | dict.fromkeys(_BY_PROGRAM, StopReason.SOFTWARE)
)
"""The word for each problem of the catalogue."""


def find_stop_reason(error: CoterieError) -> StopReason:
    """Return the word for an error that stopped a party for good."""
    return STOP_REASONS[error.problem]
