"""What becomes of fields of dictionaries, as people say it: one rule, or each field's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from clustering_protocols.common.errors import InvalidParameters

if TYPE_CHECKING:
    from clustering_protocols.terms.preparation import Preparation
    from clustering_protocols.terms.schema import Schema

Rule: TypeAlias = Literal["drop", "mean", "median"]
T = TypeVar("T", "Preparation", "Schema")
RULES = ("drop", "mean", "median")


def by_rule(
    rule: Rule | None, dictionary: Sequence[Schema]
) -> list[Preparation] | None:
    """Return the preparations of column groups, of one rule for all gaps.

    Clustered categories are prepared even where nothing is said of them: they become
    indicators.

    rule: {'drop', 'mean', 'median'} or None; drop: rows with a gap do not take part.
        mean, median: these fill them, and the most frequent level those of categories.
        None: tables with gaps are refused.

    Raises InvalidParameters if it is no such rule.
    """
    from clustering_protocols.terms.preparation import Preparation, build_imputation

    if rule is None:
        clustered = [field for s in dictionary for field in s.clustered_part.fields]
        categories = any(field.is_category for field in clustered)
        return [Preparation() for _ in dictionary] if categories else None
    if rule not in RULES:
        raise InvalidParameters(
            f"a rule for all missing values is one of {', '.join(RULES)}.",
            field="preparation",
        )
    if rule == "drop":
        return [Preparation(missing="drop") for _ in dictionary]
    return [build_imputation(schema, rule) for schema in dictionary]


def read_preparation(
    said: Rule | Preparation | Sequence[Preparation] | None,
    dictionary: Sequence[Schema] | None,
) -> Sequence[Preparation] | None:
    """Return the preparations of column groups; :func:`by_rule` for a rule or nothing.

    Raises InvalidParameters if there are no dictionaries of what is to be prepared.
    """
    if dictionary is None:
        if said is not None:
            raise InvalidParameters("A preparation needs a dictionary of the fields.")
        return None
    if said is None or isinstance(said, str):
        return by_rule(said, dictionary)
    return as_list(said)


def as_list(given: T | Sequence[T] | None) -> Sequence[T] | None:
    """Return one value, or those of column groups, as a sequence."""
    if given is None or isinstance(given, list | tuple):
        return given
    return [given]  # type: ignore[list-item]  # neither kind is a sequence itself
