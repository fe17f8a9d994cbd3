"""The prime modulus of the field and of tags, without the field arithmetic."""

from typing import Final

P: Final = 2**61 - 1
