"""Whose invitations an inbox takes, and where these may lead.

Who may write into an inbox could otherwise have this machine knock at doors inside the
institution, with an invitation that a key drawn for that has signed.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from clustering_protocols.common.errors import GuardRefused
from coterie_http.public_addresses import is_public
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.home.addresses import host_of
from party_sdk.home.identities import Acquaintances
from party_sdk.home.policy_files import read_policy
from party_sdk.supervisor.rules import read_rules


def check_stranger(home: Path, invitation: Invitation) -> None:
    """Refuse an invitation of a stranger, or one that leads inside; nothing is asked.

    A coordinator is known by a trusted card, by ``coordinators`` or by ``[[orders]]`` of
    the policy. An address that is not public, or without TLS, has to stand in
    ``analysts`` of the policy.

    Raises GuardRefused.
    """
    policy, known = read_policy(home), Acquaintances(home).read()
    policy.check_inviter(invitation.url, invitation.coordinator, known)
    named = {*(policy.coordinators or ()), *(r.coordinator for r in read_rules(home))}
    keys = {*known.values(), *(known.get(name, name) for name in named)}
    if invitation.coordinator not in keys:
        raise GuardRefused(
            "its coordinator is not known here. Trust the coordinator's card (coterie "
            "identity trust), or add the key to 'coordinators' in policy.toml."
        )
    if not policy.names_analyst(invitation.url) and not _is_public(invitation.url):
        raise GuardRefused(
            f"it leads to {host_of(invitation.url)}, which is not a public address with "
            "TLS. Add the address to 'analysts' in policy.toml, if it is your analyst's."
        )


def _is_public(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        return False
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443)
    except (OSError, UnicodeError):
        return True  # it leads nowhere now: the order says so, and tries again
    return all(is_public(ip_address(str(each[4][0]))) for each in found)
