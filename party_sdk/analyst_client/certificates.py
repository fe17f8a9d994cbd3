"""Why the certificate of an analyst does not hold here, in a sentence with its remedy."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final

from clustering_protocols.common.errors import CertificateRefused

# OpenSSL's numbers of what a verification ends with (X509_V_ERR_…)
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_ANOTHER_HOST: Final = frozenset({62, 64})
_LOOK_SECONDS: Final = 5.0
_TELL: Final = "Tell the administrator of the analyst; nothing was sent."


def refusal(
    error: ssl.SSLCertVerificationError, host: str, port: int
) -> CertificateRefused:
    """Return what is wrong with the certificate that a host shows.

    Where the time is, the host is asked for the certificate once more, without being
    trusted: verification tells no dates. Nothing else is sent to it.

    error: what the verification ended with.
    """
    where = f"{host}:{port}"
    if error.verify_code == _EXPIRED:
        return CertificateRefused(_describe_expiry(host, port), remedy=_TELL)
    if error.verify_code == _NOT_YET_VALID:
        return CertificateRefused(
            f"The certificate of {where} is not valid yet.",
            remedy="Set this machine's clock by a time server (NTP). If it is right, tell "
            "the administrator of the analyst.",
        )
    if error.verify_code in _ANOTHER_HOST:
        return CertificateRefused(
            f"The certificate of {where} is for another name.",
            remedy="Check the address, or name the authority of your own proxy in "
            "COTERIE_CA_FILE. "
            "If the address is right, tell the administrator of the analyst.",
        )
    return CertificateRefused(
        f"{where} shows a certificate of an authority that is not trusted here "
        f"({error.verify_message}).",
        remedy="If it is of an institution's own authority, or your proxy opens TLS, name "
        "that authority's PEM file in COTERIE_CA_FILE.",
    )


def _describe_expiry(host: str, port: int) -> str:
    """Return when the certificate ended, or that another one that it rests on did."""
    ends = _end_of_shown(host, port)
    if ends is None or ends > datetime.now(UTC):
        return (
            f"A certificate that {host}:{port} shows has ended: the analyst's own, or one "
            "of its authority."
        )
    return (
        f"The analyst's certificate ended on {ends:%Y-%m-%d %H:%M} UTC ({host}:{port})."
    )


def _end_of_shown(host: str, port: int) -> datetime | None:
    """Return when the certificate that a host shows ends; None if it cannot be asked."""
    from cryptography import x509  # nobody else here needs it

    try:
        shown = ssl.get_server_certificate((host, port), timeout=_LOOK_SECONDS)
        return x509.load_pem_x509_certificate(shown.encode()).not_valid_after_utc
    except (OSError, ValueError):
        return None
