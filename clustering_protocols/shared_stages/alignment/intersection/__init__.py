"""Stage: rows with common ids, by private set intersection within each row group.

The leader of a row group holds a key; the members have their ids evaluated under it
without showing them (:mod:`clustering_protocols.secrecy.ristretto`), in envelopes that
the analyst cannot open. Everybody sends tokens, hashes of id and value: equal tokens are
equal ids, and without the key nobody can tell which id a token stands for. The analyst
says which tokens are common. Common rows are put in the order of their tokens, and a
keyed digest of their ids shows that all of a row group have selected the same.

A leader evaluates once, and for each member at most as many ids as the rows with
which it joined. A row group of one slot keeps all rows.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `blind` → `counted` | `blinded-ids` from members to leaders |
| 2 | `evaluate` → `evaluated` (leaders) | `answers` from leaders to members |
| 3 | `unblind` → `shown` (members) | |
| 4 | `select` → `digests` | |
"""

from __future__ import annotations

from clustering_protocols.contract import Exchange, Stage
from clustering_protocols.shared_stages.alignment.digests import Digests
from clustering_protocols.shared_stages.alignment.params import Alignment

from . import messages
from .analyst import IntersectionAnalyst
from .party import IntersectionParty

NAME = "intersection"


def stage(alignment: Alignment) -> Stage:
    """Return the stage; it needs the secrets of row and column groups."""
    return Stage(
        name=NAME,
        analyst=lambda: IntersectionAnalyst(alignment),
        party=lambda: IntersectionParty(alignment),
        exchanges=(
            Exchange(messages.Blind, messages.IdCount),
            Exchange(messages.Evaluate, messages.EvaluatedTokens),
            Exchange(messages.Unblind, messages.PartyTokens),
            Exchange(messages.Select, Digests, own=("common",)),
        ),
        envelopes=(
            messages.BlindedIds,
            messages.EvaluatedIds,
            Digests,
        ),
    )
