"""What is shipped under docker/: the proxy's limits, run, and the compose file, read."""

import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import make_url
from support.analyst_process import Analyst, Crowd, free_port, wait_for
from support.needs import COMPOSE, NGINX, Need, leave_out
from support.tls import certificate

from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.protocols.dummy import Dummy
from tests.service.samples import PARTS
from tests.system.http.names import Names, names

DOCKER = Path(__file__).parents[3] / "docker"
CONFIGURATION = (DOCKER / "nginx.conf").read_text()


def program(need: Need) -> str:
    """Return where a program is; without it the test is left out."""
    found = shutil.which(need.name) or shutil.which(need.name, path="/usr/sbin")
    return found or leave_out(need, "it is not installed")


@dataclass(frozen=True)
class Proxy:
    """nginx with the shipped configuration, before a real analyst."""

    port: int
    analyst: Analyst
    tls: ssl.SSLContext
    names: Names
    folder: Path

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, verify=self.tls, timeout=60)

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        return self.tls.wrap_socket(plain, server_hostname="127.0.0.1")

    def say(self, request: bytes) -> bytes:
        """Send bytes and return everything that comes until the connection ends."""
        with self.connect() as connection:
            with suppress(ConnectionError, ssl.SSLError):
                connection.sendall(request)
            answer = b""
            with suppress(ConnectionError, ssl.SSLError):
                while piece := connection.recv(1 << 16):
                    answer += piece
            return answer


def placed(folder: Path, port: int, analyst: Analyst, service: Names) -> str:
    """The shipped configuration in another place: addresses and paths, no limit."""
    changes = {
        "listen 8443 ssl": f"listen 127.0.0.1:{port} ssl",
        "analyst:8000": f"analyst:{analyst.port}",
        "resolver 127.0.0.11 valid=5s": f"resolver 127.0.0.1:{service.port} valid=1s",
        "/etc/nginx/": f"{folder}/",
        "/tmp/nginx": f"{folder}/nginx",
        "/dev/stderr warn": f"{folder}/error.log warn",
        "/dev/stdout": f"{folder}/access.log",
    }
    text = CONFIGURATION
    for shipped, here in changes.items():
        assert shipped in text
        text = text.replace(shipped, here)
    return text


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    nginx = program(NGINX)
    folder = tmp_path_factory.mktemp("proxy")
    tls, port = certificate(folder), free_port()
    with names() as service, Analyst(folder / "analyst", cold=True) as analyst:
        configuration = folder / "nginx.conf"
        configuration.write_text(placed(folder, port, analyst, service))
        command = [nginx, "-c", str(configuration), "-g", "daemon off;"]
        command += ["-e", str(folder / "error.log")]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        running = Proxy(port, analyst, tls, service, folder)
        try:
            wait_for(lambda: answers(running))
            yield running
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def answers(proxy: Proxy) -> bool:
    try:
        with proxy.client() as client:
            return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def status_of(answer: bytes) -> int:
    """The status of an answer; 0 if the connection just ended."""
    return int(answer.split()[1]) if answer else 0


def request(*headers: str, body: str = "", line: str = "GET /v1/protocols") -> bytes:
    head = "\r\n".join([f"{line} HTTP/1.1", "Host: x", *headers])
    return f"{head}\r\n\r\n{body}".encode()


LONG: dict[str, tuple[bytes, set[int]]] = {
    "70 kB": (request("X-Long: " + "x" * 70_000), {431}),
    "2 MB": (request("X-Long: " + "x" * (2 << 20)), {431, 0}),
    "20 000 headers": (request(*(f"X-{n}: x" for n in range(20_000))), {431, 0}),
    "an address of 100 kB": (request(line="GET /" + "x" * 100_000), {431, 414}),
}


@pytest.mark.threat(7)
@pytest.mark.parametrize("what", LONG)
def test_headers_over_the_limit_never_reach_the_analyst(
    proxy: Proxy, what: str
) -> None:
    sent, expected = LONG[what]
    answer = proxy.say(sent)
    assert status_of(answer) in expected
    if answer:
        assert b"urn:coterie:problem:header-too-large" in answer


