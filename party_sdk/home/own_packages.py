"""Restrict a party's process to the protocol packages that its policy names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustering_protocols.protocol_packages import use_packages, use_packages_by_default

if TYPE_CHECKING:
    from pathlib import Path


def use_home(home: Path | None) -> None:
    """Load the packages that the policy of this home names; None means the default home."""
    use_packages(lambda: _read_packages(home))


def offer_named_packages() -> None:
    """Let the home's policy choose the packages, unless the analyst's settings did."""
    use_packages_by_default(lambda: _read_packages(None))


def _read_packages(home: Path | None) -> tuple[str, ...]:
    # imported here, because every command imports this module when it starts
    from party_sdk.home.files import default_home
    from party_sdk.home.policy_files import read_protocol_packages

    return read_protocol_packages(home or default_home())
