"""How many rounds of totals a site may read before they span the items of others.

Less its own share, a site reads n_init·C totals of each object in each of T + 1 rounds. An
item of others may be 0 or 1, which is one bit, and a total holds as many bits as the ring:
lattice reduction finds twelve items of others in four totals. So equations count in bits,
and a site sends no total of fewer items of its own than twice these bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract.round_bound import RoundBound
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.fixed_point import RING_BITS

if TYPE_CHECKING:
    from .params import CoClustering, FccmContext


def excess(params: CoClustering, k: int, widths: Sequence[int]) -> str:
    """Return why so many rounds of so few items are refused; nothing if they fit.

    k: of all runs together.
    widths: items of each site.
    """
    if params.small_cohorts == "allow":
        return ""
    others = sum(widths) - max(widths)
    bound, single = (
        RoundBound(per_round=RING_BITS * k * starts, further=1, unknowns=others)
        for starts in (params.n_init, 1)
    )
    return bound.excess(
        params.max_iter,
        f"A site reads {bound.per_round:,} bits over {others:,} items of others, of each "
        "object,",
        f"{bound.needed(params.max_iter):,} items of others",
        single,
    )


def check_weights(context: FccmContext, weights: FloatArray) -> None:
    """Refuse weights (m, columns) of which nearly all lies on few of a site's items.

    Raises GuardRefused: with what would spread them.
    """
    if context.session.params.small_cohorts == "allow":
        return
    shares = weights / weights.max(axis=0)
    spread = shares.sum(axis=0) ** 2 / (shares**2).sum(axis=0)  # items of equal weight
    if spread.min(initial=np.inf) < 2 * RING_BITS:
        raise GuardRefused(
            f"A total would be of the weight of {int(spread.min())} items here, and show "
            f"them; at least {2 * RING_BITS} hide each other. Choose a larger lambda_w, or "
            "accept the risk with small_cohorts 'allow'."
        )
