"""What the terms say."""

from pydantic import Field

from clustering_protocols.contract import Params, PartyContext, SessionContext


class OneShot(Params):
    """How many clusters a party sends, and the session ends with."""

    n_clusters: int = Field(default=3, ge=1, le=100, description="Clusters.")


OneShotSession = SessionContext[OneShot]
OneShotContext = PartyContext[OneShot]
