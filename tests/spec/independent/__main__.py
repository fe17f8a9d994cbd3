"""Section 14: the independent party as a program: a call a line, an answer a line."""

from __future__ import annotations

import json
import sys
from typing import Any

from .calls import CALLS
from .derivations import Refusal


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Section 14: the answer to a call."""
    call = CALLS.get(request["call"])
    if call is None:
        return {"unknown": request["call"]}
    try:
        return {"output": call(request["input"])}
    except Refusal as refused:
        return {"problem": refused.problem}


def main() -> None:
    """Section 14: answer until there is nothing more to read."""
    for line in sys.stdin:
        said = json.dumps(answer(json.loads(line)), ensure_ascii=True)
        sys.stdout.write(said + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
