"""Names of linkages, for parameters that must not import :mod:`.hierarchical`."""

from typing import Literal

Linkage = Literal["single", "complete", "average", "ward"]
