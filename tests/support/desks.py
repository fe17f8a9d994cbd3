"""A desk as a process or within this one, and what a party brings to it."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import urlencode

import httpx
from anyio.from_thread import start_blocking_portal

from coterie_pages.served_pages import HEADERS
from party_sdk.desk.form_answers import ANSWER_PARAMETER, is_page
from party_sdk.desk.responses import Desk
from party_sdk.desk.server import create_app
from party_sdk.desk.visits import Openings, Visits
from party_sdk.supervisor.supervisor import Supervisor
from support import warm
from support.analyst_process import COTERIE
from support.browsing import FORM, tree
from support.in_process import HandClock, InProcess


class DeskProcess:
    """`coterie ui` of a home, from the stock of imports, like its orders' processes."""

    def __init__(self, home: Path, tables: Path, log: Path) -> None:
        self.home, self.tables, self.log = home, tables, log
        self.link = ""
        self.process: warm.Warm
        self.output: IO[str]

    def __enter__(self) -> Self:
        warm.stock()
        ours, theirs = os.pipe()
        self.output = os.fdopen(ours)
        with (
            Path(os.devnull).open("rb") as nothing,
            os.fdopen(theirs, "wb") as output,
            self.log.open("ab") as log,
        ):
            files = [each.fileno() for each in (nothing, output, log)]
            self.process = warm.Warm(
                [COTERIE, *self._words()], files, env=self._environment()
            )
        self.link = self._read_answer(self.output.readline())["link"]
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.output.close()

    @property
    def address(self) -> str:
        return self.link.partition("/open/")[0]

    def another_link(self) -> dict[str, Any]:
        """What the same command says while the desk runs."""
        said = subprocess.run(
            [*warm.command(COTERIE), *self._words()],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return self._read_answer(said.stdout)

    def _words(self) -> list[str]:
        words = ["ui", "--no-browser", "--json", "--home", str(self.home)]
        return [*words, "--tables", str(self.tables)]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "COTERIE_HIDDEN_PROTOCOLS": ""}

    def _read_answer(self, line: str) -> dict[str, Any]:
        assert line, self.log.read_text()
        found: dict[str, Any] = json.loads(line)
        return found


@dataclass
class DeskBrowser:
    """A browser without eyes at a desk in this process: it keeps the cookie."""

    client: httpx.Client
    desk: Desk
    said: list[str] = field(default_factory=list)
    cookie: str = ""

    def open(self) -> httpx.Response:
        response = self.get(f"/open/{self.desk.openings.create_token()}", at_root=False)
        assert response.status_code == 303, response.text
        self.cookie = response.headers["set-cookie"].partition(";")[0]
        return response

    def accept(self, place: str) -> httpx.Response:
        """Accept the sheet of a party as it is shown."""
        shown = tree(self.get(f"{place}/terms")).iter("input")
        sheet = next(e for e in shown if e.attrib.get("name") == "sheet")
        return self.post(f"{place}/terms", {"sheet": sheet.attrib["value"]})

    def get(self, path: str, *, at_root: bool = True, **headers: str) -> httpx.Response:
        return self.send("GET", path, at_root=at_root, headers=headers)

    def post(
        self, path: str, fields: Mapping[str, Any] | bytes, **headers: str
    ) -> httpx.Response:
        """Send a form as a page of the desk does, unless headers say otherwise.

        If it leads to a page with the answer, that page is fetched, as by a browser.
        """
        if isinstance(fields, bytes):
            content = fields
        else:
            own = {"token": self.token()} if self.cookie else {}
            content = urlencode({**own, **fields}, doseq=True).encode()
        origin = str(self.client.base_url).rstrip("/")
        said = {"Content-Type": FORM, "Origin": origin, **headers}
        response = self.send("POST", path, headers=said, content=content)
        assert not is_page(response.status_code, response.headers) or not self.cookie
        location = response.headers.get("location", "")
        kept = f"?{ANSWER_PARAMETER}=" in location
        return self.get(location, at_root=False) if kept else response

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        at_root: bool = True,
        **more: Any,
    ) -> httpx.Response:
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            said.setdefault("Cookie", self.cookie)
        address = f"{self.desk.root}{path}" if at_root else path
        response = self.client.request(method, address, headers=said, **more)
        self.client.cookies.clear()
        for name, value in HEADERS.items():
            if name != "Cache-Control":  # scripts and styles are kept
                assert response.headers[name] == value
        return response

    def follow(self, response: httpx.Response) -> httpx.Response:
        """Go where a form leads to, until there is a page."""
        while response.status_code == 303:
            response = self.get(response.headers["location"], at_root=False)
        return response

    def token(self) -> str:
        found = {
            each.attrib["value"]
            for each in tree(self.get("/")).iter("input")
            if each.attrib.get("name") == "token"
        }
        [only] = found
        return only


@contextmanager
def desk_at(home: Path, tables: Path, clock: HandClock) -> Iterator[DeskBrowser]:
    said: list[str] = []
    desk = Desk(
        home=home,
        tables=tables,
        root="/drawn",
        hosts=frozenset({"127.0.0.1:8462", "localhost:8462"}),
        visits=Visits(timedelta(minutes=60), clock.now),
        openings=Openings(home, clock.now),
        background=Supervisor(home, said.append),
    )
    with start_blocking_portal() as portal:
        transport = InProcess(create_app(desk, said.append), portal)
        with httpx.Client(
            transport=transport, base_url="http://127.0.0.1:8462"
        ) as client:
            yield DeskBrowser(client, desk, said)
