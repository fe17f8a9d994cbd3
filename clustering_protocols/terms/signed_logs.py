"""Signed receipts, audits and ledgers: evidence that analyst and party can present.

The analyst signs each receipt and its audit with the key that the terms name. A party
signs its ledger with the key of its institution in the roster. Terms and agreement
suffice to verify the signatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    ValidationError,
    model_validator,
)

from clustering_protocols.common.errors import (
    AuditBroken,
    InvalidParameters,
    KeyNotAuthentic,
)
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records import hash_chain
from clustering_protocols.secrecy.identities import (
    Institution,
    Key,
    Signature,
    check_signature,
)
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.terms import Name
from clustering_protocols.wire.answers import Receipt

LogKind = Literal["audit", "ledger"]
M = TypeVar("M", bound=BaseModel)


# Receipts


def sign_receipt(analyst: Institution, receipt: Receipt) -> Receipt:
    """Return a receipt with the analyst's signature, which is deterministic."""
    signature = analyst.sign(_build_receipt_bytes(receipt))
    return receipt.model_copy(update={"signature": signature})


def check_receipt(analyst: str, receipt: Receipt) -> None:
    """Raise :class:`KeyNotAuthentic` unless the holder of this key signed a receipt."""
    signed_bytes = _build_receipt_bytes(receipt)
    check_signature(analyst, signed_bytes, receipt.signature, "this receipt")


def _build_receipt_bytes(receipt: Receipt) -> bytes:
    fields = ("round", "attempt", "digest", "size", "sequence", "entry")
    values = (str(getattr(receipt, name)) for name in fields)
    return length_prefixed("coterie/receipt/1", receipt.session, receipt.slot, *values)


# Audits and ledgers


def _require_iso_text(at: object) -> object:
    """Refuse seconds since 1970, which would be accepted as a time as well."""
    if not isinstance(at, str) or at[10:11] != "T":
        raise ValueError("not an ISO time")
    return at


class _Entry(BaseModel):
    """The fields of a line that readers of a log use; a line may have others."""

    model_config = ConfigDict(strict=True)

    at: Annotated[
        AwareDatetime, Field(strict=False), BeforeValidator(_require_iso_text)
    ]
    event: str
    slot: str | None = None
    round: NonNegativeInt | None = None
    attempt: NonNegativeInt | None = None
    digest: str | None = None
    reason: str | None = None

    @model_validator(mode="after")
    def _require_attempt(self) -> Self:
        if self.round and self.attempt is None:
            raise ValueError("a round needs an attempt")
        return self


class SignedLog(BaseModel):
    """A hash chain of lines, with a signature of the last one.

    log: ``audit`` for an analyst's log, ``ledger`` for a party's.
    slot: the slot of a ledger's party; empty for an audit.
    lines: the exact text of each line, the oldest first.
    key, signature: the signer's public key and signature (Ed25519, hex).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    coterie_log: Literal[1] = 1
    log: LogKind
    session: Name
    slot: Annotated[str, Field(max_length=63)] = ""
    lines: tuple[str, ...]
    key: Key
    signature: Signature

    @classmethod
    def read(cls, text: bytes) -> SignedLog:
        """Parse the bytes of a log file; raise InvalidParameters for any other file."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            raise InvalidParameters(
                "This is not what 'session audit --json' or 'party audit --json' prints."
            ) from None

    def verified_entries(self) -> list[dict[str, Any]]:
        """Verify the signature and the chain, and return the entries of all lines.

        Raises KeyNotAuthentic if the holder of the key did not sign the lines.
        Raises AuditBroken if the chain is broken, an entry lacks a time, an event or the
            attempt of its round, or an entry of an audit belongs to another session.
        """
        signed_bytes = _build_log_bytes(self.log, self.session, self.slot, self.lines)
        check_signature(self.key, signed_bytes, self.signature, f"this {self.log}")
        entries = list(hash_chain.read(self.lines))
        for entry in entries:
            _parse_entry(_Entry, entry)
            if self.log == "audit" and entry.get("session") != self.session:
                raise AuditBroken("The audit has entries of another session.")
        return entries


def sign_audit(analyst: Institution, session: str, lines: Sequence[str]) -> str:
    """Return the signature (hex) of an audit's last line, which covers all lines.

    lines: the last line, optionally preceded by earlier ones.
    """
    return analyst.sign(_build_log_bytes("audit", session, "", lines))


