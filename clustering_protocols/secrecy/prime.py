"""The prime of the field and of tags, for modules that need no field arithmetic."""

from typing import Final

P: Final = 2**61 - 1
