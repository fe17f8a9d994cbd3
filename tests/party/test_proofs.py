"""What analyst and parties sign convinces somebody who was not there, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from support.analyst_process import House
from support.in_process import Api, StartApi
from support.terminal import coterie

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    AuditBroken,
    GuardRefused,
    InvalidParameters,
    KeyNotAuthentic,
)
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import hash_chain
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms import signed_logs
from clustering_protocols.terms.signed_logs import SignedLog
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import receipt_headers, receipt_in
from party_sdk.analyst_client.http_analyst import HttpAnalyst
from party_sdk.home.identities import OwnIdentity

X = np.random.default_rng(0).normal(size=(40, 3))
PARTS = simulation.split(X, Layout.lattice(1), seed=1)
A = "r1c1"
STRANGER = Institution("", bytes(32))


class Finished(House):
    def __init__(self, api: Api, home: Path) -> None:
        super().__init__(api, home, fixed=False)
        self.analyst = api.service.institution
        self.session = self.open("wards", Dummy(), PARTS.layout)
        with self.parties(self.session)[A] as party:
            party.run(PARTS.data[A])
            self.folder = party.stored

    @property
    def audit(self) -> SignedLog:
        return self.session.audit()

    def sign(self, *lines: str) -> SignedLog:
        """Return lines as a ledger that the party has signed."""
        own = OwnIdentity(self.home_of(A)).load()
        return signed_logs.sign_ledger(own, "wards", A, lines)

    @property
    def ledger(self) -> SignedLog:
        return self.sign(*self.folder.ledger.verified_lines)

    @property
    def agreement(self) -> bytes:
        return self.folder.agreement or b""


@pytest.fixture(scope="module")
def finished(driven_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return Finished(driven_api, tmp_path_factory.mktemp("finished"))


def test_audit_and_ledger_are_signed_by_whom_the_agreement_names(
    finished: Finished,
) -> None:
    for log in (finished.audit, finished.ledger):
        assert log.verified_entries()
        signed_logs.check_log_key(log, finished.agreement)
    assert signed_logs.compare_logs(finished.audit, finished.ledger) == 5


def rewritten(log: SignedLog, **otherwise: str) -> tuple[str, ...]:
    """The same story told otherwise where it has such fields, as a chain that holds."""
    lines: list[str] = []
    for entry in log.verified_entries():
        said = {k: v for k, v in entry.items() if k not in {"number", "previous"}}
        said |= {name: otherwise[name] for name in otherwise if name in said}
        last = lines[-1] if lines else None
        lines.append(hash_chain.write(last, len(lines) + 1, said))
    return tuple(lines)


CHANGES: dict[str, Callable[[SignedLog], SignedLog]] = {
    "lines left out at the end": lambda log: log.model_copy(
        update={"lines": log.lines[:-1]}
    ),
    "a line that was never written": lambda log: log.model_copy(
        update={"lines": (*log.lines, "{}")}
    ),
    "another story": lambda log: log.model_copy(
        update={"lines": rewritten(log, at="never")}
    ),
    "another session": lambda log: log.model_copy(update={"session": "other"}),
    "another slot": lambda log: log.model_copy(update={"slot": "other"}),
    "an audit for a ledger": lambda log: log.model_copy(
        update={"log": "audit" if log.log == "ledger" else "ledger"}
    ),
    "another signer": lambda log: log.model_copy(update={"key": STRANGER.key}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_signed_cannot_be_told_otherwise(
    finished: Finished, change: Callable[[SignedLog], SignedLog]
) -> None:
    for log in (finished.audit, finished.ledger):
        lie = change(log)
        with pytest.raises(KeyNotAuthentic, match=f"did not sign this {lie.log}"):
            lie.verified_entries()


def test_a_ledger_signed_by_another_is_refused(finished: Finished) -> None:
    own = signed_logs.sign_ledger(STRANGER, "wards", A, finished.ledger.lines)
    assert own.verified_entries(), "the signature itself is right"
    with pytest.raises(KeyNotAuthentic, match="not signed with the key"):
        signed_logs.check_log_key(own, finished.agreement)


def test_files_of_two_sessions_accuse_nobody(finished: Finished) -> None:
    lines = finished.ledger.lines
    other = signed_logs.sign_ledger(STRANGER, "elsewhere", A, lines)
    with pytest.raises(InvalidParameters, match="use files of the same"):
        signed_logs.check_log_key(other, finished.agreement)
    with pytest.raises(InvalidParameters, match="use files of the same"):
        signed_logs.compare_logs(finished.audit, other)


def test_an_invented_receipt_accuses_no_analyst(finished: Finished) -> None:
    """A party that rewrites its own ledger can sign it, but no receipt in it."""
    lie = finished.sign(*rewritten(finished.ledger, digest="0" * 64))
    with pytest.raises(KeyNotAuthentic, match="did not sign this receipt"):
        signed_logs.compare_logs(finished.audit, lie)


def test_a_truncated_audit_contradicts_the_receipts(finished: Finished) -> None:
    cut = finished.audit.lines[:3]
    signed = signed_logs.sign_audit(finished.analyst, "wards", cut)
    log = signed_logs.build_signed_audit(cut, finished.analyst.key, signed)
    assert len(log.verified_entries()) == 3
    with pytest.raises(AuditBroken, match="A receipt names line"):
        signed_logs.compare_logs(log, finished.ledger)


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_an_audit_does_not_hold_for_another_session(
    finished: Finished, name: str
) -> None:
    lines = finished.audit.lines
    signed = signed_logs.sign_audit(finished.analyst, name, lines)
    log = finished.audit.model_copy(update={"session": name, "signature": signed})
    with pytest.raises(AuditBroken, match="another session"):
        log.verified_entries()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"session": None}, {"event": None}, {"round": 1}, {"round": "0"}),
        *({"at": at} for at in (None, 0, "0", "2026-03-01T00:00:00")),
    ],
    ids=str,
)
def test_an_audit_with_an_absent_or_wrong_field_is_broken(
    finished: Finished, wrong: dict[str, Any]
) -> None:
    line = {"session": "wards", "at": "2026-03-01T00:00:00Z", "event": "opened"}
    fields = {k: v for k, v in (line | wrong).items() if v is not None}
    lines = [hash_chain.write(None, 1, fields)]
    signed = signed_logs.sign_audit(finished.analyst, "wards", lines)
    log = finished.audit.model_copy(update={"lines": lines, "signature": signed})
    with pytest.raises(AuditBroken):
        log.verified_entries()


@pytest.mark.parametrize("name", ["at", "round", "digest", "size", "sequence", "entry"])
def test_a_receipt_that_lacks_a_field_is_broken(finished: Finished, name: str) -> None:
    receipt = finished.ledger.verified_entries()[2]
    assert receipt["event"] == "receipt"
    line = hash_chain.write(None, 1, {k: v for k, v in receipt.items() if k != name})
    with pytest.raises(AuditBroken, match="Line 1 lacks fields"):
        signed_logs.compare_logs(finished.audit, finished.sign(line))


def test_a_line_of_deep_brackets_is_broken() -> None:
    with pytest.raises(AuditBroken, match="Line 1"):
        list(hash_chain.read(["[" * 100_000]))


@pytest.mark.parametrize("signature", ["", "no signature"])
def test_an_audit_without_a_signature_is_none(
    finished: Finished, signature: str
) -> None:
    with pytest.raises(AuditBroken, match="no signed audit"):
        signed_logs.build_signed_audit(
            finished.audit.lines, finished.audit.key, signature
        )


def ledger_of(finished: Finished, receipt: Receipt) -> SignedLog:
    """A party's ledger of one receipt that the analyst did sign."""
    signed = signed_logs.sign_receipt(finished.analyst, receipt)
    said = signed.model_dump(mode="json", exclude={"session", "slot"})
    said |= {"event": "receipt", "at": "2026-03-01T00:00:00Z"}
    return finished.sign(hash_chain.write(None, 1, said))


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("field", ["digest", "round", "attempt", "entry", "sequence"])
def test_a_receipt_proves_an_analysts_false_audit(
    finished: Finished, field: str, change: int
) -> None:
    given = next(
        e for e in finished.ledger.verified_entries() if e["event"] == "receipt"
    )
    kept = {name: given[name] for name in Receipt.model_fields if name in given}
    receipt = Receipt(session="wards", slot=A, **kept)
    assert signed_logs.compare_logs(finished.audit, ledger_of(finished, receipt)) == 1
    value = getattr(receipt, field)
    other = value + change if isinstance(value, int) else "0f"[change > 0] * 64
    lie = ledger_of(finished, receipt.model_copy(update={field: other}))
    with pytest.raises(AuditBroken, match="differs from the line"):
        signed_logs.compare_logs(finished.audit, lie)


