"""When the last backup ended: a file in the data folder, which all who serve it read.

No table: it is of one place alone, and what restores a backup is to know of none.
"""

from __future__ import annotations

from datetime import datetime

from analyst_service.settings import Settings


def note_backup(settings: Settings, at: datetime) -> None:
    """Note that a backup has ended.

    Raises OSError if the data folder cannot be written: the backup is whole
        nevertheless.
    """
    mark = settings.backup_mark
    fresh = mark.with_name(f"{mark.name}.new")
    fresh.write_text(at.isoformat(timespec="seconds"))
    fresh.replace(mark)


def last_backup(settings: Settings) -> datetime | None:
    """Return when the last backup ended; None where none is known."""
    try:
        return datetime.fromisoformat(settings.backup_mark.read_text())
    except (OSError, ValueError):
        return None
