"""How members add up what they read together: the one place that shares and reads.

:func:`.masked_sums.share` and :func:`.masked_sums.read` have to be told the same of one
sum: its members, its name and what had been told by then. Here that is said once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract import PartyContext
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.shared_stages import masked_sums
from clustering_protocols.shared_stages.masked_sums import MaskedSum
from clustering_protocols.shared_stages.secrets import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSum:
    """How the sums of a stage are hidden and checked.

    scope: the group whose secret blinds and checks.
    minimum_members: the caller's own floor; see :func:`.masked_sums.mask`.
    """

    scope: Scope
    minimum_members: int = MINIMUM_MEMBERS

    def share(
        self, context: PartyContext, words: WordArray, of: MaskedSum
    ) -> WordArray:
        """Return a share as it is sent: hidden, with a tag (m + 1,).

        words: uint64 (m,).

        Raises GuardRefused if there are too few members, or this party is none of them.
        """
        return masked_sums.share(
            context, words, of, self.scope, minimum_members=self.minimum_members
        )

    def read(
        self,
        context: PartyContext,
        total: WordArray,
        of: MaskedSum,
        fits: Callable[[WordArray], bool],
    ) -> WordArray:
        """Return the elements (m,) of a total as it came.

        fits: says whether elements are as small as those of this sum must be.

        Raises ProtocolFailed if they are not, or not the sum of what members sent.
        """
        return masked_sums.read(context, total, of, self.scope, fits)
