"""How many clusters a session is to try, as people say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustering_protocols.terms.evaluation import Evaluation

_RANGE = re.compile(r"\s*(\d{1,5})\s*(?:\.\.|-|to)\s*(\d{1,5})\s*")
_LIST = re.compile(r"\s*\d{1,5}\s*(?:,\s*\d{1,5}\s*)+")
_MOST = 1000  # whatever a range says: far above what a session may have


def read_runs(
    params: Mapping[str, Any],
    choose: str | None = None,
    within: int | None = None,
) -> tuple[dict[str, Any], Evaluation | None]:
    """Return parameters with one n_clusters, and the runs where several were given.

    Several are a list or range, or a text such as ``2..8`` or ``2, 3, 5``.

    Raises InvalidParameters if they are no numbers of clusters, or a choice is made
        among one.
    """
    from clustering_protocols.common.errors import InvalidParameters
    from clustering_protocols.common.values import validate_values
    from clustering_protocols.terms.evaluation import Evaluation

    numbers = _several(params.get("n_clusters"))
    if numbers == []:
        raise InvalidParameters(
            "nothing is in that range or list; write e.g. 2..8.", field="n_clusters"
        )
    if numbers is None or len(numbers) == 1:
        if choose is not None or within is not None:
            raise InvalidParameters(
                "give several n_clusters, e.g. n_clusters=2..8.", field="choose"
            )
        return {**params, **({"n_clusters": numbers[0]} if numbers else {})}, None
    said = {"choose": choose, "within": within}
    given = {name: value for name, value in said.items() if value is not None}
    runs = validate_values(Evaluation, {"n_clusters": numbers, **given})
    return {**params, "n_clusters": runs.n_clusters[-1]}, runs


def _several(given: Any) -> list[Any] | None:
    """Return the numbers of a list or a range; None for anything else."""
    if isinstance(given, str) and _LIST.fullmatch(given):
        given = [int(number) for number in given.split(",")]
    if isinstance(given, range):
        return sorted(given[:_MOST])
    if isinstance(given, list):
        return sorted(set(given)) if all(type(k) is int for k in given) else given
    found = _RANGE.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return None
    first, last = map(int, found.groups())
    return list(range(first, min(last, first + _MOST) + 1))
