"""Masked sums: the analyst adds up what it cannot read.

A party adds to its ring elements one stream per other member; the streams cancel in the
sum over all members. In a *blind* sum the first member also adds a stream that only the
group knows, so that the analyst cannot read the total either: it hands the total back
and the members take the stream off.

A stream serves one array of one attempt and one list of members, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from clustering_protocols.arrays import WordArray
from clustering_protocols.contract import PartyContext
from clustering_protocols.errors import GuardRefused
from clustering_protocols.limits import MINIMUM_MEMBERS
from clustering_protocols.preparation.secrets import Scope, group_stream
from clustering_protocols.randomness import KeyedStream, length_prefixed
from clustering_protocols.secrecy.masks import add_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSum:
    """One sum over some members of a group.

    Attributes
    ----------
    members : tuple of str
        Who adds, in slot order; the first leads.
    stage, name : str
        What is added.
    round, attempt : int
        When.
    """

    members: tuple[str, ...]
    stage: str
    name: str
    round: int
    attempt: int

    @classmethod
    def here(
        cls, context: PartyContext, members: Sequence[str], name: str
    ) -> MaskedSum:
        """Return the sum that the round in hand is about."""
        return cls(
            members=tuple(members),
            stage=context.stage,
            name=name,
            round=context.round,
            attempt=context.attempt,
        )

    @property
    def label(self) -> str:
        """Return a text (hex) that differs for any two sums of a session."""
        when = (self.round, self.attempt)
        bound = length_prefixed(self.stage, self.name, *when, *self.members)
        return sha256(bound).hexdigest()


def mask(
    context: PartyContext,
    words: WordArray,
    of: MaskedSum,
    *,
    inputs: bytes = b"",
    minimum_members: int = MINIMUM_MEMBERS,
) -> None:
    """Hide a party's share of a sum, in place.

    Parameters
    ----------
    words : uint64 array
    of : MaskedSum
    inputs : bytes, optional
        A digest of what this share was computed from and all members must have alike:
        where it differs the masks do not cancel, and the total is noise.
    minimum_members : int
        The caller's own floor; two is for sessions whose terms allow it.

    Raises
    ------
    GuardRefused
        If there are too few members, or this party is none of them.
    """
    check_members(context, of.members, minimum_members)
    labels = ("coterie/mask/1", of.label, inputs)
    for sign, stream in pairwise_streams(context, of.members, *labels):
        add_stream(words, stream, sign)


def pairwise_streams(
    context: PartyContext, members: Sequence[str], *labels: bytes | str | int
) -> Iterator[tuple[int, KeyedStream]]:
    """Yield a stream for each other member: to add (1) if it comes later, else -1."""
    slots = context.session.slots
    own = slots.index(context.slot.name)
    for peer in members:
        if peer != context.slot.name:
            sign = 1 if slots.index(peer) > own else -1
            yield sign, context.pairwise_stream(peer, *labels)


def blind(context: PartyContext, words: WordArray, of: MaskedSum, scope: Scope) -> None:
    """Add the group's own stream, in place, if this party leads the sum."""
    if of.members[0] == context.slot.name:
        add_stream(words, _blinding(context, of, scope))


def unblind(
    context: PartyContext, total: WordArray, of: MaskedSum, scope: Scope
) -> WordArray:
    """Return a total without the stream that :func:`blind` added to it."""
    words = np.array(total)
    add_stream(words, _blinding(context, of, scope), -1)
    return words


def check_members(context: PartyContext, members: Sequence[str], minimum: int) -> None:
    """Refuse sums that would not hide this party; see :func:`mask`."""
    known = [slot for slot in context.session.slots if slot in members]
    if list(members) != known or context.slot.name not in known:
        raise GuardRefused(
            "The analyst named members that are none, or not this party."
        )
    if len(known) < minimum:
        raise GuardRefused(
            f"{len(known)} members are too few for a masked sum: each of the others "
            f"could take its own share off. This party asks for {minimum}."
        )


def _blinding(context: PartyContext, of: MaskedSum, scope: Scope) -> KeyedStream:
    return group_stream(context, scope, f"blind/{of.label}")
