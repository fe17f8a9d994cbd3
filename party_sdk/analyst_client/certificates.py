"""Error messages for TLS certificates that fail verification, each with a remedy."""

from __future__ import annotations

import ssl
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from clustering_protocols.common.errors import CertificateRefused

# Verification error codes of OpenSSL (X509_V_ERR_…)
_NOT_YET_VALID: Final = 9
_EXPIRED: Final = 10
_ANOTHER_HOST: Final = frozenset({62, 64})
_FETCH_SECONDS: Final = 5.0
_REMEDY: Final = "Tell the administrator of the analyst; nothing was sent."


def certificate_error(
    error: ssl.SSLCertVerificationError, host: str, port: int
) -> CertificateRefused:
    """Return an error that explains why the certificate of a host was refused.

    The verification error contains no dates, so an expired certificate is fetched once
    more without verification. Nothing else is sent to the host.
    """
    where = f"{host}:{port}"
    if error.verify_code == _EXPIRED:
        return CertificateRefused(_describe_expiry(host, port), remedy=_REMEDY)
    if error.verify_code == _NOT_YET_VALID:
        return CertificateRefused(
            f"The certificate of {where} is not valid yet.",
            remedy="Set this machine's clock from a time server (NTP). If it is right, "
            "tell the administrator of the analyst.",
        )
    if error.verify_code in _ANOTHER_HOST:
        return CertificateRefused(
            f"The certificate of {where} is for another name.",
            remedy="Check the address, or name the authority of your own proxy in "
            "COTERIE_CA_FILE. "
            "If the address is right, tell the administrator of the analyst.",
        )
    return CertificateRefused(
        f"{where} has a certificate from an authority that is not trusted here "
        f"({error.verify_message}).",
        remedy="If an institution's own authority issued it, or your proxy intercepts "
        "TLS, name that authority's PEM file in COTERIE_CA_FILE.",
    )


def _describe_expiry(host: str, port: int) -> str:
    from cryptography import x509  # imported here because it is rarely needed

    expiry = None
    with suppress(OSError, ValueError):
        pem = ssl.get_server_certificate((host, port), timeout=_FETCH_SECONDS)
        expiry = x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc
    if expiry is None or expiry > datetime.now(UTC):
        return (
            f"A certificate of {host}:{port} has expired: the analyst's own, or its "
            "authority's."
        )
    return f"The analyst's certificate expired on {expiry:%Y-%m-%d %H:%M} UTC ({host}:{port})."