AMBIGUOUS: dict[str, bytes] = {
    "two lengths": request("Content-Length: 2", "Content-Length: 3", body="{}"),
    "two equal lengths": request("Content-Length: 2", "Content-Length: 2", body="{}"),
    "length and chunks": request(
        "Content-Length: 5", "Transfer-Encoding: chunked", body="0\r\n\r\n"
    ),
    "chunks by another name": request("Transfer-Encoding: xchunked", body="0\r\n\r\n"),
    "a negative length": request("Content-Length: -1"),
    "a length that is no number": request("Content-Length: 0x2", body="{}"),
}


@pytest.mark.threat(11)
@pytest.mark.parametrize("what", AMBIGUOUS)
def test_an_ambiguous_request_is_refused_and_disconnected(
    proxy: Proxy, what: str
) -> None:
    smuggled = request(line="GET /v1/sessions")
    answer = proxy.say(AMBIGUOUS[what] + smuggled)
    assert status_of(answer) == 400
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer.lower()
    assert b"urn:coterie:problem:malformed" in answer


@pytest.mark.thorough
@pytest.mark.threat(67)
def test_slow_connections_are_closed_while_uploads_continue(
    proxy: Proxy, tmp_path: Path
) -> None:
    """As shipped: headers within 10 s, no silence of 30 s, no body below its rate."""
    with ThreadPoolExecutor(1) as beside, ExitStack() as open_ones:
        begin = time.monotonic()
        slow = [open_ones.enter_context(tcp(proxy)) for _ in range(500)]
        idle = open_ones.enter_context(proxy.connect())
        idle.sendall(request(line="GET /healthz"))
        assert status_of(idle.recv(1 << 16)) == 200
        idle_since = time.monotonic()
        session = beside.submit(honest, proxy, tmp_path)
        ends = []
        for connection in slow:
            with suppress(ConnectionError):  # a reset is as good as an end
                assert connection.recv(1) == b""
            ends.append(time.monotonic() - begin)
        assert 9 < ends[0] <= ends[-1] < 30
        dribbling = open_ones.enter_context(proxy.connect())
        dribbling.sendall(
            request("Content-Length: 16000", line="POST /v1/join/preview")
        )
        answer = b""
        while not answer:
            assert time.monotonic() < begin + 90
            dribbling.sendall(b" ")
            answer = at_once(dribbling)
            time.sleep(1)
        assert status_of(answer) == 408
        idle.settimeout(60)
        assert idle.recv(1) == b""
        assert 29 < time.monotonic() - idle_since < 90
        session.result()  # beside them, however long a busy machine takes


def tcp(proxy: Proxy) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=60)
    connection.sendall(b"\x16\x03\x01")
    return connection


def at_once(connection: ssl.SSLSocket) -> bytes:
    connection.settimeout(0.05)
    try:
        return connection.recv(1 << 16)
    except TimeoutError:
        return b""
    finally:
        connection.settimeout(60)


