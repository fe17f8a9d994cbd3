"""Product quantisation with one-dimensional scaling (Wang, Zhang, Chen)."""

from .params import Privacy, ProductQuantisation
from .protocol import PROTOCOL

__all__ = ["PROTOCOL", "Privacy", "ProductQuantisation"]
