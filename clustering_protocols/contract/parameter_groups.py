"""What a parameter is about, said beside it: forms put together what is about the same.

A parameter that says nothing is one of the method itself.
"""

from __future__ import annotations

from typing import Final

from pydantic.config import JsonDict

KEYWORD: Final = "x-group"
"""Under which the JSON schema of parameters says it."""
GROUPS: Final = (
    "Starts and stopping",
    "The method",
    "What is published",
    "Linking rows",
)
"""All groups, in the order of forms."""
STARTS: Final[JsonDict] = {KEYWORD: "Starts and stopping"}
PUBLISHED: Final[JsonDict] = {KEYWORD: "What is published"}
LINKING: Final[JsonDict] = {KEYWORD: "Linking rows"}
USUAL: Final = "The method"