class Through(Analyst):
    """The analyst, as it is seen through the proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.url, self.key = proxy.url, proxy.analyst.key
        self.proxy = proxy

    def connect(self, http: httpx.Client | None = None) -> Any:
        return super().connect(http or self.proxy.client())


def honest(proxy: Proxy, folder: Path) -> None:
    crowd = Crowd(Through(proxy), folder / "home", Dummy(), PARTS, session="s")
    crowd.start()
    assert crowd.labels() == crowd.expected()
    crowd.close()


def test_figures_are_not_for_the_outside(proxy: Proxy) -> None:
    with proxy.client() as client:
        refused = client.get("/metrics")
        assert refused.status_code == 404
        assert refused.json()["type"] == Problem.NOT_FOUND.urn
        assert client.get("/readyz").status_code == 200
    inside = httpx.get(f"{proxy.analyst.url}/metrics")
    assert "coterie_sessions" in inside.text


def test_while_the_analyst_is_away_the_proxy_says_so(proxy: Proxy) -> None:
    with proxy.client() as client:
        proxy.analyst.kill()
        try:
            refusal = client.get("/v1/protocols")
        finally:
            proxy.analyst.start()
        assert refusal.status_code == 503
        assert refusal.headers["retry-after"] == "2"
        assert refusal.headers["strict-transport-security"]
        assert refusal.json()["type"] == Problem.UNAVAILABLE.urn
        assert client.get("/v1/protocols").status_code == 200


def test_an_analyst_that_was_recreated_elsewhere_is_found_again(proxy: Proxy) -> None:
    """Its name stands for another address then; the proxy is not restarted."""

    def status() -> int:
        with proxy.client() as client:
            return client.get("/v1/protocols").status_code

    assert status() == 200
    proxy.names.stands_for = "127.0.0.2"  # where nobody listens
    try:
        wait_for(lambda: status() == 503)
    finally:
        proxy.names.stands_for = "127.0.0.1"
    # each process of the proxy looks the name up for itself
    wait_for(lambda: all(status() == 200 for _ in range(20)))


@pytest.mark.threat(32)
def test_refusals_leave_a_trace_and_no_secret(proxy: Proxy) -> None:
    with proxy.client() as client:
        secret = {"Authorization": "Bearer ck_canary"}
        assert client.get("/v1/sessions?after=canary", headers=secret).is_error
        assert client.get("/healthz", headers=secret).status_code in {200, 503}
    proxy.say(request("X-Long: " + "x" * 70_000, "Authorization: Bearer ck_canary"))
    log = proxy.folder / "access.log"

    def statuses() -> set[str]:
        return {json.loads(line)["status"] for line in log.read_text().splitlines()}

    # the proxy writes its line after its client is gone
    wait_for(lambda: {"401", "431"} <= statuses())
    traces = log.read_text()
    lines = [json.loads(line) for line in traces.splitlines()]
    assert not [line for line in lines if line["status"].startswith(("2", "3"))]
    assert all(line["from"] == "127.0.0.1" and line["request_id"] for line in lines)
    for text in (traces, (proxy.folder / "error.log").read_text()):
        assert "ck_canary" not in text
    assert "canary" not in traces


def test_what_the_proxy_refuses_is_on_the_closed_list() -> None:
    documents = re.findall(r"return (\d+) '(.*)';", CONFIGURATION)
    assert len(documents) == CONFIGURATION.count("error_page")
    for status, text in documents:
        document = json.loads(text)
        problem = Problem.from_slug(document["type"])
        said = (document["status"], document["title"], document["remedy"])
        assert said == (problem.status, problem.title, problem.remedy)
        assert int(status) == problem.status
        assert document.keys() >= {"detail", "request_id"}


def compose() -> list[str]:
    """The command: the plugin where there is one, or the program before it."""
    with suppress(OSError, subprocess.CalledProcessError):
        plugin = ["docker", "compose"]
        subprocess.run([*plugin, "version"], check=True, capture_output=True)
        return plugin
    return [program(COMPOSE)]


def test_the_compose_file_is_accepted_and_opens_one_port() -> None:
    found = subprocess.run(
        [*compose(), "--file", str(DOCKER / "compose.yaml"), "config"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    services = yaml.safe_load(found.stdout)["services"]
    on_demand = {name for name, service in services.items() if "profiles" in service}
    assert on_demand == {"prometheus"}
    usual = services.keys() - on_demand
    assert usual == {"database", "migrate", "analyst", "proxy"}
    assert [name for name in sorted(usual) if "ports" in services[name]] == ["proxy"]
    for name in ("database", "analyst"):
        assert list(services[name]["networks"]) == ["inside"]
    for service in services.values():
        assert service["logging"]["options"]["max-size"] == "10m"

    # what `docker inspect` shows of a container names the file of the password alone
    file = "/run/secrets/database-password"
    for name in ("database", "migrate", "analyst"):
        service = services[name]
        passwords = {k: v for k, v in service["environment"].items() if "PASSWORD" in k}
        assert set(passwords.values()) == {file}, name
        assert "database-password" in str(service["secrets"])
    analyst = services["analyst"]["environment"]
    assert make_url(analyst["COTERIE_DATABASE_URL"]).password is None
    assert "database-password" in (DOCKER.parent / ".dockerignore").read_text()
