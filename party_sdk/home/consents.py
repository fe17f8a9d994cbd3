"""To which kinds of contribution a party's people have said yes, and since when."""

from __future__ import annotations

from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from clustering_protocols.common.errors import NotReady
from party_sdk.home.clock import now
from party_sdk.home.files import read_private, write_private

WITHDRAWN = (
    "You took your consent back. What was sent stays sent; nothing more is sent until you "
    "are asked again and say yes. Until then the others wait for you, at most until the "
    "deadline of the round."
)
"""What follows once consent is withdrawn."""


class Consent(BaseModel):
    """A yes to all further contributions of one kind."""

    model_config = ConfigDict(frozen=True)

    kind: str
    meaning: str
    at: AwareDatetime


class _ConsentFile(BaseModel):
    model_config = ConfigDict(frozen=True)

    given: tuple[Consent, ...] = ()
    withdrawn_at: AwareDatetime | None = None


class Consents:
    """The consents of one party, in a file of its folder; read anew each time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def kinds(self) -> tuple[Consent, ...]:
        """Return every kind to which somebody said yes, in that order."""
        return self._read().given

    @property
    def withdrawn_at(self) -> AwareDatetime | None:
        """Return when they were last withdrawn: everything is asked about since then."""
        return self._read().withdrawn_at

    def covers(self, kind: str) -> bool:
        """Return whether a kind needs no question any more."""
        return any(each.kind == kind for each in self.kinds)

    def give(self, kind: str, meaning: str) -> None:
        """Keep a yes to all of a kind."""
        kept = self._read()
        fresh = Consent(kind=kind, meaning=meaning, at=now())
        self._write(kept.model_copy(update={"given": (*kept.given, fresh)}))

    def withdraw(self) -> None:
        """Take every yes back: from now on each kind is asked about again."""
        self._write(_ConsentFile(withdrawn_at=now()))

    def _read(self) -> _ConsentFile:
        try:
            return _ConsentFile.model_validate_json(read_private(self._path))
        except FileNotFoundError:
            return _ConsentFile()
        except ValidationError:
            raise NotReady(
                f"{self._path.name} was written by another release."
            ) from None

    def _write(self, kept: _ConsentFile) -> None:
        write_private(self._path, kept.model_dump_json().encode())