def build_signed_audit(lines: Sequence[str], key: str, signature: str) -> SignedLog:
    """Return the audit that an analyst sent; raise AuditBroken if it is unsigned."""
    first = next(hash_chain.read(lines), {})
    try:
        return SignedLog(
            log="audit",
            session=first.get("session"),
            lines=tuple(lines),
            key=key,
            signature=signature,
        )
    except ValidationError:
        raise AuditBroken("The analyst has no signed audit.") from None


def sign_ledger(
    institution: Institution, session: str, slot: str, lines: Sequence[str]
) -> SignedLog:
    """Return a party's ledger with the signature of its institution."""
    return SignedLog(
        log="ledger",
        session=session,
        slot=slot,
        lines=tuple(lines),
        key=institution.key,
        signature=institution.sign(_build_log_bytes("ledger", session, slot, lines)),
    )


def _build_log_bytes(log: str, session: str, slot: str, lines: Sequence[str]) -> bytes:
    last = hash_chain.digest(lines[-1]) if lines else hash_chain.START
    return length_prefixed("coterie/log/1", log, session, slot, last)


def compare_logs(audit: SignedLog, ledger: SignedLog) -> int:
    """Verify that the analyst's audit contains every receipt of a party's ledger.

    Returns int: the number of receipts. Each receipt is signed with the audit's key,
        and its line in the audit has the same digests.

    Raises InvalidParameters if the logs belong to different sessions.
    Raises AuditBroken if a receipt does not match, for example in a truncated audit.
    Raises KeyNotAuthentic if one of the logs, or a receipt, is not signed with its key.
    """
    entries = audit.verified_entries()
    _check_session(audit, "receipts belong", ledger.session)
    place = {"session": ledger.session, "slot": ledger.slot}
    receipts = [
        _parse_entry(Receipt, {**entry, **place})
        for entry in ledger.verified_entries()
        if entry["event"] == "receipt"
    ]
    for receipt in receipts:
        check_receipt(audit.key, receipt)
        _check_receipt_line(receipt, audit.lines, entries)
    return len(receipts)


def _parse_entry(kind: type[M], entry: Mapping[str, Any]) -> M:
    """Return an entry as a model; raise AuditBroken if fields are absent or wrong."""
    try:
        return kind.model_validate(entry)
    except ValidationError:
        raise AuditBroken(
            f"Line {entry['number']} lacks fields of its event."
        ) from None


def check_log_key(log: SignedLog, agreement: bytes) -> None:
    """Raise unless a log is signed with the key that the agreement (exact bytes) names.

    Raises InvalidParameters if the agreement belongs to another session.
    Raises KeyNotAuthentic unless an audit has the analyst's key in the terms, and a
        ledger the key of the institution of its slot.
    """
    document, terms = read_agreement(agreement)
    signers = {member.slot: member.identity for member in document.roster}
    expected = terms.identities.analyst if log.log == "audit" else signers.get(log.slot)
    _check_session(log, "agreement belongs", terms.session)
    if log.key != expected:
        raise KeyNotAuthentic(
            f"The {log.log} is not signed with the key that the agreement names."
        )


def _check_session(log: SignedLog, subject: str, session: str) -> None:
    """Raise InvalidParameters if a log belongs to another session.

    Otherwise the log would seem broken, and its signer would be accused by mistake.
    """
    if log.session != session:
        raise InvalidParameters(
            f"The {log.log} belongs to session {log.session!r}, but the {subject} to "
            f"{session!r}: use files of the same session."
        )


def _check_receipt_line(
    receipt: Receipt,
    lines: Sequence[str],
    entries: Sequence[Mapping[str, Any]],
) -> None:
    number = receipt.sequence
    if not 1 <= number <= len(lines):
        raise AuditBroken(f"A receipt names line {number}; there are {len(lines)}.")
    names = ("round", "attempt", "digest")
    line, entry = lines[number - 1], entries[number - 1]
    is_line = hash_chain.digest(line) == receipt.entry
    if not is_line or any(entry.get(name) != getattr(receipt, name) for name in names):
        raise AuditBroken(f"Line {number} differs from the line of a party's receipt.")
