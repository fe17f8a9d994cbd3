"""What the product answers to a call of the vectors; as a program, line by line.

coterie wire check spec/vectors -- python -m benchmarks.vectors.product
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from benchmarks.vectors import (
    product_calls,
    product_linkage,
    product_party,
    product_records,
)
from clustering_protocols.common.errors import CoterieError
from party_sdk.conformance.vectors import VectorCase

_CALLS: Final = {
    **product_calls.CALLS,
    **product_linkage.CALLS,
    **product_records.CALLS,
    **product_party.calls(),
}


def answer(call: str, given: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the output of a call, or the problem with which it fails."""
    try:
        return _CALLS[call](given), ""
    except CoterieError as error:
        return None, error.problem.value.slug


def build_case(
    name: str,
    section: str,
    call: str,
    given: dict[str, Any],
    *,
    fails: str = "",
    tolerance: float = 0.0,
) -> VectorCase:
    """Return a case with what the product makes of it.

    fails: the problem with which it has to fail; it has an output where that is empty.

    Raises ValueError if the product does something else.
    """
    output, problem = answer(call, given)
    if problem != fails:
        raise ValueError(f"{name!r} of {call} fails with {problem!r}, not {fails!r}")
    return VectorCase(
        name=name,
        section=section,
        call=call,
        input=given,
        output=output,
        problem=problem,
        tolerance=tolerance,
    )


def main() -> None:
    """Answer a call on each line of standard input."""
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["call"] not in _CALLS:
            said: dict[str, Any] = {"unknown": asked["call"]}
        else:
            output, problem = answer(asked["call"], asked["input"])
            said = {"problem": problem} if problem else {"output": output}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
