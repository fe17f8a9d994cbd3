"""The closed list of problems that the service and the SDK can report.

The service answers with an RFC 9457 problem document, and the SDK raises the exception
of the same name (:mod:`clustering_protocols.common.errors`). The problem's remedy says
in general what to do; the detail that accompanies it says what was expected and
received.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

URN = "urn:coterie:problem:"


class Facts(NamedTuple):
    """The HTTP status, title and remedy of a problem."""

    status: int
    title: str
    remedy: str


class Problem(Enum):
    """Every reason for which the service or the SDK refuses or abandons something."""

    def __init__(self, status: int, title: str, remedy: str) -> None:
        self.status, self.title, self.remedy = status, title, remedy

    # Invalid requests
    MALFORMED = Facts(
        400,
        "The input cannot be read",
        "Send a request as the OpenAPI document of this service describes it, or an "
        "unchanged file.",
    )
    INVALID_PARAMETERS = Facts(
        422,
        "The parameters do not fit",
        "Correct the named parameter: --help lists the options of a command, 'coterie protocols "
        "NAME' (GET /v1/protocols) the parameters of a protocol.",
    )
    INVALID_ARRAY = Facts(
        422,
        "An array does not match the task's declaration",
        "Send exactly the arrays of the task's declaration: name, dtype, shape, range.",
    )
    AGREEMENT_MISMATCH = Facts(
        422,
        "The message belongs to another agreement, session or slot",
        "Stop, and ask the coordinator whether this is their session; a program must answer the task of GET …/task, under its agreement.",
    )
    VERSION_MISMATCH = Facts(
        422,
        "The two sides speak different versions",
        "Install the same release on both sides. A release cannot continue sessions of an older protocol version: open a new session.",
    )
    DIGEST_MISMATCH = Facts(
        422,
        "The bytes do not match the Content-Digest",
        "Send the stored bytes again with their 'Content-Digest: sha-256=:…:'.",
    )
    UNSUPPORTED_MEDIA = Facts(
        415,
        "The media type is not accepted here",
        "Send arrays as application/vnd.coterie.arrays, without Content-Encoding.",
    )
    LENGTH_REQUIRED = Facts(
        411,
        "The request has no Content-Length",
        "Send Content-Length; chunked bodies are not accepted.",
    )
    TOO_LARGE = Facts(
        413,
        "The body is larger than this service accepts",
        "Send less, or ask the administrator to raise the limit.",
    )
    # Authentication, permissions and quotas
    UNAUTHENTICATED = Facts(
        401,
        "The request has no valid credential",
        "Pass a key that has not expired: --key or COTERIE_KEY (over HTTP 'Authorization: Bearer …'); the administrator sees when keys expire ('coterie key list').",
    )
    FORBIDDEN = Facts(
        403,
        "This credential may not do that",
        "Use a coordinator's key for sessions, and an administrator's key for keys; a party's token works only for its own slot.",
    )
    NOT_OFFERED = Facts(
        403,
        "This analyst does not offer that",
        "Ask its administrator, whose settings decide; everything else works without it.",
    )
    QUOTA_REACHED = Facts(
        403,
        "The coordinator's quota is used up",
        "The coordinator must end or delete sessions, or ask the administrator for a "
        "larger quota; then try again.",
    )
    NOT_FOUND = Facts(
        404,
        "There is nothing here for this caller",
        "Check id, slot and address, and that the key belongs to the session's coordinator ('coterie session list').",
    )
    # Conflicts with the current state of a session
    SESSION_EXISTS = Facts(
        409,
        "A session with this id exists with different terms",
        "Choose another id; the terms of a session cannot change.",
    )
    INVITATION_USED = Facts(
        409,
        "The invitation was used with other keys",
        "Resume where it was used, or ask the coordinator for a new invitation.",
    )
    INVITATION_UNREADABLE = Facts(
        422,
        "This cannot be used as an invitation",
        "Copy the whole invitation from the coordinator's letter or file, or give the "
        "file as @FILE.",
    )
    INVITATION_EXPIRED = Facts(
        410,
        "The invitation is no longer valid",
        "Ask the coordinator for a new invitation; or for a new session, if the "
        "administrator revoked the slot.",
    )
    SHAPE_CONFLICT = Facts(
        409,
        "The data does not fit that of parties that joined before",
        "Parties of a row group must hold the same rows, and parties of a column group "
        "the same columns: compare the selections.",
    )
    ROUND_CLOSED = Facts(
        409,
        "This round and attempt are not open",
        "Run the same command again: it answers the open round (GET …/task names round and attempt).",
    )
    CONTRIBUTION_DIFFERS = Facts(
        409,
        "Other bytes were already stored for this attempt",
        "Send the stored bytes; a new answer needs a new attempt.",
    )
    NOT_READY = Facts(
        409,
        "This is not possible now",
        "Do what the message names; 'coterie session show' (GET /v1/sessions/{id}) lists "
        "awaited parties, and 'coterie party status' the sessions of this home.",
    )
    SESSION_OVER = Facts(
        410,
        "The session is over",
        "Read the reason; open a new session to try again.",
    )
    # Reasons for which a session ends early
    ROWS_NOT_ALIGNED = Facts(
        409,
        "Parties of one row group do not hold the same rows",
        "Compare the ids of all parties of the row group and start again; with "
        "alignment.method ecdh only the common rows take part.",
    )
    OVERLAP_TOO_SMALL = Facts(
        409,
        "Parties of one row group have too few rows in common",
        "Compare which ids the parties use and how they write them; "
        "alignment.normalisation decides which spellings are equal.",
    )
    COLUMNS_NOT_ALIGNED = Facts(
        409,
        "Parties of one column group do not hold the same columns in the same order",
        "Give each party of the column group the same column names in the same order.",
    )
    PROTOCOL_FAILED = Facts(
        409,
        "The protocol could not continue",
        "Read the detail, change the parameters or the data, and open a new session.",
    )
    DEADLINE_PASSED = Facts(
        410,
        "Too few parties answered before the deadline",
        "Open a new session once all parties are ready; 'coterie session extend' waits "
        "longer while there is time.",
    )
    PARTY_STOPPED = Facts(
        410,
        "A party stopped for good",
        "Ask the named institution. Open a new session to try again.",
    )
    CANCELLED = Facts(
        410,
        "The coordinator cancelled the session",
        "Ask the coordinator why; open a new session to try again.",
    )
    # Checks on the party's own machine
    RISK_NOT_ACCEPTED = Facts(
        403,
        "The session has a risk that this party's policy does not accept",
        "Read the terms sheet; accept it (--accept, or accepted_risks of your policy), or "
        "do not join.",
    )
    GUARD_REFUSED = Facts(
        403,
        "A guard of this party refuses",
        "Change the data, the terms, the file, or the guard of the policy that is named.",
    )
    KEY_NOT_AUTHENTIC = Facts(
        403,
        "A key or a signature does not belong to the named institution",
        "Stop and tell the coordinator, through a channel that the analyst does not control.",
    )
    SIGNATURE_REFUSED = Facts(
        422,
        "A party did not sign the transcript of this attempt",
        "Sign the transcript of the open attempt with the key of the roster, and send the signature; nothing was stored.",
    )
    CERTIFICATE_REFUSED = Facts(
        403,
        "The analyst's certificate is not valid",
        "Nothing was sent. Tell the administrator of the analyst; 'coterie doctor URL' "
        "prints details.",
    )
    ENVELOPE_REFUSED = Facts(
        422,
        "An envelope cannot be opened",
        "It was changed, replayed or misrouted. Stop and tell the coordinator.",
    )
    EQUIVOCATION = Facts(
        409,
        "The analyst sent two different tasks for one round and attempt",
        "Nothing was sent. Stop and tell the coordinator. The analyst is dishonest, or it "
        "was restored from a backup; ask its administrator.",
    )
    TASK_REFUSED = Facts(
        409,
        "The analyst sent a task that the protocol does not allow now",
        "Nothing was sent, and this party sends nothing more in this session. Stop and "
        "tell the coordinator.",
    )
    AUDIT_BROKEN = Facts(
        409,
        "A log was changed",
        "Keep a copy of it and of the parties' receipts. Stop and find out who changed it.",
    )
    INVALID_DATA = Facts(
        422,
        "The table cannot be used",
        "Correct the named column or row in the input.",
    )
    # Failures and limits of the service
    TIMEOUT = Facts(
        408,
        "The request was too slow",
        "Send it again over a faster connection.",
    )
    HEADER_TOO_LARGE = Facts(
        431,
        "The headers are larger than this service accepts",
        "Send fewer or shorter headers.",
    )
    TOO_MANY_REQUESTS = Facts(
        429,
        "There are too many requests",
        "Wait for the number of seconds in Retry-After, then retry.",
    )
    INTERNAL = Facts(
        500,
        "The service failed",
        "Try again; if it fails again, give the request id to the administrator.",
    )
    STORAGE_FULL = Facts(
        507,
        "There is no room left",
        "Nothing was stored. Ask the analyst's administrator to free space, then send "
        "again.",
    )
    UNAVAILABLE = Facts(
        503,
        "The service cannot answer now",
        "Try again later. The administrator finds the reason in the analyst's log ('not "
        "ready').",
    )

    @property
    def slug(self) -> str:
        """Return the last part of the problem's URN, for example ``round-closed``."""
        return self.name.lower().replace("_", "-")

    @property
    def urn(self) -> str:
        """Return the value of ``type`` in the problem document (RFC 9457)."""
        return URN + self.slug

    @classmethod
    def from_slug(cls, slug: str) -> Problem:
        """Return the problem with a slug or URN; raise :class:`KeyError` for others."""
        return _BY_SLUG[slug.removeprefix(URN)]


_BY_SLUG = {problem.slug: problem for problem in Problem}
