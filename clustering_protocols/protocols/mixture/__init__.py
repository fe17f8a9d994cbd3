"""Gaussian mixtures and latent classes of split rows, fitted by masked sums."""

from .params import Mixture
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "Mixture"]
