"""What people at home call the clusters of a session: 'SIDD' for cluster 3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clustering_protocols.common.errors import InvalidParameters
from party_sdk.home.encryption import SecretFiles

LONGEST: Final = 40
_FILE: Final = "cluster-names.json"
_REMEDY: Final = "Name a cluster by its number: --name 3=SIDD; --name 3= takes it back."


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """The names that a party keeps in its folder; nobody else reads them."""

    folder: Path
    files: SecretFiles

    def read(self) -> tuple[str, ...]:
        """Return the name of each cluster, '' for none; empty where no name is kept."""
        path = self.folder / _FILE
        if not path.exists():
            return ()
        kept = {int(k): v for k, v in json.loads(self.files.read(path)).items()}
        return tuple(kept.get(c, "") for c in range(1 + max(kept, default=-1)))

    def change(self, names: Mapping[int, str], n_clusters: int) -> tuple[str, ...]:
        """Keep new names beside the others, and return all; an empty one is taken back.

        Raises InvalidParameters if a cluster does not exist, a name is no line of 1 to
            40 printable characters, or two clusters have the same.
        """
        kept = dict(enumerate(self.read()))
        for cluster, name in names.items():
            if not 0 <= cluster < n_clusters:
                raise InvalidParameters(
                    f"There is no cluster {cluster}: they are 0 to {n_clusters - 1}.",
                    remedy=_REMEDY,
                )
            if len(name) > LONGEST or not name.isprintable():
                raise InvalidParameters(
                    f"A name has 1 to {LONGEST} printable characters; that of cluster "
                    f"{cluster} has others, or {len(name)}.",
                    remedy=_REMEDY,
                )
            kept[cluster] = name.strip()
        given = {c: name for c, name in kept.items() if name}
        if len(set(given.values())) < len(given):
            raise InvalidParameters("Two clusters have the same name.", remedy=_REMEDY)
        self.files.write(self.folder / _FILE, json.dumps(given).encode())
        return self.read()
