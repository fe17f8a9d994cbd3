"""Functions that draw up the terms of a session and validate terms that were received.

The :mod:`~clustering_protocols.catalogue` defines which protocols exist, their
versions, and their risks.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic_core import to_jsonable_python

from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters, VersionMismatch
from clustering_protocols.common.values import validate_values
from clustering_protocols.contract import Disclosure, Params, SessionContext
from clustering_protocols.contract.disclosures import (
    check_disclosures,
    disclosures_of_evaluation,
    disclosures_of_preparation,
    disclosures_of_release,
)
from clustering_protocols.contract.parameters import required_choices
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.canonical import canonical_json, digest
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.sections import Evaluation, Release
from clustering_protocols.terms.session_risks import Risk, worst_first
from clustering_protocols.terms.terms import (
    Layout,
    ProtocolChoice,
    SessionRequest,
    Terms,
)

P = TypeVar("P", bound=Params)


def build_request(params: Params, layout: Layout, **sections: Any) -> SessionRequest:
    """Return a session request with these parameters and this layout.

    **sections: other sections of a :class:`SessionRequest`, by name. A section that is
        None gets its default.

    Raises InvalidParameters, which names the first invalid field.
    """
    sections = {name: v for name, v in sections.items() if v is not None}
    choice = {
        "name": catalogue.find_protocol_name(params),
        "params": params.model_dump(mode="json"),
    }
    return validate_values(
        SessionRequest, {**sections, "protocol": choice, "layout": layout}
    )


def check_required_choices(params: Params) -> None:
    """Raise if a parameter is missing that the coordinator has to choose explicitly.

    Raises InvalidParameters; the message explains the cost of each possible value.
    """
    for name, costs in required_choices(type(params)).items():
        if name not in params.model_fields_set:
            raise InvalidParameters(f"name it: {costs}", field=name)


def draw_up_terms(session: str, request: SessionRequest) -> bytes:
    """Return the terms of a session as canonical JSON, including their list of risks.

    Raises InvalidParameters if the protocol is unknown, or if its parameters do not fit
        the layout.
    """
    name = request.protocol.name
    params = catalogue.parse_params(name, to_jsonable_python(request.protocol.params))
    choice = ProtocolChoice(
        name=name,
        version=catalogue.protocol(name).version,
        params=catalogue.find_changed_params(params),
    )
    sections = request.sections | _sections_of_description(params, request)
    values = {"session": session, "protocol": choice, "risks": (), **sections}
    terms = validate_values(Terms, values)
    _check_terms_fit(params, terms)
    _check_new_session(params, terms)
    risks = tuple(_find_risks(params, terms))
    return canonical_json(terms.model_copy(update={"risks": risks}))


def _sections_of_description(params: Params, request: SessionRequest) -> dict[str, Any]:
    if not params.describes:
        return {}
    is_default = {*(request.preparation or ())} <= {Preparation()}
    leave_gaps = (Preparation(missing="leave"),) * len(request.dictionary or ())
    return {
        "release": request.release or Release(profiles="everybody"),
        "preparation": (leave_gaps or None) if is_default else request.preparation,
    }


def _check_terms_fit(params: Params, terms: Terms) -> None:
    layout, plans = terms.layout, terms.plans
    protocol = catalogue.protocol(terms.protocol.name)
    protocol.check_runs(params_per_run(params, terms.evaluation), layout)
    if terms.evaluation is not None:
        terms.evaluation.check_figure(protocol.figures(params, layout))
    if terms.release is not None:
        _check_release(params, terms)
    if plans:
        params.check_prepared_columns(plans)
    _check_described(params, terms)
    params.check_dictionary(
        [plan.declared_schema for plan in plans]
        or [schema.clustered_part for schema in terms.dictionary or ()]
    )
    shared = any(len(group) > 1 for group in layout.row_groups)
    drops = any(len(plan.fields_by_missing("drop")) for plan in plans)
    if drops and shared and not params.selects_rows:
        raise InvalidParameters(
            "if several parties hold the same rows, all must leave out "
            "a row in which one lacks a value. With alignment.method ecdh "
            "they find the rows that are complete everywhere.",
            field="preparation",
        )


def _check_described(params: Params, terms: Terms) -> None:
    """Raise if rows with gaps would be clustered, or a description would fill gaps."""
    leaves = [len(plan.fields_by_missing("leave")) for plan in terms.plans]
    if not params.describes:
        if any(leaves):
            raise InvalidParameters(
                "only a description can leave values missing; impute them, or drop "
                "their rows.",
                field="preparation",
            )
    elif terms.release is None:
        raise InvalidParameters("a description releases profiles.", field="release")
    elif leaves != [len(plan.schema.fields) for plan in terms.plans] or not leaves:
        raise InvalidParameters(
            "a description needs a dictionary and imputes no values: leave out "
            "preparation.",
            field="preparation",
        )


def check_new_session_terms(terms: Terms) -> None:
    """Raise if no new session may be opened with these terms, even if they are valid.

    Raises InvalidParameters, or whatever :func:`check_terms` raises.
    """
    params = check_terms(terms)
    _check_new_session(params, terms)


def _check_new_session(params: Params, terms: Terms) -> None:
    catalogue.protocol(terms.protocol.name).check_opening(params, terms.layout)
    check_disclosures(_find_disclosures(params, terms))


def disclosures_of_terms(terms: Terms) -> frozenset[Disclosure]:
    """Validate terms, and return what they disclose about rows and to which readers."""
    return _find_disclosures(check_terms(terms), terms)


def _find_disclosures(params: Params, terms: Terms) -> frozenset[Disclosure]:
    layout = terms.layout
    disclosures = catalogue.protocol(terms.protocol.name).disclosures(params, layout)
    disclosures |= disclosures_of_preparation(terms.plans, layout)
    disclosures |= disclosures_of_evaluation(terms.evaluation)
    return disclosures | disclosures_of_release(terms.release, layout)


def _check_release(params: Params, terms: Terms) -> None:
    if terms.dictionary is None:
        raise InvalidParameters(
            "profiles need a dictionary of the fields; `coterie schema infer` "
            "writes one from a table.",
            field="release",
        )
    protocol = catalogue.protocol(terms.protocol.name)
    if protocol.quorum(params, terms.layout) < len(terms.layout.slots):
        raise InvalidParameters(
            "profiles need all parties to the end, but these parameters let a "
            "session end without some of them.",
            field="release",
        )


def params_per_run(params: P, evaluation: Evaluation | None) -> tuple[P, ...]:
    """Return the parameters of each run of a session.

    Raises InvalidParameters if several numbers of clusters are compared and the
        parameter ``n_clusters`` does not exist or is not the largest of them.
    """
    if evaluation is None:
        return (params,)
    largest = evaluation.n_clusters[-1]
    if getattr(params, "n_clusters", None) != largest:
        raise InvalidParameters(
            f"must be the largest number to compare, {largest}.", field="n_clusters"
        )
    return tuple(
        params.model_copy(update={"n_clusters": k}) for k in evaluation.n_clusters
    )


def _find_risks(params: Params, terms: Terms) -> dict[str, Risk]:
    return catalogue.find_session_risks(
        params,
        terms.layout,
        terms.identities,
        terms.plans,
        terms.release,
        has_several_runs=terms.evaluation is not None,
    )


def check_terms(terms: Terms) -> Params:
    """Validate received terms against our own catalogue, and return their parameters.

    A party calls this before it joins: it compares the versions and risks that the
    analyst reports with those that its own release computes.

    Raises VersionMismatch if this release does not know the protocol's version or a
        risk.
    Raises InvalidParameters if parameters and layout do not fit, or if this release
        computes a different list of risks.
    """
    choice = terms.protocol
    check_version(terms)
    params = catalogue.parse_params(choice.name, choice.params)
    _check_terms_fit(params, terms)
    risks = {**catalogue.protocol_risks(choice.name), **session_risks.RISKS}
    for code in terms.risks:
        if code.partition(".")[0] not in {choice.name, session_risks.PREFIX}:
            raise VersionMismatch(f"The risk {code!r} is of another protocol.")
        if code not in risks:
            raise VersionMismatch(
                f"The risk {code!r} is not known here: the session needs a newer release."
            )
    if terms.risks != tuple(_find_risks(params, terms)):
        raise InvalidParameters(
            "The terms do not list exactly the risks that their parameters bring."
        )
    return params


def check_version(terms: Terms) -> None:
    """Raise :class:`VersionMismatch` unless this release has the protocol's version."""
    choice = terms.protocol
    version = catalogue.protocol(choice.name).version
    if version != choice.version:
        age = "an older" if choice.version < version else "a newer"
        raise VersionMismatch(
            f"The session uses {choice.name!r} v{choice.version} of {age} release; this "
            f"release has v{version}."
        )


def risks_of_terms(terms: Terms) -> dict[str, Risk]:
    """Return the risks that the terms list, keyed by code, with the worst first.

    Raises what :func:`check_terms` raises, because only valid codes have sentences.
    """
    return worst_first(_find_risks(check_terms(terms), terms))


def build_session_context(agreement: bytes) -> SessionContext:
    """Return the session context that the exact bytes of an agreement define."""
    document, terms = read_agreement(agreement)
    rows, columns = terms.layout.row_groups, terms.layout.column_groups
    params = check_terms(terms).resolve_sizes(
        sum(document.member(group[0]).n_rows for group in rows),
        sum(document.member(group[0]).n_columns for group in columns),
    )
    return SessionContext(
        agreement=document,
        agreement_digest=digest(agreement),
        terms=terms,
        params=params,
        runs=params_per_run(params, terms.evaluation),
    )