@pytest.mark.parametrize("signature", ["", "0" * 128, STRANGER.sign(b"receipt")])
def test_a_receipt_without_the_analysts_signature_is_no_receipt(
    start_api: StartApi, home: Path, signature: str
) -> None:
    """It was signed by somebody else, or by nobody."""

    def forge(request: httpx.Request, response: httpx.Response) -> httpx.Response:
        if not request.url.path.endswith("/contribution"):
            return response
        told = json.loads(receipt_in(response.headers) or b"{}")
        forged = Receipt.model_validate({**told, "signature": signature})
        response.headers.update(receipt_headers(forged))
        return response

    with start_api(driven=True) as api:
        wire = api.wire()
        wire.after = forge
        with api.open(Dummy(), PARTS).accept(A, home, wire, patience=0) as party:
            with pytest.raises(KeyNotAuthentic, match="did not sign this receipt"):
                party.run(PARTS.data[A])
            events = [
                entry["event"] for entry in party.stored.ledger.verified_entries()
            ]
    assert events == ["joining", "sending"]


def test_an_analyst_with_a_changed_key_opens_no_session(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = finished.audit.key
    monkeypatch.setattr(HttpAnalyst, "identity", lambda _: STRANGER.key)
    with pytest.raises(GuardRefused, match="--new-analyst"):
        finished.coordinator.create_session("b", Dummy(), PARTS.layout)
    assert finished.session.audit().key == honest, "the terms say who signs"


def test_an_analyst_opens_no_session_whose_terms_name_another(api: Api) -> None:
    body = {
        "protocol": {"name": "dummy", "params": {}},
        "layout": PARTS.layout.model_dump(mode="json"),
        "identities": {"analyst": STRANGER.key},
    }
    refused = api.send("PUT", "/v1/sessions/s", api.key(), json=body)
    assert refused.status_code == 422
    assert "another analyst" in refused.json()["detail"]


def test_anybody_can_check_both_files_without_analyst_or_party(
    finished: Finished, tmp_path: Path
) -> None:
    given = {"audit": finished.audit, "ledger": finished.ledger}
    paths = {name: tmp_path / f"{name}.json" for name in given}
    for name, log in given.items():
        paths[name].write_text(log.model_dump_json())
    agreement = tmp_path / "agreement.json"
    agreement.write_bytes(finished.agreement)
    alone = coterie("verify", paths["ledger"])
    assert "no receipt was compared" in alone.stdout
    words = ("verify", *paths.values(), "--agreement", agreement)
    assert "5 receipts are in the audit" in coterie(*words).stdout
    found = json.loads(coterie(*words, "--json").stdout)
    assert [each["log"] for each in found] == ["audit", "ledger"]
    text = paths["ledger"].read_text()
    for wrong, code in ((text.replace("sending", "Sending"), 3), ("surprise", 5)):
        paths["ledger"].write_text(wrong)
        coterie(*words, expect=code)
