"""The catalogue of protocols: the folders under ``protocols/`` and installed packages.

Protocols need no registration. A new protocol is a new folder, or a distribution of its
own (:mod:`~clustering_protocols.protocol_packages`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from clustering_protocols import protocol_packages
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.values import validate_values
from clustering_protocols.contract import ClusteringProtocol, Params
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.session_risks import Risk, risk_sentences, worst_first
from clustering_protocols.terms.terms import Identities, Layout

P = TypeVar("P", bound=Params)


@cache
def _import_protocol(module: str) -> ClusteringProtocol[Any]:
    own = protocol_packages.built_in_modules().values()
    try:
        imported: ClusteringProtocol[Any] = import_module(module).PROTOCOL
        has_examples = module in own or bool(imported.reference().examples())
    except (ImportError, AttributeError) as error:
        if module in own:
            raise
        raise InvalidParameters(
            f"The protocol package {module!r} cannot be used: {error}. Ask its author "
            "for a release that fits this one.",
            field="protocol_packages",
        ) from error
    if not has_examples:
        raise InvalidParameters(
            f"The protocol of {module!r} has no example, so its disclosures were never "
            "measured. Ask its author for one.",
            field="protocol_packages",
        )
    return imported


@cache
def _import_protocols(
    modules: tuple[tuple[str, str], ...],
) -> Mapping[str, ClusteringProtocol[Any]]:
    return MappingProxyType({name: _import_protocol(path) for name, path in modules})


def catalogue() -> Mapping[str, ClusteringProtocol[Any]]:
    """Return a mapping of all protocols by name, in alphabetical order."""
    return _import_protocols(tuple(protocol_packages.find_modules().items()))


def protocol(name: str) -> ClusteringProtocol[Any]:
    """Return the protocol of this name without importing any other protocol.

    Raises InvalidParameters for an unknown name; the message lists all valid names.
    """
    module = protocol_packages.find_module(name)
    if module is None:
        names = ", ".join(protocol_packages.find_modules())
        raise InvalidParameters(f"No protocol {name!r}. Known protocols: {names}.")
    return _import_protocol(module)


def find_protocol_name(params: Params) -> str:
    """Return the name of the protocol to which these parameters belong."""
    kind = type(params)
    for modules in (protocol_packages.built_in_modules, protocol_packages.find_modules):
        for name, module in modules().items():
            if f"{kind.__module__}.".startswith(f"{module}."):
                if protocol(name).params is kind:
                    return name
                break
    raise TypeError(f"{kind.__name__} are the parameters of no protocol")


def find_protocol(params: Params) -> ClusteringProtocol[Any]:
    """Return the protocol to which these parameters belong."""
    return protocol(find_protocol_name(params))


def protocol_risks(name: str) -> dict[str, Risk]:
    """Return every risk that a protocol can have, keyed by code, with the worst first."""
    risks = protocol(name).risks
    return worst_first({f"{name}.{code}": risk for code, risk in risks.items()})


def find_session_risks(
    params: Params,
    layout: Layout,
    identities: Identities,
    plans: Sequence[ColumnPlan] = (),
    release: Release | None = None,
    *,
    has_several_runs: bool = False,
) -> dict[str, Risk]:
    """Return every risk of a session by its code, with the protocol's own first."""
    name = find_protocol_name(params)
    own = protocol(name)
    codes = [*own.risks_of(params, layout)]
    codes += own.risks_of_runs(params, layout) if has_several_runs else ()
    general = session_risks.find_risk_codes(layout, identities, plans, release)
    general |= set(codes)
    return {
        f"{name}.{code}": own.risks[code]
        for code in codes
        if code not in session_risks.RISKS
    } | {code: risk for code, risk in session_risks.RISKS.items() if code in general}


def parse_params(name: str, values: Mapping[str, Any]) -> Params:
    """Validate a protocol's parameters; raise :class:`InvalidParameters` if invalid."""
    params: Params = validate_values(protocol(name).params, values)
    return params


def default_values(params: type[Params]) -> dict[str, Any]:
    """Return the defaults of a protocol's parameters as JSON values.

    Terms omit them, so a default may only change together with the protocol's version.
    """
    return {
        name: to_jsonable_python(field.get_default(call_default_factory=True))
        for name, field in params.model_fields.items()
        if not field.is_required()
    }


def find_changed_params(params: Params) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, as JSON values.

    A nested parameter is included as a whole if any part of it differs.
    """
    usual = default_values(type(params))
    return {
        name: value
        for name, value in params.model_dump(mode="json").items()
        if name not in usual or json.dumps(value) != json.dumps(usual[name])
    }


def check_choice_names(name: str, choices: Iterable[str]) -> None:
    """Raise :class:`InvalidParameters` if the protocol lacks one of these choices."""
    names = {**protocol(name).choices, **session_risks.CHOICES}
    for choice in choices:
        if choice not in names:
            raise InvalidParameters(
                f"{name!r} has no choice {choice!r}; it has {', '.join(sorted(names))}."
            )


def limiting_choices(name: str) -> frozenset[str]:
    """Return the choices that only decide whether a contribution may be sent."""
    return protocol(name).limits | session_risks.LIMITS


def build_catalogue_entry(name: str) -> dict[str, Any]:
    """Return a protocol's entry in the catalogue as JSON values."""
    described = protocol(name)
    schema: type[BaseModel] = described.params
    return {
        "name": name,
        "version": described.version,
        "title": described.title,
        "summary": described.summary,
        "partitionings": list(described.partitionings),
        "learns": dict(described.learns),
        "risks": risk_sentences(protocol_risks(name)),
        "choices": {**described.choices, **session_risks.CHOICES},
        "params": schema.model_json_schema(),
    }
