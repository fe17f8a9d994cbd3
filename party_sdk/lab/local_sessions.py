"""Real sessions on one machine: an analyst and all parties communicate over HTTP."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clustering_protocols import session_terms, simulation
from clustering_protocols.common.errors import (
    Cancelled,
    CoterieError,
    InvalidParameters,
    SessionOver,
    Unavailable,
)
from clustering_protocols.common.extras import require_service
from clustering_protocols.contract import Params
from clustering_protocols.protocol_packages import list_enabled_packages
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.session_risks import risk_sentences
from clustering_protocols.terms.terms import About, Layout
from party_sdk.admission.table_files import TableSpec
from party_sdk.application.home import Home
from party_sdk.application.outputs import Outputs
from party_sdk.coordinator.coordinator import Coordinator
from party_sdk.coordinator.option_parsing import Rule, as_sequence, expand_preparation
from party_sdk.coordinator.session import CoordinatedSession
from party_sdk.home.files import create_private_folder, write_private
from party_sdk.home.policy import Policy
from party_sdk.lab.parties import Lattice, as_layout
from party_sdk.party.participant import Party
from party_sdk.tables import IdColumns, ReadOptions

if TYPE_CHECKING:
    from party_sdk.results.results import Result

PROGRAM = [sys.executable, "-P", "-m", "party_sdk.cli.own_analyst"]
_START_SECONDS = 120
_POLL_SECONDS = 0.02

_SESSION = "local-session"


class LocalSession:
    """A session whose members all run on this machine; see :func:`local_session`.

    session: the session as its coordinator sees it.
    parties: the parties by slot, in the order of the layout. Each has accepted the
        terms, and takes part in :meth:`run`.
    """

    def __init__(
        self,
        session: CoordinatedSession,
        homes: Mapping[str, Home],
        parties: dict[str, Party],
    ) -> None:
        self.session = session
        self.parties = parties
        self._homes = homes

    @property
    def risks(self) -> Mapping[str, str]:
        """Return the risk codes of the session, each with the sentence that explains it."""
        return risk_sentences(session_terms.risks_of_terms(self.session.terms))

    def run(
        self,
        tables: Sequence[Any] | Mapping[str, Any],
        *,
        id_column: IdColumns = None,
        columns: list[str] | None = None,
    ) -> list[Result]:
        """Let all parties take part at the same time, each with its table.

        tables: a table for each party, as for :meth:`Party.run`: a sequence in the
            order of the layout, or a mapping by slot.
        id_column, columns: used for every table, as for :meth:`Party.run`.

        Returns list of Result: the result of each party, in the order of the layout.

        Raises CoterieError: the error of the first party that stopped. The session is
            then cancelled.
        """
        options = ReadOptions(id_column=id_column, columns=columns)
        by_slot = self._tables_by_slot(tables)
        with ThreadPoolExecutor(len(by_slot)) as pool:
            try:
                # An interrupt while a thread starts would make the pool lose it.
                with _delay_interrupt():
                    futures = {
                        slot: pool.submit(
                            self._homes[slot].run,
                            self.parties[slot],
                            TableSpec(path=table, options=options),
                            Outputs(),
                        )
                        for slot, table in by_slot.items()
                    }
                wait(futures.values(), return_when=FIRST_EXCEPTION)
            finally:
                self.end()  # no party should wait for one that stopped
        return _collect_results(futures)

    def end(self) -> None:
        """Cancel the session if it is still running."""
        with suppress(CoterieError):
            if not self.session.status().is_over:
                self.session.cancel()

    def _tables_by_slot(
        self, tables: Sequence[Any] | Mapping[str, Any]
    ) -> dict[str, Any]:
        names = list(self.parties)
        if not isinstance(tables, Mapping):
            if len(tables) != len(names):
                raise InvalidParameters(
                    f"The session has {len(names)} parties, and there are "
                    f"{len(tables)} tables."
                )
            return dict(zip(names, tables, strict=True))
        if set(tables) != set(names):
            raise InvalidParameters(
                f"Pass a table for each of {', '.join(names)}, and for nobody else."
            )
        return {name: tables[name] for name in names}


@contextmanager
def _delay_interrupt() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives interrupts
        return
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            signal.raise_signal(signal.SIGINT)


def _collect_results(futures: Mapping[str, Future[Result]]) -> list[Result]:
    errors = {slot: future.exception() for slot, future in futures.items()}
    stopped = [(slot, error) for slot, error in errors.items() if error is not None]
    followers = (Cancelled, SessionOver)
    causes = [entry for entry in stopped if not isinstance(entry[1], followers)]
    for slot, error in causes or stopped:
        error.add_note(f"This stopped the party {slot!r}.")
        raise error
    return [future.result() for future in futures.values()]


@contextmanager
def local_session(
    params: Params,
    layout: Layout | Lattice,
    *,
    about: str | About = _SESSION,
    dictionary: Schema | Sequence[Schema] | None = None,
    preparation: Rule | Preparation | Sequence[Preparation] | None = None,
    policy: Policy | None = None,
    choices: Mapping[str, Any] | None = None,
    seed: int | None = None,
    **sections: Any,
) -> Iterator[LocalSession]:
    """Open a session whose analyst and parties all run on this machine.

    The analyst is a separate process, and each party talks HTTP to it from its own
    home, with the same code as between institutions. At the end of the context, even
    after an error, the analyst is stopped and the folders are removed.

    params: the parameters of any protocol, e.g. ``DataCollaboration(n_clusters=3)``.
    layout: Layout or (int, int); the parties; a pair counts row and column groups.
    about: as for :meth:`Coordinator.create_session`.
    dictionary, preparation: as for :func:`~party_sdk.lab.simulated_session.simulate`.
    policy: the policy of every party. By default each party accepts all risks of the
        session; read them in :attr:`LocalSession.risks`.
    choices: the decisions that every party makes; see :meth:`Party.join`.
    seed: determines all random draws, as in a simulation; random by default. Pass one
        only in trials: anyone who knows it can derive every secret.
    **sections: further sections of the terms, as for
        :meth:`Coordinator.create_session`.

    Raises InvalidParameters if the service is not installed, or the layout does not
    fit.
    """
    layout = as_layout(layout)
    fields = as_sequence(dictionary)
    prepared = expand_preparation(preparation, fields)
    seed = secrets.randbits(52) if seed is None else seed
    keys = simulation.derive_entropies(
        seed, _SESSION, [simulation.ANALYST, *layout.names]
    )
    identity = Institution.derive(keys[simulation.ANALYST])
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="coterie-"))
        )
        analyst = stack.enter_context(local_analyst(folder / "analyst", identity))
        coordinator = stack.enter_context(
            Coordinator(
                *analyst,
                home=folder / "coordinator",
                entropy=keys[simulation.COORDINATOR],
            )
        )
        session = coordinator.create_session(
            about,
            params,
            layout,
            session_id=_SESSION,
            seed=seed,
            dictionary=fields,
            preparation=prepared,
            **sections,
        )
        if policy is None:
            risks = frozenset(session.terms.risks)
            policy = Policy(accepted_risks=risks, least_known=0)
        invitations = session.invite()
        homes = {
            slot: Home(path=folder / "parties" / slot, entropy=keys[slot])
            for slot in layout.names
        }
        parties = {
            slot: stack.enter_context(home.join(invitations[slot], policy, choices))
            for slot, home in homes.items()
        }
        yield LocalSession(session, homes, parties)


# The analyst


class LocalAnalyst(NamedTuple):
    """The address of a local analyst, and a coordinator's key for it."""

    url: str
    key: str


