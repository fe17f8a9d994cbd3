"""Claims on blobs: a blob that is about to be named is not removed meanwhile.

Blobs are content-addressed and belong to nobody, so an upload may bring the very bytes
that the sweep is removing. Who commits a row that names a digest, and who removes a
blob, claims the digest first and holds the claim until its transaction ends: the one
then sees what the other did. On SQLite write transactions exclude each other already.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction


def claim(transaction: Transaction, digests: Iterable[str]) -> None:
    """Claim digests until the transaction ends; waits for other claims on them."""
    if transaction.connection().dialect.name != "postgresql":
        return  # to connect is to begin
    keys = sorted({int(digest[:16], 16) - (1 << 63) for digest in digests})
    transaction.execute(_CLAIM, {"keys": keys})


# in one order for all: claims that wait for each other could wait in a circle
_CLAIM = sa.text(
    "SELECT pg_advisory_xact_lock(key) FROM unnest(CAST(:keys AS bigint[])) AS each(key)"
)
