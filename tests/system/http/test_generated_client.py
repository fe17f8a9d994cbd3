"""A client that another tool makes of the OpenAPI document, through a whole session.

Protocol mathematics and keys are ours; whatever speaks HTTP is generated.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from support.in_process import Api, InProcess

from clustering_protocols import engine, simulation
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.records.codec import MEDIA_TYPE
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.http_headers import digest_field

PARAMS = DataCollaboration(n_clusters=3, scaling="center", dimensions="all_but_one")
LAYOUT = Layout.lattice(2, 1)
X = np.random.default_rng(0).normal(size=(60, 4)) + np.repeat(np.eye(3, 4) * 9, 20, 0)
PARTS = simulation.split(X, LAYOUT, seed=1)
NAME = "generated_analyst_client"


@pytest.fixture
def generated(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generated:
    document = tmp_path / "openapi.json"
    document.write_text(api.send("GET", "/openapi.json").text)
    config = tmp_path / "config.json"
    overrides = {MEDIA_TYPE: "application/octet-stream"}
    config.write_text(
        json.dumps({"post_hooks": [], "content_type_overrides": overrides})
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate"),
            *("--path", document, "--config", config, "--meta", "none"),
            *("--output-path", tmp_path / NAME),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "WARNING" not in done.stdout + done.stderr
    monkeypatch.syspath_prepend(tmp_path)
    return Generated(api)


def announce_digest(request: httpx.Request) -> None:
    """Add the digest of a contribution, which generated code does not compute."""
    if request.headers.get("content-type") == MEDIA_TYPE:
        digest = sha256(request.read()).hexdigest()
        request.headers["Content-Digest"] = digest_field(digest)


class Generated:
    """The generated package, and its client in the name of somebody."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def call(self, operation: str, secret: str | None, *args: Any, **body: Any) -> Any:
        """Call one operation; its answer, parsed by the generated code."""
        package = importlib.import_module(f"{NAME}.client")
        client = package.Client(base_url="http://127.0.0.1")
        bearer = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        http = httpx.Client(
            base_url="http://127.0.0.1",
            transport=InProcess(self.api.app, self.api.portal),
            headers=bearer,
            event_hooks={"request": [announce_digest]},
        )
        module = importlib.import_module(f"{NAME}.api.{operation}")
        answer = module.sync_detailed(
            *args, client=client.set_httpx_client(http), **body
        )
        assert answer.status_code < 300, answer.content
        return answer

    def model(self, name: str, value: dict[str, Any]) -> Any:
        return getattr(importlib.import_module(f"{NAME}.models"), name).from_dict(value)

    def file(self, content: bytes) -> Any:
        return importlib.import_module(f"{NAME}.types").File(BytesIO(content))


class Stranger:
    """A party without our SDK."""

    def __init__(self, generated: Generated, slot: str, code: str) -> None:
        shown = generated.model("CodeWrite", {"code": code})
        preview = generated.call("members.preview", None, body=shown).parsed
        terms = preview.terms.encode()
        self.generated, self.slot = generated, slot
        self.data = PARTS.data[slot]
        keys = simulation.derive_entropies(7, "s", LAYOUT.names)
        self.entropy = keys[slot]
        member = simulation.enrol(terms, slot, keys, self.data)
        body = generated.model(
            "JoinWrite",
            {
                "code": code,
                "member": member.model_dump(mode="json"),
                "proof": roster_entries.sign_join(self.entropy, "s", member, code, 0),
            },
        )
        self.token = generated.call("members.join", None, body=body).parsed.token
        self.journal, self.memory = engine.Journal(), Memory()

    @property
    def engine(self) -> engine.PartyEngine:
        told = self.generated.call("sessions.get_agreement", self.token, "s")
        return engine.PartyEngine(
            agreement=told.content, slot=self.slot, entropy=self.entropy
        )

    def answer(self) -> None:
        task = self.generated.call("rounds.get_task", self.token, "s").content
        answer = self.engine.reply(self.journal, self.memory, task, self.data)
        self.journal, self.memory = answer.journal, answer.memory
        address = packets.parse(task).header.address
        sent = self.generated.call(
            "rounds.put_contribution",
            self.token,
            *("s", address.round, address.attempt),
            body=self.generated.file(answer.contribution),
        )
        assert sent.parsed.slot == self.slot

    def labels(self) -> Any:
        result = self.generated.call("results.get_result", self.token, "s").content
        known = (self.journal, self.memory)
        return self.engine.conclude(*known, result, self.data).labels


def test_a_generated_client_takes_part_in_dc_from_start_to_end(
    generated: Generated,
) -> None:
    api, key = generated.api, generated.api.key()
    terms = {
        "protocol": {"name": "dc", "params": PARAMS.model_dump(mode="json")},
        "layout": LAYOUT.model_dump(mode="json"),
    }
    body = generated.model("SessionWrite", terms)
    generated.call("sessions.put_session", key, "s", body=body)
    everyone = generated.model("InvitationWrite", {"slots": None})
    told = generated.call("members.post_invitations", key, "s", body=everyone)
    parties = [
        Stranger(generated, slot, told.parsed.codes[slot]) for slot in LAYOUT.names
    ]
    api.turn()
    while _state(generated, key) == "collecting":
        for party in parties:
            party.answer()
        api.turn()
    assert _state(generated, key) == "completed"
    simulated = simulation.run(PARAMS, LAYOUT, PARTS.data, 0)
    for party in parties:
        expected = simulated.outcomes[party.slot].labels
        assert _same_partition(party.labels(), expected)


def _state(generated: Generated, key: str) -> str:
    found: str = generated.call("sessions.get_session", key, "s").parsed.state
    return found


def _same_partition(a: Any, b: Any) -> bool:
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})
