"""Topics that group parameters in forms, and parameter types that protocols share.

A parameter without a topic belongs to the method itself.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, Field
from pydantic.config import JsonDict

KEYWORD: Final = "x-group"
"""The key of a parameter's topic in its JSON schema."""
GROUPS: Final = (
    "Starts and stopping",
    "The method",
    "What is published",
    "Linking rows",
)
"""All topics, in the order in which forms show them."""
ASKED: Final = "x-asked"
"""The schema key of a text on what each value costs, for parameters to be chosen."""
STARTS: Final[JsonDict] = {KEYWORD: "Starts and stopping"}
PUBLISHED: Final[JsonDict] = {KEYWORD: "What is published"}
LINKING: Final[JsonDict] = {KEYWORD: "Linking rows"}
USUAL: Final = "The method"


def required_choices(params: type[BaseModel]) -> dict[str, Any]:
    """Return the parameters that have to be chosen, each with a text on its costs."""
    fields = params.model_fields.items()
    extras = {name: field.json_schema_extra for name, field in fields}
    return {
        n: e[ASKED] for n, e in extras.items() if isinstance(e, dict) and ASKED in e
    }


KMeansStarts = Annotated[
    int,
    Field(ge=1, le=1000, description="Starts of k-means.", json_schema_extra=STARTS),
]
KMeansIterations = Annotated[
    int,
    Field(ge=1, le=100_000, description="Iteration limit.", json_schema_extra=STARTS),
]
