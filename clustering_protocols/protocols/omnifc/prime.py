"""The prime of the field, apart from :mod:`.field`, whose loops are compiled."""

from typing import Final

P: Final = 2**61 - 1
