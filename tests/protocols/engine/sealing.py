"""Record what parties seal in envelopes, before it is encrypted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from clustering_protocols.secrecy import envelopes
from clustering_protocols.secrecy.envelopes import Binding


class Sealed(NamedTuple):
    binding: Binding
    content: bytes


@contextmanager
def read_before_sealing() -> Iterator[list[Sealed]]:
    found: list[Sealed] = []
    seal = envelopes.seal

    def recording(content: bytes, binding: Binding, *keys: Any) -> bytes:
        found.append(Sealed(binding, content))
        return seal(content, binding, *keys)

    with patch.object(envelopes, "seal", recording):
        yield found
