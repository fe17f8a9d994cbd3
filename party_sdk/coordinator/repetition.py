"""A session again: last quarter's terms, as they were or with changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field as declared
from typing import Any

from clustering_protocols.catalogue import name_of, parse_params, protocol
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.validation_messages import did_you_mean
from clustering_protocols.contract import Params
from clustering_protocols.records.record import Record
from clustering_protocols.session_terms import check_terms
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Field, Role, Schema
from clustering_protocols.terms.terms import Layout, Slot, Terms
from party_sdk.coordinator.option_parsing import layout_of
from party_sdk.coordinator.runs import read_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs from the earlier session; nothing by default.

    slots: parties that take part for the first time, in the rows and columns of the
        earlier session.
    expected: who alone may sit at these, by slot.
    roles: of variables of the dictionary, by name. One that was left out is in it no
        more: it comes back with a dictionary that has it.
    dictionary: in place of the earlier one; of each column group.
    protocol: another method; parameters that both have are kept.
    params: values of parameters, over the earlier ones; several numbers of clusters as
        for a new session.
    """

    slots: Sequence[Slot] = ()
    expected: Mapping[str, str] = declared(default_factory=dict)
    roles: Mapping[str, Role] = declared(default_factory=dict)
    dictionary: Sequence[Schema] | None = None
    protocol: str | None = None
    params: Mapping[str, Any] = declared(default_factory=dict)


def like(
    terms: Terms, without: Collection[str] = (), changes: Changes | None = None
) -> dict[str, Any]:
    """Return what ``Coordinator.create_session`` takes, as terms say it.

    All but the id, the seed and the invitations, which are new.

    without: slots to leave out. Groups that nobody is left in go too, and with a column
        group its dictionary.
    changes: what else differs.

    Raises InvalidParameters if there is no such slot or variable, nobody is left, or a
        parameter does not fit.
    """
    changes = changes or Changes()
    for slot in without:
        if slot not in terms.layout.names:
            hint = did_you_mean(slot, terms.layout.names)
            raise InvalidParameters(f"That session has no slot {slot!r}.{hint}")
    kept = [slot for slot in terms.layout.slots if slot.name not in without]
    if not kept and not changes.slots:
        raise InvalidParameters("Nobody is left.")
    everybody = [*kept, *changes.slots]
    columns = sorted({slot.column for slot in everybody})
    names = {slot.name for slot in kept}
    dictionary = _dictionary(terms, changes, columns)
    params, evaluation = _params(terms, changes)
    said = {
        name: value
        for name, value in terms.sections.items()
        if name not in {"identities", "seed", "evaluation"}
    }
    keys = {s: key for s, key in terms.identities.slots.items() if s in names}
    return {
        **said,
        "params": params,
        "evaluation": evaluation,
        "layout": _layout(everybody, columns),
        "expected": {**keys, **changes.expected},
        "dictionary": dictionary,
        "preparation": _preparation(terms, columns, dictionary),
    }


def given_starts(summary: Record, n_clusters: int) -> dict[str, Any]:
    """Return the parameters that begin with the clusters of an earlier session.

    They keep their numbers then: cluster 2 is the one that was cluster 2.

    Raises InvalidParameters if that session published no centroids, or not all.
    """
    centroids = summary.arrays.get("centroids")
    if centroids is None or len(centroids) != n_clusters:
        raise InvalidParameters(
            "The earlier session published no centroids of all clusters, from which the "
            "same clusters could start.",
            remedy="Label new rows by its result instead: coterie party predict.",
        )
    return {"init": "given", "n_init": 1, "initial_centroids": centroids.tolist()}


def _layout(everybody: Sequence[Slot], columns: Sequence[int]) -> Layout:
    """Return the places without gaps: whose group nobody is left in, moves up."""
    rows = sorted({slot.row for slot in everybody})
    return layout_of(
        {
            "name": slot.name,
            "title": slot.title,
            "row": rows.index(slot.row),
            "column": columns.index(slot.column),
        }
        for slot in everybody
    )


def _dictionary(
    terms: Terms, changes: Changes, columns: Sequence[int]
) -> list[Schema] | None:
    """Return the dictionary of each column group, its variables in their new roles."""
    if changes.dictionary is not None:
        known = list(changes.dictionary)
    elif terms.dictionary is not None:
        if missing := [c + 1 for c in columns if c >= len(terms.dictionary)]:
            raise InvalidParameters(
                f"Column group {missing[0]} is new: give a dictionary for each column "
                "group (--schema)."
            )
        known = [terms.dictionary[column] for column in columns]
    elif changes.roles:
        raise InvalidParameters(
            "That session has no dictionary: variables are named in one (--schema)."
        )
    else:
        return None
    names = {name for schema in known for name in schema.names}
    for name in changes.roles:
        if name not in names:
            raise InvalidParameters(
                f"No dictionary has a variable {name!r}.{did_you_mean(name, names)} A "
                "new one comes with a dictionary of its own (--schema)."
            )
    return [_in_roles(schema, changes.roles) for schema in known]


def _in_roles(schema: Schema, roles: Mapping[str, Role]) -> Schema:
    fields = [
        Field(**{**dict(each), "role": roles[each.name]})
        if each.name in roles
        else each
        for each in schema.fields
    ]
    if all(each.role != "cluster" for each in fields):
        raise InvalidParameters("No variable of a column group is left to cluster.")
    return Schema(fields=tuple(fields), missingValues=schema.missingValues)


def _preparation(
    terms: Terms, columns: Sequence[int], dictionary: Sequence[Schema] | None
) -> list[Preparation] | None:
    """Return what becomes of the variables, without those that are not clustered."""
    if terms.preparation is None:
        return None
    found: list[Preparation] = []
    for place, column in enumerate(columns):
        if column >= len(terms.preparation):
            found.append(Preparation(missing=terms.preparation[-1].missing))
            continue
        plan = terms.preparation[column]
        if dictionary is not None:
            clustered = {
                each.name for each in dictionary[place].fields if each.role == "cluster"
            }
            left = tuple(each for each in plan.fields if each.name in clustered)
            plan = Preparation(missing=plan.missing, fields=left)
        found.append(plan)
    return found


def _params(terms: Terms, changes: Changes) -> tuple[Params, Evaluation | None]:
    """Return the parameters, and the runs where there are several."""
    before = check_terms(terms)
    if changes.protocol is None and not changes.params:
        return before, terms.evaluation
    name = changes.protocol or name_of(before)
    values = before.model_dump(mode="json", exclude_unset=True)
    if name != name_of(before):
        shared = {*protocol(name).params.model_fields} & {*values}
        values = {each: values[each] for each in shared}
    values |= changes.params
    if "n_clusters" in changes.params or terms.evaluation is None:
        params, runs = read_runs(values)
        if runs is not None and terms.evaluation is not None:
            how: dict[str, Any] = {"within": terms.evaluation.within}
            if changes.protocol is None:
                how["choose"] = terms.evaluation.choose
            runs = runs.model_copy(update=how)
        return parse_params(name, params), runs
    return parse_params(name, values), terms.evaluation
