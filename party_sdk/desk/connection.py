"""The analyst of a desk and the coordinator's key, in this process's memory alone."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Self

from party_sdk.home.secret_variables import read_secret_variable


@dataclass(frozen=True, slots=True)
class AnalystConnection:
    """Where an analyst is, and the key that opens sessions there.

    environment: whether the environment of the process gave them.
    """

    url: str
    key: str = field(repr=False)
    environment: bool = False


class Connection:
    """What is known so far: the environment's at first, then what a form says.

    It is written nowhere: it ends with the process.
    """

    def __init__(self, known: AnalystConnection | None = None) -> None:
        self.known = known

    @classmethod
    def read_environment(cls) -> Self:
        """Return what ``COTERIE_URL`` and ``COTERIE_KEY`` say, where both are set.

        Raises InvalidParameters if the file that ``COTERIE_KEY_FILE`` names is none.
        """
        url = os.environ.get("COTERIE_URL", "")
        key = read_secret_variable("COTERIE_KEY")
        return cls(
            AnalystConnection(url, key, environment=True) if url and key else None
        )

    def keep(self, url: str, key: str) -> None:
        """Know another analyst and key from now on."""
        self.known = AnalystConnection(url, key)

    def forget(self) -> None:
        """Know none."""
        self.known = None
