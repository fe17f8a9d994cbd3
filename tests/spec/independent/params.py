"""Section 4: parameters of a protocol, with those that are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class GivenParams:
    """Section 4: what terms say, and defaults of section 12 for what they leave out.

    written: the values of some that a reader of the pages knows.
    """

    usual: ClassVar[Mapping[str, Any]]
    written: ClassVar[Mapping[str, Sequence[Any]]]
    given: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Section 4: one of them."""
        return self.given.get(name, self.usual[name])

    @property
    def are_known(self) -> bool:
        """Section 4: whether a reader knows all of them, and their values."""
        return set(self.given) <= set(self.usual) and all(
            self[name] in known for name, known in self.written.items()
        )