@contextmanager
def local_analyst(folder: Path, identity: Institution) -> Iterator[LocalAnalyst]:
    """Run an analyst with SQLite in a separate process, until the end of the block.

    The service's settings in the environment (``COTERIE_…``) are ignored, because they
    belong to another analyst.

    folder: where the analyst stores everything, including its log.

    Raises InvalidParameters if the service is not installed. Raises Unavailable if the
    analyst does not start; the message ends with the last line of its log.
    """
    require_service("An analyst of your own is the service")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # any free port
        port = int(probe.getsockname()[1])
    log = create_private_folder(folder) / "analyst.log"
    write_private(folder / "identity.json", identity.to_bytes())
    with log.open("wb") as lines:
        process = subprocess.Popen(  # noqa: S603  this interpreter, and no shell
            [*PROGRAM, str(port)],
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("COTERIE_")},
                "COTERIE_DATA_DIR": str(folder),
                "COTERIE_PROTOCOL_PACKAGES": ",".join(list_enabled_packages()),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=lines,
            start_new_session=True,  # Ctrl-C must end only the caller
        )
    with process:
        try:
            key = process.stdout.readline().decode().strip() if process.stdout else ""
            _wait_until_ready(process, port, log)
            yield LocalAnalyst(f"http://127.0.0.1:{port}", key)
        finally:
            if process.stdin is not None:
                process.stdin.close()  # ends the analyst


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(_POLL_SECONDS)
    lines = log.read_text(errors="replace").strip().splitlines()
    raise Unavailable(
        f"The analyst did not start: {lines[-1] if lines else 'nothing is in its log'}",
        remedy=f"Read its log: {log}",
    )
