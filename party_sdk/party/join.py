"""How a party checks an invitation, and takes the slot."""

from __future__ import annotations

import secrets

from clustering_protocols.common.errors import (
    AgreementMismatch,
    CoterieError,
    GuardRefused,
    KeyNotAuthentic,
    Unavailable,
)
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.answers import Preview
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.home.policy import Policy
from party_sdk.party.party_session import Identity, PartySession
from party_sdk.party.roster import Meeting

_ATTEMPTS = 5


def first_time(
    parsed: Invitation,
    folder: PartySession,
    analyst: Analyst,
    policy: Policy,
    meeting: Meeting,
) -> Preview:
    """Return the preview of an invitation that the policy covers; remember it."""
    try:
        policy.check_inviter(parsed.url, parsed.coordinator, meeting.trusted_keys)
        preview, terms = preview_terms(analyst, parsed)
        policy.check_terms(terms)
        meeting.check_seat(terms, parsed.slot)
    except CoterieError:
        analyst.close()
        raise
    drawn = meeting.entropy or secrets.token_bytes(32)
    identity = Identity(
        invitation=str(parsed),
        entropy=drawn.hex(),
        terms=preview.terms,
        accepted_risks=tuple(sorted(terms.risks)),  # the policy covers all of them
    )
    with folder.lock():
        if not folder.exists:  # of two that join at once the first one's draw counts
            folder.save_identity(identity)
    return preview


def check_again(later: Invitation, folder: PartySession, *, accept_moved: bool) -> None:
    """Refuse a second invitation that would lead this party to somebody else."""
    identity = folder.load_identity()
    first = Invitation.parse(identity.invitation)
    if later.secret != first.secret:
        raise GuardRefused(
            "This party joined with another invitation of this session and slot, which "
            "has another session secret: this one is not from the same coordinator. If it "
            "is meant for another session of this id, take part from another home "
            "(--home), or 'coterie party forget' the earlier one."
        )
    if (later.terms, later.coordinator) != (first.terms, first.coordinator):
        raise GuardRefused("This invitation is for other terms than were accepted.")
    if later.is_of_same_analyst(first):
        return
    if not accept_moved:
        raise GuardRefused(
            f"This party joined at {first.url}; this invitation names {later.url}. Its "
            "token is not sent there. If the coordinator confirms that the analyst has "
            "moved, say so to 'coterie party join': --moved, or accept_moved=True."
        )
    with folder.lock():
        folder.save_identity(identity.model_copy(update={"invitation": str(later)}))


def take_slot(
    analyst: Analyst, parsed: Invitation, entropy: bytes, member: Member
) -> str:
    """Join with a line of the roster, and return the token.

    The proof covers how often the slot was joined before: a repeat after a lost answer
    comes too late for its proof, and needs another.

    Raises KeyNotAuthentic if the analyst takes a proof of the right number for false.
    Raises Unavailable if others join the slot all the time.
    """
    for _ in range(_ATTEMPTS):
        joins = analyst.preview(parsed.code).joins
        proof = roster_entries.prove(
            entropy, parsed.session, member, parsed.code, joins
        )
        try:
            return analyst.join(parsed.code, member, proof)
        except KeyNotAuthentic:
            if analyst.preview(parsed.code).joins == joins:
                raise
    raise Unavailable(
        "Others join this slot all the time.",
        remedy="Ask who else runs a command for this slot, and run it once more alone.",
    )


def preview_terms(analyst: Analyst, parsed: Invitation) -> tuple[Preview, Terms]:
    """Return what the analyst previews of an invitation, and its terms.

    Raises AgreementMismatch if they are not those that the coordinator signed, for this
        session and slot.
    """
    preview = analyst.preview(parsed.code)
    if digest(preview.terms.encode()) != parsed.terms:
        raise AgreementMismatch(
            "The analyst shows other terms than the coordinator signed."
        )
    terms = read_terms(preview.terms.encode())
    if terms.identities.coordinator != parsed.coordinator:
        raise AgreementMismatch(
            "Somebody else than the terms' coordinator signed them."
        )
    if (terms.session, preview.slot) != (parsed.session, parsed.slot):
        raise AgreementMismatch("The analyst previews another session or slot.")
    return preview, terms
