"""Protocol locations: the folders of this package, and enabled distributions.

An installed distribution that the operator has not named is ignored, and its metadata
is not read.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from clustering_protocols import protocols
from clustering_protocols.common.errors import InvalidParameters

GROUP: Final = "coterie.protocols"
"""The entry point group in which a distribution lists its protocols."""

_OWN: Final = f"{protocols.__name__}."
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

Source = Callable[[], Iterable[str]]
"""A function that returns the names of distributions; it is called on first use."""

_sources: list[Source] = []


def use_packages(source: Source) -> None:
    """Use only the protocols of the distributions that this source names."""
    _sources[:] = [source]
    find_modules.cache_clear()


def use_packages_by_default(source: Source) -> None:
    """Use a source of distributions unless this process already has one."""
    if not _sources:
        use_packages(source)


def list_enabled_packages() -> tuple[str, ...]:
    """Return the names of the enabled distributions, in alphabetical order."""
    return tuple(sorted({name for source in _sources for name in source()}))


@cache
def built_in_modules() -> Mapping[str, str]:
    """Return the modules of the built-in protocols, by protocol name."""
    names = sorted(module.name for module in pkgutil.iter_modules(protocols.__path__))
    return MappingProxyType({name: _OWN + name for name in names})


@cache
def find_modules() -> Mapping[str, str]:
    """Return the modules of all protocols by name, without importing any of them.

    Raises InvalidParameters if a named distribution is not installed, has no protocol,
        or has one with an invalid name.
    """
    modules = dict(built_in_modules())
    for package in list_enabled_packages():
        for name, module in _read_entry_points(package):
            _check_entry(package, name, module, modules)
            modules[name] = module
    return MappingProxyType(dict(sorted(modules.items())))


def find_module(name: str) -> str | None:
    """Return the module of a protocol, or None if there is no protocol of this name."""
    return built_in_modules().get(name) or find_modules().get(name)


def _read_entry_points(package: str) -> Iterator[tuple[str, str]]:
    from importlib import metadata  # slow to import, and most processes use no packages

    try:
        entries = metadata.distribution(package).entry_points.select(group=GROUP)
    except (metadata.PackageNotFoundError, ValueError):
        raise InvalidParameters(
            f"The protocol package {package!r} is named but not installed here. "
            "Install it, or remove its name.",
            field="protocol_packages",
        ) from None
    if not entries:
        raise InvalidParameters(
            f"The package {package!r} is named but has no protocol: it has no entry "
            f"point in the group {GROUP!r}.",
            field="protocol_packages",
        )
    yield from ((entry.name, entry.value) for entry in entries)


def _check_entry(
    package: str, name: str, module: str, modules: Mapping[str, str]
) -> None:
    # a late import, because only packages need it
    from clustering_protocols.terms import session_risks

    if not _NAME.fullmatch(name) or name == session_risks.PREFIX:
        problem = "use at most 32 lower-case letters, digits and '_', and not 'house'"
    elif name in modules:
        problem = f"a protocol of {modules[name]!r} has this name"
    elif not _MODULE.fullmatch(module):
        problem = f"its entry point {module!r} does not name a module"
    else:
        return
    raise InvalidParameters(
        f"The package {package!r} calls a protocol {name!r}: {problem}.",
        field="protocol_packages",
    )
