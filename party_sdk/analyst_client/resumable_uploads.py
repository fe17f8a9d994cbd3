"""A large contribution in pieces: after a broken line the analyst says how far it got.

Nothing is kept here. The analyst knows the upload by the party's token, round, attempt
and digest, so a party that was killed continues with the bytes that are on its disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from clustering_protocols.common.errors import (
    CoterieError,
    Internal,
    NotFound,
    OffsetMismatch,
    StorageFull,
    Timeout,
    TooManyRequests,
    Unavailable,
    VersionMismatch,
)
from coterie_http import resumption
from party_sdk.analyst_client.requests import content_digest
from party_sdk.analyst_client.retries import next_delay

_LEAST_PIECE: Final = 512 << 10
_LARGEST_PIECE: Final = 32 << 20
_PIECES: Final = 128  # ten cuts cost at most ten of them: 8 %

_PASSING: Final = (
    *(Unavailable, Internal, Timeout, TooManyRequests, StorageFull),
    *(OffsetMismatch, NotFound),  # it was swept, or somebody else sent a piece
)


@dataclass(kw_only=True)
class PiecewiseUpload:
    """One contribution on its way.

    send: sends a request with the party's token; raises the problem that is answered.
    path: of the upload.
    patience: seconds without a piece that comes through, after which to give up.
    on_resumed: called with the share that the analyst has, where the rest is sent now.
    """

    send: Callable[..., httpx.Response]
    path: str
    content: bytes
    patience: float
    on_resumed: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        size = len(self.content)
        self._piece = min(max(-(-size // _PIECES), _LEAST_PIECE), _LARGEST_PIECE)
        self._began = {
            resumption.COMPLETE: resumption.boolean(value=False),
            resumption.LENGTH: str(size),
            resumption.WHOLE_DIGEST: content_digest(self.content),
        }

    def send_all(self, headers: Mapping[str, str]) -> httpx.Response | None:
        """Send what the analyst does not have yet, and return its answer to the whole.

        None: this analyst takes no pieces, or none of this contribution.

        headers: more headers of the last request.

        Raises CoterieError: what one body would be refused with; or, once no piece came
            through for as long as the patience lasts, why the last one did not.
        """
        try:
            offset = self._begin()
        except (NotFound, Internal):  # an older release, or a proxy that knows the rest
            return None
        attempt, since = 0, time.monotonic()
        while True:
            if offset and self.on_resumed is not None and offset < len(self.content):
                self.on_resumed(offset / len(self.content))
            try:
                return self._send_from(offset, headers)
            except _PASSING as broken:
                why = broken
            before, offset = offset, self._begin()
            if offset > before:
                attempt, since = 0, time.monotonic()
            self._rest(attempt, since, why)
            attempt += 1

    def _begin(self) -> int:
        """Begin, or ask how far it got: the same request, however often."""
        answer = self.send("PUT", self.path, headers=self._began)
        limit = resumption.largest_piece(answer.headers)
        self._piece = min(self._piece, limit or self._piece)
        said = answer.headers.get(resumption.OFFSET, "")
        if not said.isdecimal() or int(said) > len(self.content):
            raise VersionMismatch(
                "The analyst does not say how far an upload has come."
            )
        return int(said)

    def _send_from(self, offset: int, headers: Mapping[str, str]) -> httpx.Response:
        while offset < len(self.content):
            piece = self.content[offset : offset + self._piece]
            self._patch(offset, piece, patience=0)
            offset += len(piece)
        return self._patch(offset, b"", headers, is_last=True)

    def _patch(
        self,
        offset: int,
        piece: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        is_last: bool = False,
        patience: float | None = None,
    ) -> httpx.Response:
        said = {
            "Content-Type": resumption.MEDIA_TYPE,
            resumption.PIECE_DIGEST: content_digest(piece),
            resumption.OFFSET: str(offset),
            resumption.COMPLETE: resumption.boolean(value=is_last),
            **(headers or {}),
        }
        return self.send(
            "PATCH", self.path, content=piece, headers=said, patience=patience
        )

    def _rest(self, attempt: int, since: float, why: CoterieError) -> None:
        elapsed = time.monotonic() - since
        delay = next_delay(attempt + 1, elapsed, self.patience, None, None)
        if delay is None:
            raise why
        if attempt:  # the first cut after a piece that came through is no bad sign
            time.sleep(delay)
