"""A real object store: one monitor, one daemon that keeps objects in memory, a gateway.

Ceph's own programs from the packages ceph-mon, ceph-osd, radosgw and ceph-common, on the
loopback interface, in a folder of their own; they end by their process ids.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import httpx
import obstore
from obstore.store import S3Store
from support.analyst_process import free_port, wait_for
from support.needs import CEPH, leave_out

KEY, SECRET, BUCKET = "COTERIETESTKEY", "coterie-test-secret", "coterie"
_PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph")

_CONFIGURATION = """
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{monitor}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = {folder}/run
admin socket = {folder}/run/$cluster-$name.asok
log file = {folder}/$name.log
keyring = {folder}/keyring
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
osd objectstore = memstore
memstore device bytes = {n_bytes}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 1000
mon data avail crit = 1
rgw frontends = beast endpoint=127.0.0.1:{gateway}
client mount timeout = 20
setuser match path =
"""


class Ceph:
    """A store under S3's interface; its gateway can be killed and started again."""

    def __init__(self, folder: Path, n_bytes: int) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        for name in ("mon", "osd", "rgw", "run"):
            (folder / name).mkdir(parents=True)
        self._fsid, self._monitor = str(uuid.uuid4()), free_port()
        (folder / "ceph.conf").write_text(
            _CONFIGURATION.format(
                folder=folder,
                fsid=self._fsid,
                monitor=self._monitor,
                gateway=self.port,
                n_bytes=n_bytes,
            )
        )
        self._gateway: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What an analyst is told to find the store."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "default",
            "AWS_ALLOW_HTTP": "true",
        }

    @property
    def address(self) -> str:
        """The bucket, as ``COTERIE_BLOB_STORE`` names it."""
        return f"s3://{BUCKET}"

    def said(self, *words: str) -> str:
        """Run a program of Ceph to its end."""
        done = subprocess.run(
            [words[0], "-c", str(self._folder / "ceph.conf"), *words[1:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def _running(self, *words: str) -> subprocess.Popen[bytes]:
        command = [words[0], "-c", str(self._folder / "ceph.conf"), "-f", *words[1:]]
        with (self._folder / f"{words[0]}.out").open("ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=out)

    def start_store(self) -> Iterator[subprocess.Popen[bytes]]:
        """Start monitor and daemon, one after the other."""
        ring, own = str(self._folder / "keyring"), str(self._folder / "osd.keyring")
        fresh = ("ceph-authtool", "--create-keyring", "--gen-key")
        _run(*fresh, ring, "-n", "mon.", *_caps("mon"))
        _run("ceph-authtool", "--gen-key", ring, "-n", "client.admin",
             *_caps("mon", "osd", "mgr"))  # fmt: skip
        place, chart = f"[v2:127.0.0.1:{self._monitor}]", str(self._folder / "monmap")
        _run(
            "monmaptool", "--create", "--addv", "a", place, "--fsid", self._fsid, chart
        )
        maps = ("--monmap", chart, "--keyring", ring)
        self.said("ceph-mon", "--mkfs", "-i", "a", *maps)
        yield self._running("ceph-mon", "-i", "a")
        osd = str(uuid.uuid4())
        self.said("ceph", "osd", "new", osd)
        _run(*fresh, own, "-n", "osd.0")
        rights = ("osd", "allow *", "mon", "allow profile osd")
        self.said("ceph", "auth", "add", "osd.0", *rights, "-i", own)
        _run("ceph-authtool", ring, "--import-keyring", own)
        self.said("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        yield self._running("ceph-osd", "-i", "0")
        wait_for(lambda: " 1 up" in self.said("ceph", "osd", "stat"), 60)

    def start_gateway(self) -> None:
        """Start the gateway, and wait until it answers."""
        words = ("-n", "client.admin", f"--rgw-data={self._folder / 'rgw'}")
        self._gateway = self._running("radosgw", *words)
        wait_for(self._answers, 120)

    def kill_gateway(self) -> None:
        """Kill the gateway within whatever it does."""
        if self._gateway is not None:
            self._gateway.send_signal(signal.SIGKILL)
            self._gateway.wait(30)
            self._gateway = None

    def make_user(self) -> None:
        """Let there be a user with a bucket."""
        keys = (f"--access-key={KEY}", f"--secret-key={SECRET}")
        name = ("--uid=coterie", "--display-name=coterie")
        self.said("radosgw-admin", "user", "create", *name, *keys)

    def make_bucket(self) -> None:
        """Let there be the bucket, as empty as its name."""
        bucket = S3Store(
            BUCKET,
            endpoint=self.url,
            access_key_id=KEY,
            secret_access_key=SECRET,
            region="default",
            client_options={"allow_http": True},
        )
        there = obstore.sign(bucket, "PUT", "", timedelta(minutes=5))
        assert httpx.put(there, timeout=60).status_code == 200

    def limit(self, n_bytes: int) -> None:
        """Let the user's objects take so much room; -1 for any."""
        scope = ("--quota-scope=user", "--uid=coterie")
        self.said("radosgw-admin", "quota", "set", *scope, f"--max-size={n_bytes}")
        self.said("radosgw-admin", "quota", "enable", *scope)

    def _answers(self) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(self.url, timeout=5).status_code == 200
        return False


def _caps(*which: str) -> list[str]:
    return [word for each in which for word in ("--cap", each, "allow *")]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@contextmanager
def ceph(folder: Path, n_bytes: int = 1 << 30) -> Iterator[Ceph]:
    """Run a store with an empty bucket; without Ceph's programs the test is left out."""
    missing = [each for each in _PROGRAMS if shutil.which(each) is None]
    if missing:
        leave_out(CEPH, f"{', '.join(missing)} is not installed")
    with ExitStack() as stack:
        store = Ceph(folder, n_bytes)
        for process in store.start_store():
            stack.callback(_end, process)
        stack.callback(store.kill_gateway)
        store.make_user()
        store.start_gateway()
        store.make_bucket()
        yield store


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(30)
