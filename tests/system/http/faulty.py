"""The program `coterie` with wrapped functions that can kill its process.

A test writes the name of a place into the file ``COTERIE_TEST_FAULT``; a process that
reaches the place removes the file and kills itself.
"""

import functools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

UPLOAD = (
    "after the headers",
    "within the body",
    "after the last byte",
    "after the sync",
)
COMMIT = ("after the rename", "after the commit", "before the response")
STEP = ("stepping", "stepped, not stored", "just after stepping")
PARTY = (
    "within the transaction",
    "before the send",
    "between send and receipt",
    "after the receipt",
)


def die(fault: str) -> None:
    """Kill this process if the test has named this place."""
    armed = Path(os.environ["COTERIE_TEST_FAULT"])
    if armed.exists() and armed.read_text() == fault:
        armed.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def wrap(owner: Any, name: str, *, before: str = "", after: str = "") -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        die(before)
        result = original(*args, **kwargs)
        die(after)
        return result

    setattr(owner, name, wrapped)


def wrap_response(exchange: Any) -> None:
    send = exchange.send

    async def wrapped(self: Any, message: Any) -> None:
        if message.get("status") == 201 and self.received:
            die("before the response")
        await send(self, message)

    exchange.send = wrapped


def wrap_transactions(store: Any) -> None:
    """Name two places for each transaction of a home: before and after its commit."""
    numbers, transaction = count(1), store.transaction

    @contextmanager
    def wrapped(self: Any, *, durable: bool = True) -> Iterator[Any]:
        number = 0 if self._depth else next(numbers)
        with transaction(self, durable=durable) as database:
            yield database
            die(f"before commit {number}")
        die(f"after commit {number}")

    store.transaction = wrapped


def wrap_all() -> None:
    # here, and not above: worker processes read this file too, and wrap nothing
    from analyst_service import contribution_endpoints as endpoints
    from analyst_service.blobs import FileDraft
    from analyst_service.driver import Driver
    from analyst_service.middleware import _Exchange
    from party_sdk.analyst_client.http_analyst import HttpAnalyst
    from party_sdk.home.store import HomeStore
    from party_sdk.party.ledger import Ledger

    endpoints.ROW_BYTES = 0  # files come to more places than rows
    wrap(endpoints, "parse_body_headers", after="after the headers")
    wrap(FileDraft, "write", after="within the body")
    wrap(FileDraft, "seal", before="after the last byte", after="after the sync")
    wrap(FileDraft, "store_as_blob", after="after the rename")
    wrap(endpoints, "_check_and_store", after="after the commit")
    wrap_response(_Exchange)
    wrap(Driver, "_submit_step", after="stepping")
    wrap(
        Driver,
        "_store_or_release",
        before="stepped, not stored",
        after="just after stepping",
    )
    wrap(Ledger, "log_sending", before="within the transaction")
    wrap(HttpAnalyst, "contribute", before="before the send")
    wrap(HttpAnalyst, "contribute", after="between send and receipt")
    wrap(Ledger, "log_receipt", after="after the receipt")
    wrap_transactions(HomeStore)


if __name__ == "__main__":
    from party_sdk.cli import main

    wrap_all()
    main(prog_name="coterie")
