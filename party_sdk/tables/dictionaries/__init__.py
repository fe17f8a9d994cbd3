"""Dictionaries: drafted from a table, written by people row by row, and read."""

from party_sdk.tables.dictionaries.dictionary_draft import DictionaryDraft
from party_sdk.tables.dictionaries.inference import infer, read_draft, read_schema
from party_sdk.tables.dictionaries.variables import Variable, parse_bounds

__all__ = [
    "DictionaryDraft",
    "Variable",
    "infer",
    "parse_bounds",
    "read_draft",
    "read_schema",
]
