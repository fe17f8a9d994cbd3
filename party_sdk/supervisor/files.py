"""The files of an order in the folder of its party."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from clustering_protocols.common.errors import NotReady
from party_sdk.home.clock import now
from party_sdk.home.encryption import SecretFiles
from party_sdk.home.files import private_folder, wait_for_lock
from party_sdk.party.folder import PartyFolder
from party_sdk.supervisor.models import Decisions, Order, OrderStatus, PendingQuestion

_M = TypeVar("_M", bound=BaseModel)


class Overtaken(Exception):
    """The order was withdrawn or placed anew since it was taken: others speak for it."""


class OrderFiles:
    """Reads and writes what is kept of the order of one party.

    Anyone who acts on an order, for as long as that takes, takes it first: from then on
    nothing is told of it once it is another one.
    """

    def __init__(self, home: Path, session: str, slot: str) -> None:
        self.folder = PartyFolder(home, session, slot)
        self.home, self.session, self.slot = home, session, slot
        self._files = SecretFiles(home)
        self._is_alone = False
        self._taken: tuple[datetime, str | None] | None = None

    @property
    def exists(self) -> bool:
        """Return whether the party has an order."""
        return self._order.exists()

    def order(self) -> Order:
        """Return the order; :class:`NotReady` if there is none."""
        found = self._read(Order, self._order)
        if found is None:
            raise NotReady(f"There is no order for {self.session} {self.slot}.")
        return found

    def save_order(self, order: Order) -> None:
        """Keep an order."""
        self._write(self._order, order)

    def take(self) -> Order:
        """Return the order, to act on it as it is placed now."""
        with self.alone():
            order = self.order()
            self._taken = (self.status().placed_at, order.withdrawn)
        return order

    def check(self) -> None:
        """Raise :class:`Overtaken` if the order is no longer the one that was taken."""
        if self._taken is None:
            return
        withdrawn = self.order().withdrawn
        if self._taken != (self.status().placed_at, withdrawn):
            raise Overtaken

    def status(self) -> OrderStatus:
        """Return where the order stands."""
        at = now()
        fresh = OrderStatus(
            session=self.session, slot=self.slot, placed_at=at, changed_at=at
        )
        return self._read(OrderStatus, self._status) or fresh

    def tell(self, **changes: Any) -> OrderStatus:
        """Change where the order stands, and return it; nothing is written for no news.

        Raises Overtaken if another order was taken than there is now.
        """
        with self.alone():
            self.check()
            before = self.status()
            after = before.model_copy(update=changes)
            if after != before or not self._status.exists():
                after = after.model_copy(update={"changed_at": now()})
                self._write(self._status, after)
            return after

    def question(self) -> PendingQuestion | None:
        """Return what a person has to decide, if anything."""
        return self._read(PendingQuestion, self._question)

    def ask(self, question: PendingQuestion) -> None:
        """Keep a question."""
        self._write(self._question, question)

    def unask(self) -> None:
        """Remove the question: it was answered, or is asked no more."""
        self._question.unlink(missing_ok=True)

    def answers(self) -> Decisions:
        """Return all answers so far."""
        return self._read(Decisions, self._answers) or Decisions()

    def save_answers(self, answers: Decisions) -> None:
        """Keep all answers."""
        self._write(self._answers, answers)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time change what is kept; within it, as often as needed."""
        if self._is_alone:
            yield
            return
        with wait_for_lock(self.folder.path / "order.lock"):
            self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False

    @property
    def moved_at(self) -> int:
        """Return when order or status were written last (ns), to see whether it is news."""
        return max(_written_at(self._order), _written_at(self._status))

    def _read(self, model: type[_M], path: Path) -> _M | None:
        try:
            return model.model_validate_json(self._files.read(path))
        except FileNotFoundError:
            return None
        except ValidationError:
            raise NotReady(f"{path.name} was written by another release.") from None

    def _write(self, path: Path, content: BaseModel) -> None:
        private_folder(self.folder.path)
        self._files.write(path, content.model_dump_json().encode())

    @property
    def _order(self) -> Path:
        return self.folder.path / "order.json"

    @property
    def _status(self) -> Path:
        return self.folder.path / "status.json"

    @property
    def _question(self) -> Path:
        return self.folder.path / "question.json"

    @property
    def _answers(self) -> Path:
        return self.folder.path / "answers.json"


def _written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def orders_in(home: Path) -> Iterator[OrderFiles]:
    """Yield the orders of a home, by session and slot."""
    for path in sorted((home / "parties").glob("*/*/order.json")):
        yield OrderFiles(home, path.parent.parent.name, path.parent.name)
