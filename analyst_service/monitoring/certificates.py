"""When the certificate ends that parties are shown."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

SOON: Final = timedelta(days=14)
"""How long before its end a certificate should have been renewed."""


def end_of(path: Path) -> datetime:
    """Return when the certificate in a PEM file ends; of a chain, the first that does.

    Raises OSError, ValueError if the file cannot be read, or holds no certificate.
    """
    chain = x509.load_pem_x509_certificates(path.read_bytes())
    return min(each.not_valid_after_utc for each in chain)


def end_if_readable(path: Path | None) -> datetime | None:
    """Return the same; None without a file, or where it cannot be read."""
    try:
        return None if path is None else end_of(path)
    except (OSError, ValueError):
        return None


def describe_expiry(path: Path, ends: datetime, now: datetime) -> str:
    """Return what to say of a certificate that has ended or will soon; empty else."""
    if ends > now + SOON:
        return ""
    verb = "ended" if ends <= now else "ends"
    return (
        f"the certificate in {path} {verb} on {ends:%Y-%m-%d %H:%M} UTC; parties refuse it "
        "from then on. Renew it, and start again what shows it."
    )
