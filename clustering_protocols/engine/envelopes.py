"""Envelopes at a party: sealed for another one, and opened when they come."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.common.errors import EnvelopeRefused
from clustering_protocols.contract import PartyContext, PeerMessage, Stage
from clustering_protocols.engine.journal import Journal
from clustering_protocols.engine.packets import Envelope, EnvelopeLabel, Packet
from clustering_protocols.secrecy import envelopes as sealing
from clustering_protocols.secrecy.keys import PartyKeys, party_keys


def seal(context: PartyContext, asked: Packet, message: PeerMessage) -> Envelope:
    """Return a record that its receiver alone can read, with a label for the analyst."""
    when = dict(asked.address.when)
    label = EnvelopeLabel(peer=message.peer, kind=message.content.kind, **when)
    bound = _bound(context, label, sender=context.slot.name, receiver=message.peer)
    peer = context.session.member(message.peer).keys
    content = message.content.encode()
    return Envelope(
        label=label, sealed=sealing.seal(content, bound, _keys(context), peer)
    )


def unseal(context: PartyContext, stage: Stage, envelope: Envelope) -> PeerMessage:
    """Return the record in an envelope of a stage.

    Raises EnvelopeRefused if another sealed it, for another, or for another moment.
    """
    label, session = envelope.label, context.session
    kind = next((e for e in stage.envelopes if e.kind == label.kind), None)
    if kind is None or label.peer not in session.slots:
        raise EnvelopeRefused("Its label names no known sender or kind.")
    bound = _bound(context, label, sender=label.peer, receiver=context.slot.name)
    peer = session.member(label.peer).keys
    content = sealing.open_envelope(envelope.sealed, bound, _keys(context), peer)
    return PeerMessage(peer=label.peer, content=kind.decode(content))


def group_by_round(envelopes: Sequence[Envelope]) -> dict[int, list[Envelope]]:
    """Return the envelopes of each round in which some were sealed, in that order."""
    found: dict[int, list[Envelope]] = {}
    for envelope in sorted(envelopes, key=lambda each: each.label.round):
        found.setdefault(envelope.label.round, []).append(envelope)
    return found


def check_fresh(
    journal: Journal, asked: Packet, round_: int, envelopes: Sequence[Envelope]
) -> None:
    """Refuse envelopes but those of rounds since this party's last answer.

    Each round's last attempt counts alone: what was sealed in the others was in vain.
    """
    answered = [each for each in journal.recent if each < asked.address.round]
    is_new = max(answered, default=0) <= round_ < asked.address.round
    last = max(
        (att for told, att in journal.transcript_by_attempt if told == round_),
        default=0,
    )
    if not is_new or any(each.label.attempt != last for each in envelopes):
        raise EnvelopeRefused("It was not sealed since the last answer, or in vain.")


def _keys(context: PartyContext) -> PartyKeys:
    session = context.session.terms.session
    return party_keys(context.entropy, session, context.slot.name)


def _bound(
    context: PartyContext, label: EnvelopeLabel, *, sender: str, receiver: str
) -> sealing.Binding:
    return sealing.Binding(
        transcript=context.transcript_of(label.round, label.attempt),
        session=context.session.terms.session,
        sender=sender,
        receiver=receiver,
        kind=label.kind,
        **dict(label.when),
    )
