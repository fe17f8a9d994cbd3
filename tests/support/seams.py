"""Every function of the protocols that a test replaces has to be called in that test.

A liar replaces a function to lie in its place. Once the code no longer calls it there, the
lie is never told and the test passes for no reason. So each replaced function is counted,
and a test that never entered one of its own fails.

``unused_seam(name)`` marks a function that may stay uncalled, because the test claims so.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from pkgutil import resolve_name
from types import FunctionType, ModuleType
from typing import Any

import pytest

_PRODUCT = "clustering_protocols"
_calls: dict[str, int] = {}


def _name(target: object, attribute: str) -> str:
    if isinstance(target, ModuleType):
        return f"{target.__name__}.{attribute}"
    if isinstance(target, type):
        return f"{target.__module__}.{target.__qualname__}.{attribute}"
    return ""


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    _calls.setdefault(name, 0)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _calls[name] += 1
        return function(*args, **kwargs)

    return call


def _count(target: object, attribute: str, value: object) -> object:
    name = _name(target, attribute)
    if not name.startswith(_PRODUCT) or isinstance(value, ModuleType | type):
        return value
    if isinstance(value, property) and value.fget:
        return property(_counted(name, value.fget))
    if isinstance(value, FunctionType) or (
        callable(value) and isinstance(target, ModuleType)
    ):
        return _counted(name, value)
    return value


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "unused_seam(name): a replaced function that is not to be called"
    )
    honest = pytest.MonkeyPatch.setattr

    def setattr_(
        self: pytest.MonkeyPatch, target: Any, name: Any, *args: Any, **kwargs: Any
    ) -> None:
        if isinstance(target, str) and target.startswith(_PRODUCT) and not args:
            owner, _, attribute = target.rpartition(".")
            target, name, args = resolve_name(owner), attribute, (name,)
        if args:
            args = (_count(target, name, args[0]), *args[1:])
        honest(self, target, name, *args, **kwargs)

    pytest.MonkeyPatch.setattr = setattr_  # type: ignore[method-assign]
    config.add_cleanup(lambda: setattr(pytest.MonkeyPatch, "setattr", honest))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    _calls.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    unused = {mark.args[0] for mark in item.iter_markers("unused_seam")}
    silent = [
        name
        for name, calls in _calls.items()
        if not calls and name.rpartition(".")[2] not in unused
    ]
    if silent:
        raise AssertionError(f"replaced, and never called: {', '.join(silent)}")
