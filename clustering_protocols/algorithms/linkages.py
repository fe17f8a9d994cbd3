"""Names of linkages, for parameters: they say what :mod:`.hierarchical` can do."""

from typing import Literal

Linkage = Literal["single", "complete", "average", "ward"]
