"""OmniFC: exact distances from encoded shares (Yan, Liu and Zhang, "OmniFC")."""

from .params import OmniFC
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "OmniFC"]
