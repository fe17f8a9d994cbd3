"""Lossless federated c-means and fuzzy c-means, after Corcuera Bárcena et al."""

from .params import LosslessFederated
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "LosslessFederated"]
