"""The match keys of a new session: proposed from one's own table, changed, tried on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from clustering_protocols.common.errors import CoterieError, InvalidData
from coterie_pages.models.fields import FormField
from coterie_pages.models.match_keys import KeyLine, KeysChoice
from party_sdk.desk.tables.match_keys import key_lines
from party_sdk.home.id_quota import describe_quota

if TYPE_CHECKING:
    from party_sdk.desk.coordinator.drafts import Draft
    from party_sdk.tables.linkage import KeyPreview

PROPOSE: Final = "keys"
"""What a form asks for, to have keys proposed of the table that it names."""
_TABLE: Final = "people"


def choose_keys(draft: Draft, field: FormField) -> KeysChoice:
    """Return the keys of a draft, tried on the table that it names.

    Where the draft asks for it, they are those that the table proposes.

    field: of the parameter.
    """
    keys: Sequence[str] = draft.match_keys
    lines: tuple[KeyLine, ...] = ()
    wrong, unread = "", field.wrong
    try:
        if draft.one(_TABLE):
            keys, lines = _try(draft, keys)
        elif draft.one("do") == PROPOSE:
            raise InvalidData("Name a table of your own: keys are proposed from it.")
    except CoterieError as error:
        wrong = error.detail
    except ValueError as error:
        unread = f"{error}."
    return KeysChoice(
        table=FormField(
            name=_TABLE,
            label="A table of your own with names and dates of birth",
            hint="Keys are proposed from its columns, and tried on its rows. Nothing of "
            "it goes into the terms but the keys.",
            value=draft.one(_TABLE),
            wrong=wrong,
        ),
        keys=field.model_copy(
            update={
                "kind": "long",
                "hint": f"One a line; the first counts first. {field.hint}",
                "limits": "",
                "usual": "",
                "value": "\n".join(keys),
                "wrong": unread,
            }
        ),
        lines=lines,
        needs=describe_quota(len(keys)),
    )


def _try(
    draft: Draft, keys: Sequence[str]
) -> tuple[Sequence[str], tuple[KeyLine, ...]]:
    from party_sdk.tables import How
    from party_sdk.tables.linkage import preview_of, propose_match_keys

    path = draft.path(draft.one(_TABLE))
    found: Sequence[KeyPreview]
    if draft.one("do") == PROPOSE:
        found = [each for each in propose_match_keys(path, How()) if each.serves]
        return [each.key for each in found], key_lines(found)
    return keys, key_lines(preview_of(path, How(), keys))
