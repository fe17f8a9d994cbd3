"""Restrict a party's process to the protocol packages that its policy names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustering_protocols.protocol_packages import use_packages, use_packages_by_default

if TYPE_CHECKING:
    from pathlib import Path

_homes: list[Path] = []


def read_named_packages() -> tuple[str, ...]:
    """Return the distributions named by the policy of this process's home.

    The home is that of ``--home``, or else the default home.

    Raises InvalidParameters if the policy cannot be read.
    """
    # imported here, because every command imports this module when it starts
    from party_sdk.home.files import default_home
    from party_sdk.home.policy_files import read_protocol_packages

    return read_protocol_packages(_homes[0] if _homes else default_home())


def use_home(home: Path | None) -> None:
    """Load the packages that the policy of this home names; None means the default home."""
    before, after = list(_homes), [] if home is None else [home]
    if before != after:
        _homes[:] = after
        use_packages(read_named_packages)


def offer_named_packages() -> None:
    """Let the home's policy choose the packages, unless the analyst's settings did."""
    use_packages_by_default(read_named_packages)
