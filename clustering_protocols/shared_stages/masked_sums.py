"""Masked sums: the analyst adds up shares that it cannot read.

Each party adds to its ring elements one random stream per other member; the streams
cancel in the sum over all members. In a *blind* sum the leader also adds a stream that
only the group knows, so that the analyst cannot read the total either. The analyst
hands the total back to the members, who subtract this stream from it.

Each stream is used only once, for one array, one attempt and one list of members. If a
party's transcript differs from that of the others, its streams do not cancel those of
the others, and the total is noise.

If the members are to use a total, the sum is *checked*: after its elements, each share
has a tag under the group's secret (:mod:`clustering_protocols.secrecy.tags`), which is
blinded and masked like the elements. See :class:`CheckedSum`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract import PartyContext
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.masks import add_stream
from clustering_protocols.secrecy.prime import P
from clustering_protocols.shared_stages.secrets import Scope, group_stream

_MASK: Final = "coterie/mask/2"


@dataclass(frozen=True, kw_only=True)
class MaskedSum:
    """A sum over members of a group.

    members: the slots that take part, in slot order; the first one leads.
    name: a name that is unique among the sums of a round.
    transcript: the transcript (hex) up to the round of the sum.
    """

    members: tuple[str, ...]
    name: str
    transcript: str

    @classmethod
    def from_context(
        cls, context: PartyContext, members: Sequence[str], name: str
    ) -> MaskedSum:
        """Return the sum with this name in the current round."""
        return cls(members=tuple(members), name=name, transcript=context.transcript)

    @cached_property
    def label(self) -> str:
        """Return a digest (hex) that is different for every sum of a session."""
        content = length_prefixed(self.transcript, self.name, *self.members)
        return sha256(content).hexdigest()


def mask_share(
    context: PartyContext,
    words: WordArray,
    masked_sum: MaskedSum,
    *,
    minimum_members: int = MINIMUM_MEMBERS,
) -> None:
    """Mask a party's share of a sum, in place.

    words: uint64 array.
    minimum_members: the smallest number of members that the caller accepts.

    Raises GuardRefused if there are too few members, or if the list of members is not
        in slot order or lacks this party.
    """
    members, label = masked_sum.members, masked_sum.label
    check_members(context, members, minimum_members)
    for sign, stream in context.pairwise_streams(members, _MASK, label):
        add_stream(words, stream, sign)


def check_members(context: PartyContext, members: Sequence[str], minimum: int) -> None:
    """Raise GuardRefused if a sum over these members would not hide this party's share."""
    names = frozenset(members)
    ordered = [slot for slot in context.session.slots if slot in names]
    if list(members) != ordered or context.slot.name not in names:
        raise GuardRefused(
            "The analyst's list of members is wrong, or lacks this party."
        )
    if len(members) < minimum:
        raise GuardRefused(
            f"{len(members)} members are too few for a masked sum: the others could "
            f"subtract their own shares. This party requires {minimum}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSum:
    """Masks shares and verifies totals for the checked blind sums of a stage.

    scope: the group whose secret is used to blind and to tag.
    minimum_members: the smallest number of members that is accepted.
    """

    scope: Scope
    minimum_members: int = MINIMUM_MEMBERS

    def mask(
        self, context: PartyContext, words: WordArray, masked_sum: MaskedSum
    ) -> WordArray:
        """Return the share to send (m + 1,): masked elements, followed by a masked tag.

        words: uint64 (m,); ring elements that, as int64, lie between -2^60 and 2^60.

        Raises GuardRefused as :func:`mask_share` does.
        """
        from clustering_protocols.secrecy import tags  # late: only checked sums need it

        members, label = masked_sum.members, masked_sum.label
        check_members(context, members, self.minimum_members)
        masked = np.array(words)
        tag = tags.compute_tag(
            masked, group_stream(context, self.scope, f"tag/{label}")
        )
        if members[0] == context.slot.name:
            add_stream(masked, group_stream(context, self.scope, f"blind/{label}"))
            stream = group_stream(context, self.scope, f"blind-tag/{label}")
            tag = tags.shift_residue(tag, stream)
        for sign, stream in context.pairwise_streams(members, _MASK, label):
            add_stream(masked, stream, sign)
            tag = tags.shift_residue(tag, stream, sign)
        return np.append(masked, np.uint64(tag))

    def unmask(
        self,
        context: PartyContext,
        total: WordArray,
        masked_sum: MaskedSum,
        fits: Callable[[WordArray], bool],
    ) -> WordArray:
        """Return the elements (m,) of a received total (m + 1,), after checking its tag.

        fits: returns whether all elements are in the range of this sum. A wrong range
            and a wrong tag lead to the same error, which reveals nothing about the sum.

        Raises ProtocolFailed if elements are out of range, or if the total is not the
            sum of the members' shares.
        """
        from clustering_protocols.secrecy import tags  # late: only checked sums need it

        label = masked_sum.label
        words = np.array(total[:-1])
        add_stream(words, group_stream(context, self.scope, f"blind/{label}"), -1)
        stream = group_stream(context, self.scope, f"blind-tag/{label}")
        tag = tags.shift_residue(int(total[-1]), stream, -1)
        # Tags are defined only for elements below 2^60.
        small = bool((np.abs(words.view(np.int64).astype(np.float64)) < 2.0**60).all())
        expected = tags.compute_tag(
            words if small else np.zeros_like(words),
            group_stream(context, self.scope, f"tag/{label}"),
        )
        if not (small and fits(words) and tag == expected and int(total[-1]) < P):
            raise ProtocolFailed("A total is not the sum of the members' shares.")
        return words
