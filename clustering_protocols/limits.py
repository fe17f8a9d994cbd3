"""Limits that more than one part checks, and tells its users."""

from typing import Final

MAX_GROUP_SLOTS: Final = 250
"""Most slots of a row group and a column group together."""

MINIMUM_MEMBERS: Final = 3
"""Fewest members of a masked sum: of two, each could take its own share off it."""
