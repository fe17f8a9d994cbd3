"""Mixtures of normal distributions and latent classes, by masked sums of split rows."""

from .params import Mixture
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "Mixture"]
