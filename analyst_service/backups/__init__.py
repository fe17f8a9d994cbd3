"""A backup: what the database says, every blob that it names, and the analyst's key.

The form depends on no database, so what was SQLite may become PostgreSQL: a line of JSON
for each row, with bytes in base64 and times in UTC.

    manifest.json             release, revision, time, the analyst's public key, each table
                              with its rows and SHA-256, the digest of every blob
    manifest.sig              the analyst's signature under these bytes
    tables/NAME.jsonl
    blobs/ab/abcd…
    identity.json             the analyst's key, unless it is kept apart

An encrypted backup has the same files, each in the form of age and under a name that
ends in ``.age``.
"""

from collections.abc import Callable


class BackupFailed(Exception):
    """A backup could not be made, or is not used; the text says why, and shows no row."""


OnProgress = Callable[[int, int], None]
"""Called with the number of blobs that are copied, and of all."""
