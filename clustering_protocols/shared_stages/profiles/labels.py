"""What a party knows of its labels once they are handed out."""

from __future__ import annotations

from collections.abc import Callable

from clustering_protocols.contract import Outcome, PartyContext
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.shared_stages.profiles.messages import TakeLabels

Labelled = Callable[[PartyContext, TakeLabels, DataSource], Outcome]
"""Returns what the protocol makes of a result that came with labels."""
