"""Text of spec/example.md: a recorded session, decoded."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from benchmarks.vectors.form import RecordedSession, SessionFile
from clustering_protocols.engine import packets
from clustering_protocols.engine.packets import Packet
from clustering_protocols.records import hash_chain

_SHOWN: Final = 32
_HEAD: Final = """# A session, read

Written by `python -m benchmarks.spec` from [vectors/sessions](vectors/sessions): the first
session of `dummy`, as slot `{slot}` knows it. Nothing of it is part of the specification.
Arrays of bytes are not shown; text in hex and base64 is cut short.
"""


def write_example(file: SessionFile) -> str:
    """Return the page of the first session of a file."""
    session = file.sessions[0]
    opening = session.steps[0].input
    return "\n".join(
        [
            _HEAD.format(slot=opening["slot"]),
            *_describe_opening(opening),
            *_describe_steps(session),
        ]
    )


def _describe_opening(opening: dict[str, Any]) -> Iterator[str]:
    agreement = json.loads(opening["agreement"])
    yield from _block("Invitation (section 4)", opening["invitation"], "text")
    yield from _block("Terms (section 4)", json.loads(opening["terms"]))
    yield from _block("The party's member of the roster (section 5)", opening["own"])
    lines = [member["slot"] for member in agreement["roster"]]
    shown = {"terms": "as above, as text", "roster": lines}
    yield from _block("Agreement (section 5): the roster has these members", shown)


def _describe_steps(session: RecordedSession) -> Iterator[str]:
    for step in session.steps[1:]:
        sent = _read(step.input.get("task") or step.input["result"])
        yield f"## {step.name}\n"
        yield from _block("Sent to the party", _describe(sent))
        yield from _block("Its last line (section 7)", json.loads(sent.history[-1]))
        yield f"The transcript is `{_cut(hash_chain.digest(sent.history[-1]))}`.\n"
        output = step.output or {}
        if "labels" in output:
            yield from _block("Labels, in the order of the table", output["labels"])
        else:
            answer = _describe(_read(output["contribution"]))
            yield from _block("The contribution", answer)


def _read(text: str) -> Packet:
    return packets.parse(base64.b64decode(text))


def _describe(packet: Packet) -> dict[str, Any]:
    """Return header and record of a packet."""
    header = packet.header.model_dump(mode="json")
    arrays = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in packet.arrays.items()
    }
    return {"header": header, "record": packet.header.record, "arrays": arrays}


def _block(title: str, content: Any, language: str = "json") -> Iterator[str]:
    shown = content
    if language == "json":
        shown = json.dumps(_shorten(content), indent=1, ensure_ascii=False)
    yield f"{title}:\n\n```{language}\n{shown}\n```\n"


def _shorten(value: Any) -> Any:
    """Return JSON values with long texts cut short."""
    if isinstance(value, dict):
        return {name: _shorten(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shorten(each) for each in value]
    return _cut(value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN or " " in text else f"{text[: _SHOWN // 2]}…"
