"""The prime of fields and tags, where no arithmetic is needed."""

from typing import Final

P: Final = 2**61 - 1
