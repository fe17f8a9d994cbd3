"""Sessions up to where every party knows the pooled moments."""

from collections.abc import Sequence

from clustering_protocols.engine.signatures import OPENING
from clustering_protocols.numerics.moments import PooledMoments
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.session_risks import OTHER_UNITS
from clustering_protocols.terms.terms import Layout
from support.tables import cut

PREPARING = {"secrets", "alignment", "moments"}


ONE = LosslessFederated(n_clusters=1)


def prepare(session: Session) -> Session:
    """Go on until every party knows the pooled moments."""
    while session.open.stage in {OPENING, *PREPARING}:
        session.play_round()
    return session


def pooled(X: FloatArray, sizes: Sequence[int]) -> PooledMoments:
    """Return the moments that the parties find together."""
    layout = Layout.lattice(len(sizes))
    choices = {slot: {OTHER_UNITS: True} for slot in layout.names}
    data = cut(X, layout, list(sizes))
    session = prepare(Session(ONE, layout, data, seed=5, choices=choices))
    found = [session.recall(slot, PooledMoments) for slot in layout.names]
    assert len({f.mean.tobytes() + f.deviations.tobytes() for f in found}) == 1
    return found[0]
