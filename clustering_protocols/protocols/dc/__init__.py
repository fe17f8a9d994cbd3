"""Data collaboration clustering: Kawamata et al., "A new type of federated clustering"."""

from .params import Anchor, DataCollaboration
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "Anchor", "DataCollaboration"]
