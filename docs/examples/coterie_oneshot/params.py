"""The parameters in the terms."""

from pydantic import Field

from clustering_protocols.contract import Params, PartyContext, SessionContext


class OneShot(Params):
    """The number of clusters of each party, and of the session."""

    n_clusters: int = Field(default=3, ge=1, le=100, description="Clusters.")


OneShotSession = SessionContext[OneShot]
OneShotContext = PartyContext[OneShot]
