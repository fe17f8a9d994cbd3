"""A mapping is drafted from a table and a dictionary, for a person to complete."""

from party_sdk.tables.proposals.proposal import ColumnProposal, LevelProposal, Proposal
from party_sdk.tables.proposals.proposer import propose

__all__ = [
    "ColumnProposal",
    "LevelProposal",
    "Proposal",
    "propose",
]
