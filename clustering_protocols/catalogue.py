"""The catalogue: every folder under ``protocols/``, and every protocol of named packages.

Nothing is registered by hand. A new protocol is one new folder, or a package of its own
(:mod:`~clustering_protocols.protocol_packages`). Its parameters join the API schema, and
its risk codes get its name in front.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from clustering_protocols import protocol_packages
from clustering_protocols.common.errors import InvalidParameters, VersionMismatch
from clustering_protocols.common.values import validate_values
from clustering_protocols.contract import (
    ClusteringProtocol,
    Disclosure,
    Params,
    SessionContext,
)
from clustering_protocols.contract.disclosures import (
    check_shown,
    of_fillings,
    of_release,
)
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.agreements import Agreement, read_agreement
from clustering_protocols.terms.evaluation import Evaluation
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.release import Release
from clustering_protocols.terms.risks import Risk, RiskLevel, sentences_of, worst_first
from clustering_protocols.terms.terms import (
    Identities,
    Layout,
    ProtocolChoice,
    SessionRequest,
    Terms,
    canonical_json,
    digest,
)

P = TypeVar("P", bound=Params)


@cache
def _import_protocol(module: str) -> ClusteringProtocol[Any]:
    try:
        known: ClusteringProtocol[Any] = import_module(module).PROTOCOL
    except (ImportError, AttributeError) as error:
        if module in protocol_packages.own_modules().values():
            raise
        raise InvalidParameters(
            f"The protocol package {module!r} cannot be used: {error}. Ask its author "
            "for a release that fits this one.",
            field="protocol_packages",
        ) from error
    return known


@cache
def _import_protocols(
    modules: tuple[tuple[str, str], ...],
) -> Mapping[str, ClusteringProtocol[Any]]:
    return MappingProxyType({name: _import_protocol(path) for name, path in modules})


def catalogue() -> Mapping[str, ClusteringProtocol[Any]]:
    """Return all protocols by name, in alphabetical order."""
    return _import_protocols(tuple(protocol_packages.find_modules().items()))


def protocol(name: str) -> ClusteringProtocol[Any]:
    """Return a protocol; :class:`InvalidParameters` names the known ones.

    The others are not imported: a party's process meets one.
    """
    module = protocol_packages.find_module(name)
    if module is None:
        known = ", ".join(protocol_packages.find_modules())
        raise InvalidParameters(f"There is no {name!r}. Known protocols: {known}.")
    return _import_protocol(module)


def name_of(params: Params) -> str:
    """Return the name of the protocol whose parameters these are."""
    kind = type(params)
    for modules in (protocol_packages.own_modules, protocol_packages.find_modules):
        for name, module in modules().items():
            if f"{kind.__module__}.".startswith(f"{module}."):
                if protocol(name).params is kind:
                    return name
                break
    raise TypeError(f"{kind.__name__} are the parameters of no protocol")


def known_risks(name: str) -> dict[str, Risk]:
    """Return a protocol's closed list of risks by their codes."""
    return {f"{name}.{code}": risk for code, risk in protocol(name).risks.items()}


def new_risks(name: str) -> dict[str, Risk]:
    """Return those that a session opened now may bring, worst first."""
    former = {f"{name}.{code}" for code in protocol(name).former_risks}
    known = known_risks(name).items()
    return worst_first({code: risk for code, risk in known if code not in former})


def house_risks() -> dict[str, Risk]:
    """Return the risks that belong to no protocol by their codes."""
    prefix = session_risks.PREFIX
    return {f"{prefix}.{code}": risk for code, risk in session_risks.RISKS.items()}


def find_risk(code: str) -> Risk:
    """Return a risk by its code; :class:`VersionMismatch` if it is not known here."""
    name = code.partition(".")[0]
    known: Mapping[str, Risk] = {}
    if name == session_risks.PREFIX:
        known = house_risks()
    elif protocol_packages.find_module(name) is not None:
        known = known_risks(name)
    if code not in known:
        raise VersionMismatch(
            f"The risk {code!r} is not known here: the session needs a newer release."
        )
    return known[code]


def is_same_risk(accepted: str, code: str, risk: Risk) -> bool:
    """Return whether a code that was accepted covers a risk of another protocol.

    It does where the risk is always true, and says the same there.
    """
    if risk.level is not RiskLevel.ALWAYS:
        return False
    name, _, own = accepted.partition(".")
    if own != code.partition(".")[2]:
        return False
    if protocol_packages.find_module(name) is None:
        return False
    return protocol(name).risks.get(own) == risk


def risks_of(
    params: Params,
    layout: Layout,
    identities: Identities,
    plans: Sequence[ColumnPlan] = (),
    release: Release | None = None,
    *,
    several: bool = False,
) -> dict[str, Risk]:
    """Return every risk of a session by its code: its protocol's, then the house's.

    ``several``: whether it has several runs.
    """
    name = name_of(params)
    own, whole, known = known_risks(name), house_risks(), protocol(name)
    brought = [*known.risks_of(params, layout)]
    brought += known.risks_of_runs(params, layout) if several else ()
    codes = (f"{name}.{code}" for code in brought)
    found = {code: own[code] for code in codes}
    for code in session_risks.risks_of(layout, identities, plans, release):
        found[f"{session_risks.PREFIX}.{code}"] = whole[
            f"{session_risks.PREFIX}.{code}"
        ]
    return found


