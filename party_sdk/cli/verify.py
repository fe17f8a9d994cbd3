"""`coterie verify`: check the signed logs of an analyst and its parties."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated

from party_sdk.cli.options import FILE
from party_sdk.cli.parameters import argument, command, option
from party_sdk.cli.terminal.output import Output


@command()
def verify(
    files: Annotated[tuple[Path, ...], argument(type=FILE)],
    *,
    agreement: Annotated[
        Path | None,
        option(
            "The agreement of the session: signers must be those that it names.",
            type=FILE,
        ),
    ] = None,
) -> Output:
    """Check signed audits and ledgers, without the analyst or the parties.

    FILES are outputs of 'session audit --json' and 'party audit --json'. Each log must
    be signed and complete. If the analyst's audit is among the files, every receipt in
    a ledger must be signed by that analyst and appear in that audit. The agreement is
    part of what 'party status --json' prints, and of the zip file of 'session report'.
    """
    from clustering_protocols.terms.signed_logs import (
        SignedLog,
        check_log_key,
        compare_logs,
    )

    logs = [SignedLog.read(path.read_bytes()) for path in files]
    checked = []
    for log in logs:
        if agreement is not None:
            check_log_key(log, agreement.read_bytes())
        result = {
            "log": log.log,
            "session": log.session,
            "slot": log.slot,
            "lines": len(log.verified_entries()),
            "key": log.key,
        }
        if log.log == "ledger":
            audits = [
                audit
                for audit in logs
                if (audit.log, audit.session) == ("audit", log.session)
            ]
            result["receipts"] = sum(compare_logs(audit, log) for audit in audits)
            result["compared"] = bool(audits)
        checked.append(result)
    return Output(checked, chain.from_iterable(map(_log_lines, checked)))


def _log_lines(result: Mapping[str, object]) -> Iterator[str]:
    from clustering_protocols.secrecy.identities import fingerprint

    author = result["slot"] or "the analyst"
    yield f"{result['log']} of {author} in {result['session']}: {result['lines']} lines"
    yield f"  signed by {fingerprint(str(result['key']))}"
    if not result.get("compared", True):
        yield "  no audit of this session is among the files: no receipt was compared"
    if result.get("receipts"):
        yield f"  {result['receipts']} receipts are in the audit"
