"""The names of linkages, which parameters need without importing :mod:`.hierarchical`."""

from typing import Literal

Linkage = Literal["single", "complete", "average", "ward"]
