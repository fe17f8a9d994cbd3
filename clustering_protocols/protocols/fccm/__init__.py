"""Collaborative fuzzy co-clustering (Honda, Oda, Tanaka, Notsu)."""

from .params import CoClustering
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "CoClustering"]
