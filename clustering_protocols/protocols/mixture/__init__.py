"""Mixtures of normal distributions and latent classes: rows split, sums per update."""

from .params import Mixture
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "Mixture"]
