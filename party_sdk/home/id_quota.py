"""How many values others may bring for each own row, and how many match keys make.

Each row of another party brings one value of each match key, and each may be a guess. The
policy caps them as it caps ids, so that many keys take a party's word.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clustering_protocols.terms.terms import Terms

USUAL: Final = 10.0
"""The most ids for each own row, unless a party says otherwise."""


def quota_option(brought: float) -> str:
    """Return the option that admits so many values for each own row, in tenths."""
    return f"--guard ids_per_row={math.ceil(10 * brought) / 10:g}"


def quota_options(n_keys: int, admitted: float = USUAL) -> tuple[str, ...]:
    """Return the words that admit tables of one's own length; none where they are."""
    return tuple(quota_option(n_keys).split()) if n_keys > admitted else ()


def describe_quota(n_keys: int, admitted: float = USUAL) -> str:
    """Return why a party needs the option, or nothing where it needs none."""
    said = (
        f"Another party of as many rows may bring {n_keys} values of match keys for each "
        "of yours"
    )
    return _explain(said, n_keys, admitted)


def describe_excess(
    who: str, brought: int, own: int, admitted: float, *, are_keys: bool
) -> str:
    """Return why a party is refused, or nothing where it brings no more than admitted.

    brought, own: its values, and the own rows.
    """
    what = "values of match keys" if are_keys else "ids"
    said = f"{who!r} may bring {brought} {what} for your {own} rows"
    return _explain(said, brought / own, admitted)


def _explain(said: str, brought: float, admitted: float) -> str:
    """Return what is brought for each own row, and how to admit it; empty where it is."""
    if brought <= admitted:
        return ""
    return (
        f"{said}, and each may be a guess. 'ids_per_row' is {admitted:g}; to admit them: "
        f"{quota_option(brought)}."
    )


def match_keys_at(terms: Terms, slot: str) -> int:
    """Return by how many match keys rows of a slot are linked; 0 where ids name them."""
    from clustering_protocols.session_terms import check_terms
    from clustering_protocols.shared_stages.row_selection import shares_rows

    params = check_terms(terms)
    return len(params.linked_by) if shares_rows(terms, slot) else 0