def parse_params(name: str, values: Mapping[str, Any]) -> Params:
    """Return checked parameters; :class:`InvalidParameters` names the field."""
    params: Params = validate_values(protocol(name).params, values)
    return params


def defaults(params: type[Params]) -> dict[str, Any]:
    """Return the defaults of a protocol's parameters as JSON values.

    Terms do not hold them, so that a default changes with a new version of the protocol
    alone.
    """
    return {
        name: to_jsonable_python(field.get_default(call_default_factory=True))
        for name, field in params.model_fields.items()
        if not field.is_required()
    }


def find_changed_params(params: Params) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, as JSON values.

    A parameter of several parts is given with all of them, or not at all.
    """
    usual = defaults(type(params))
    return {
        name: value
        for name, value in params.model_dump(mode="json").items()
        if name not in usual or json.dumps(value) != json.dumps(usual[name])
    }


def check_choices(name: str, given: Iterable[str]) -> None:
    """Refuse names that are no choice of a protocol: a misspelt limit limits nothing."""
    known = {**protocol(name).choices, **session_risks.CHOICES}
    for choice in given:
        if choice not in known:
            raise InvalidParameters(
                f"{name!r} knows no choice {choice!r}; it knows "
                f"{', '.join(sorted(known)) or 'none'}."
            )


def limits_of(name: str) -> frozenset[str]:
    """Return the choices of a protocol that say only whether an answer may leave."""
    return protocol(name).limits | session_risks.LIMITS


def build_request(params: Params, layout: Layout, **sections: Any) -> SessionRequest:
    """Return what is asked for with these parameters.

    **sections: what else a :class:`SessionRequest` says, by name; None is as usual.

    Raises InvalidParameters: it names what does not fit.
    """
    asked = {name: value for name, value in sections.items() if value is not None}
    choice = {"name": name_of(params), "params": params.model_dump(mode="json")}
    return validate_values(
        SessionRequest, {**asked, "protocol": choice, "layout": layout}
    )


def draw_up(session: str, request: SessionRequest, *, simulated: bool = False) -> bytes:
    """Return the terms of a session as canonical bytes, with the risks that they bring.

    simulated: whether all its parties are played on one machine: it may then have what
        no new session may.

    Raises InvalidParameters if the protocol is unknown or parameters and layout do not
        fit.
    """
    name = request.protocol.name
    params = parse_params(name, to_jsonable_python(request.protocol.params))
    choice = ProtocolChoice(
        name=name, version=protocol(name).version, params=find_changed_params(params)
    )
    told = {"session": session, "protocol": choice, "risks": (), **request.sections}
    terms = validate_values(Terms, told)
    _check_fit(params, terms)
    _check_opening(params, terms)
    if not simulated:
        params.check_retired()
    risks = tuple(_risks(params, terms))
    return canonical_json(terms.model_copy(update={"risks": risks}))


def _check_fit(params: Params, terms: Terms) -> None:
    """Refuse parameters that do not fit layout, dictionary and preparation."""
    layout, plans = terms.layout, terms.plans
    known = protocol(name_of(params))
    known.check_runs(runs_of(params, terms.evaluation), layout)
    if terms.evaluation is not None:
        terms.evaluation.check_known(known.figures(params, layout))
    if terms.release is not None:
        _check_release(params, terms)
    if plans:
        params.check_prepared(plans)
    params.check_dictionary(
        [schema.clustered_part for schema in terms.dictionary or ()]
    )
    shared = any(len(layout.row_group(row)) > 1 for row in range(layout.n_row_groups))
    drops = any(len(plan.find_places_by_missing("drop")) for plan in plans)
    if drops and shared and not params.selects_rows:
        raise InvalidParameters(
            "where several parties hold the same rows, all have to leave "
            "out a row in which one lacks a value. With alignment.method ecdh "
            "they find the rows that are complete everywhere.",
            field="preparation",
        )


def check_opening(terms: Terms) -> None:
    """Refuse terms that no new session may have, whoever opens or joins it.

    They are read where an earlier release wrote them. Raises what :func:`check_terms`
    raises.
    """
    params = check_terms(terms)
    _check_risks(params, terms)
    _check_opening(params, terms)
    params.check_retired()


def _check_opening(params: Params, terms: Terms) -> None:
    protocol(terms.protocol.name).check_opening(params, terms.layout)
    check_shown(_find_disclosures(params, terms))


def shown_in(terms: Terms) -> frozenset[Disclosure]:
    """Return what a session shows of rows, and to whom; terms as they were checked."""
    return _find_disclosures(check_terms(terms), terms)


def _find_disclosures(params: Params, terms: Terms) -> frozenset[Disclosure]:
    layout = terms.layout
    shown = protocol(terms.protocol.name).shows(params, layout)
    shown |= of_fillings(terms.plans, layout)
    return shown | of_release(terms.release, layout)


def _check_release(params: Params, terms: Terms) -> None:
    """Refuse profiles of fields that nobody has described, or of some parties alone."""
    if terms.dictionary is None:
        raise InvalidParameters(
            "profiles need a dictionary of the fields; `coterie schema infer` "
            "writes one from a table.",
            field="release",
        )
    known = protocol(name_of(params))
    if known.quorum(params, terms.layout) < len(terms.layout.slots):
        raise InvalidParameters(
            "profiles need all parties to the end, and these parameters let a "
            "session end without some.",
            field="release",
        )


def runs_of(params: P, evaluation: Evaluation | None) -> tuple[P, ...]:
    """Return the parameters of each run of a session.

    Raises InvalidParameters if the protocol has no number of clusters, or its own is
        not the largest.
    """
    if evaluation is None:
        return (params,)
    largest = evaluation.n_clusters[-1]
    if getattr(params, "n_clusters", None) != largest:
        raise InvalidParameters(
            f"of several it has to be the largest, {largest}.", field="n_clusters"
        )
    return tuple(
        params.model_copy(update={"n_clusters": k}) for k in evaluation.n_clusters
    )


def _risks(params: Params, terms: Terms) -> dict[str, Risk]:
    return risks_of(
        params,
        terms.layout,
        terms.identities,
        terms.plans,
        terms.release,
        several=terms.evaluation is not None,
    )


def check_terms(terms: Terms) -> Params:
    """Return the parameters of received terms, if they hold with our own catalogue.

    A party calls this before it joins: the analyst's word on versions and risks is
    compared with what the party's own release computes.

    Raises VersionMismatch if the protocol has another version here, or a risk is not
        known here.
    Raises InvalidParameters if parameters, layout or the list of risks are not what
        this release computes; a list of an earlier release may lack what was named
        later.
    """
    choice = terms.protocol
    known = protocol(choice.name)
    if known.version != choice.version:
        whose = "an older" if choice.version < known.version else "a newer"
        raise VersionMismatch(
            f"The session is of protocol {choice.name!r} v{choice.version}, which {whose} "
            f"release speaks; v{known.version} is here."
        )
    params = parse_params(choice.name, choice.params)
    _check_fit(params, terms)
    _check_known(choice.name, terms.risks)
    _check_risks(params, terms, known.later_risks)
    return params


def _check_risks(params: Params, terms: Terms, later: Collection[str] = ()) -> None:
    """Refuse a list that is not what terms bring; all of ``later`` may lack."""
    brought = [
        (code, code.partition(".")[2] in later) for code in _risks(params, terms)
    ]
    before = tuple(code for code, is_later in brought if not is_later)
    if terms.risks not in (before, tuple(code for code, _ in brought)):
        raise InvalidParameters(
            "The terms list other risks than their parameters bring."
        )


def _check_known(name: str, codes: Iterable[str]) -> None:
    """Refuse risks that have no sentence here: what they say cannot be accepted."""
    for code in codes:
        if code.partition(".")[0] not in {name, session_risks.PREFIX}:
            raise VersionMismatch(f"The risk {code!r} is of another protocol.")
        find_risk(code)


def risks_in(terms: Terms) -> dict[str, Risk]:
    """Return the risks that terms list by their codes, worst first.

    Raises what :func:`check_terms` raises: sentences go with codes that hold.
    """
    return worst_first(_risks(check_terms(terms), terms))


def session_context(agreement: bytes) -> SessionContext:
    """Return the plan of an agreement, given its exact bytes."""
    agreed, terms = read_agreement(agreement)
    params = check_terms(terms).settle(*_size(agreed, terms.layout))
    return SessionContext(
        agreement=agreed,
        agreement_digest=digest(agreement),
        terms=terms,
        params=params,
        runs=runs_of(params, terms.evaluation),
    )


def _size(agreed: Agreement, layout: Layout) -> tuple[int, int]:
    """Return how many rows and columns all parties have together, as they joined."""
    rows = map(layout.row_group, range(layout.n_row_groups))
    columns = map(layout.column_group, range(layout.n_column_groups))
    return (
        sum(agreed.member(group[0]).n_rows for group in rows),
        sum(agreed.member(group[0]).n_columns for group in columns),
    )


def describe(name: str) -> dict[str, Any]:
    """Return a protocol's entry in the catalogue as JSON values."""
    known = protocol(name)
    schema: type[BaseModel] = known.params
    return {
        "name": name,
        "version": known.version,
        "title": known.title,
        "summary": known.summary,
        "partitionings": list(known.partitionings),
        "learns": dict(known.learns),
        "risks": sentences_of(new_risks(name)),
        "choices": {**known.choices, **session_risks.CHOICES},
        "params": schema.model_json_schema(),
    }
