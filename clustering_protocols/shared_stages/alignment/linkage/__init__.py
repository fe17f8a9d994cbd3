"""Stage: rows of the same people, linked by match keys within each row group.

The parties of a row group stand in a ring, in the order of their slots. Each masks the
values of its match keys under a key of its own, in an order of its own, and seals them to
the next party, which masks them again. The last one in the ring hashes what all have
masked into tokens. Nobody reads tokens of its own rows, and no party can test a guess
without all others: not the first, and not together with the analyst. Each list goes
round once, and holds as many values as its party has rows, for each key.

The analyst links the rows of the leader to those of each other party: by the first key
on which two rows agree, the rows of earlier keys left out. It tells each party which of
its rows take part, and not by which key. Nobody checks these links: cells of one person
differ between tables, so that the parties have nothing to compare.

| round | task → contribution | envelopes |
|---|---|---|
| 1 | `mask-keys` → `keys-masked` | `masked-keys` to the next party |
| of each party beyond two | `pass-keys` → `keys-passed` | `masked-keys` to the next |
| then | `show-tokens` → `key-tokens` | |
| last | `select-linked` → `digests` | |
"""

from __future__ import annotations

from clustering_protocols.contract import Exchange, Stage
from clustering_protocols.shared_stages.alignment.digests import Digests
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.terms.terms import Layout

from . import messages
from .analyst import LinkageAnalyst
from .party import LinkageParty
from .rings import n_passes

NAME = "linkage"


def stage(alignment: Alignment, layout: Layout) -> Stage:
    """Return the stage; it needs the secrets of row and column groups."""
    passes = n_passes(layout)
    passing = Exchange(messages.PassKeys, messages.KeysPassed, passes, passes)
    return Stage(
        name=NAME,
        analyst=lambda: LinkageAnalyst(alignment),
        party=lambda: LinkageParty(alignment),
        exchanges=(
            Exchange(messages.MaskKeys, messages.KeysMasked),
            *([passing] if passes else []),
            Exchange(messages.ShowTokens, messages.KeyTokens),
            Exchange(messages.SelectLinked, Digests, own=("rows",)),
        ),
        envelopes=(messages.MaskedKeys, Digests),
    )
