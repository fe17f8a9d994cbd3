"""Parties that share the secret of a column group, ready to add up."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from clustering_protocols.contract import PartyContext
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.shared_stages.secrets import ColumnSecret
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

SECRET = ColumnSecret(secret=sha256(b"column").hexdigest())


def views(n: int, session: str = "s", **where: Any) -> dict[str, PartyContext]:
    layout = Layout.lattice(n)
    data = {slot: MatrixSource(np.zeros((10, 2))) for slot in layout.names}
    agreed = Session(Dummy(), layout, data, seed=5, session=session)
    place = {"stage": "stage", "round": 3, "attempt": 1} | where
    told = (agreed.session.agreement_digest, *map(str, place.values()))
    place["transcripts"] = {
        (place["round"], place["attempt"]): sha256(" ".join(told).encode()).hexdigest()
    }
    memory = Memory().remember([SECRET])
    return {
        slot: replace(agreed.context(slot), memory=memory, **place)
        for slot in layout.names
    }


def told_otherwise(view: PartyContext) -> PartyContext:
    return replace(view, transcripts=dict.fromkeys(view.transcripts, "1" * 64))
