"""A keyed function of ids that its key holder evaluates without seeing them.

One party holds a key. Another hides its ids under random blinding factors, has them
evaluated and takes the factors off again: it learns the function's values at these ids
and at no others, the key holder learns nothing, and nobody without the key can compute
a value. Two parties have an id in common if they have a value in common.

``ecdh`` is :mod:`.ristretto`, ``rsa`` is :mod:`.blind_rsa`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Literal

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import ByteArray

Method = Literal["ecdh", "rsa"]

_LIBRARIES: dict[Method, tuple[str, ...]] = {
    "ecdh": ("rbcl",),
    "rsa": ("gmpy2", "Crypto.PublicKey.RSA"),
}


class OprfServer(ABC):
    """Evaluates the function."""

    @property
    @abstractmethod
    def public(self) -> bytes:
        """Return what others must know of the key to blind; may be empty."""

    @abstractmethod
    def values(self, ids: Sequence[bytes]) -> list[bytes]:
        """Return the function's values at the key holder's own ids."""

    @abstractmethod
    def evaluate(self, blinded: ByteArray) -> ByteArray:
        """Return the function of blinded elements (n, n_bytes), still blinded.

        Raises GuardRefused if one is no element that an honest party sends.
        """


class OprfClient(ABC):
    """Blinds ids, and reads what the key holder answers."""

    @abstractmethod
    def blind(self, ids: Sequence[bytes], stream: KeyedStream) -> ByteArray:
        """Return ids as blinded elements (n, n_bytes), under factors of the stream."""

    @abstractmethod
    def values(
        self, ids: Sequence[bytes], answers: ByteArray, stream: KeyedStream
    ) -> list[bytes]:
        """Return the function's values, given the answers and the same stream.

        Raises ProtocolFailed if an answer is none.
        """


def require(method: Method) -> None:
    """Refuse, with :class:`GuardRefused`, where a library of a method is missing."""
    for name in _LIBRARIES[method]:
        library(name)


def library(name: str) -> ModuleType:
    """Return a library of the optional extra; :class:`GuardRefused` without it."""
    try:
        return import_module(name)
    except ImportError:
        raise GuardRefused(
            f"Rows are aligned with the library {name.split('.', maxsplit=1)[0]!r}: "
            "pip install 'coterie[psi]'."
        ) from None
