"""Write invitations, each with a letter, as files that a coordinator hands over."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final

from clustering_protocols.common.errors import InvalidParameters, InvitationUnreadable
from party_sdk.home.files import create_private_folder, write_private
from party_sdk.home.policy import count_match_keys, explain_quota, quota_options

if TYPE_CHECKING:
    from clustering_protocols.terms.terms import Terms

_MARKS: Final = re.compile(r"[\\`*_\[<~]")
"""Characters that start Markdown within a line: emphasis, links, HTML, escapes."""

_WIDTH: Final = 90
_LETTER: Final = """\
# {title}

You are invited to take part as **{place}**.

{facts}
- Please join within {days} days.

With this letter comes the file `{file}`. It is a secret: anyone who has it can take your
place. It should not reach you through the analyst.

Coterie is a Python package: `pip install 'coterie[{extras}]'`. You can take part in a browser or
by commands. In a browser: `coterie ui` opens a page on your own machine, which takes the text of
`{file}`. By commands:

1. Read who learns what, and every risk. None of your data is read or sent:

       coterie party terms {file}

2. See whether your table fits, still without sending anything:

       coterie party check {file} --data TABLE

3. Take part. Your rows stay with you:

       coterie party run {file} --data TABLE{quota}
{reason}
If you would rather not, `coterie party leave` tells the coordinator why.
"""


def prepare_letter_folder(
    folder: Path, slots: Iterable[str], url: str = "", terms: Terms | None = None
) -> None:
    """Check that invitations can be written to a folder; create it if it is missing.

    url: the analyst's address.
    terms: the terms of the session, whose earlier invitations and letters may be
        replaced; None if there are none yet.

    Raises InvalidParameters if the folder cannot be created or written, or if it has
        other files of these names.
    """
    if not os.path.lexists(folder):
        create_private_folder(folder)
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidParameters(
            f"Invitations cannot be written to {folder}: {error.strerror}."
        ) from None
    for slot in slots:
        for path in _letter_paths(folder, slot):
            if path.exists() and not (terms and _is_file_of(path, slot, url, terms)):
                raise InvalidParameters(
                    f"{folder} already contains {path.name}, perhaps of another "
                    "session: choose another folder for the invitations."
                )


def write_letters(folder: Path, terms: Terms, invitations: Mapping[str, str]) -> None:
    """Write ``SLOT.invitation`` and ``SLOT.md`` for each slot, with file mode 0600.

    folder: a folder that :func:`prepare_letter_folder` has checked.
    """
    for slot, invitation in invitations.items():
        invitation_path, letter_path = _letter_paths(folder, slot)
        write_private(invitation_path, f"{invitation}\n".encode())
        write_private(letter_path, compose_letter(terms, slot).encode())


def compose_letter(terms: Terms, slot: str) -> str:
    """Compose the letter to the party of a slot, as Markdown without secrets.

    Texts from the terms are escaped, so they cannot add a link, picture or heading.
    """
    from clustering_protocols.session_terms import check_terms
    from clustering_protocols.shared_stages.row_selection import shares_rows
    from clustering_protocols.terms.captions import captioned_texts

    seat, n_keys = terms.layout.slot(slot), count_match_keys(terms, slot)
    reason = explain_quota(n_keys)
    texts = {
        caption.letter or caption.label: text
        for caption, text in captioned_texts(terms.about)
    }
    if schema := terms.dictionary_of(slot):
        texts["Columns of your table"] = "; ".join(
            f"{field.name}{f' ({field.unit})' if field.unit else ''}"
            for field in schema.used.fields
        )
    texts["Method"] = f"{terms.protocol.name}, with {len(terms.layout.slots)} parties"
    extras, params = ["ui"], check_terms(terms)
    if shares_rows(terms, slot) and params.selects_rows:
        extras += ["psi", "linkage"] if params.linking_keys else ["psi"]
    facts = "\n".join(
        f"- {name}: {_escape_markdown(text)}" for name, text in texts.items() if text
    )
    return _LETTER.format(
        title=_escape_markdown(terms.title),
        place=_escape_markdown(seat.title or slot),
        facts=facts,
        days=f"{terms.deadlines.recruiting / 86_400:.3g}",
        file=f"{slot}.invitation",
        extras=",".join(extras),
        quota="".join(f" {word}" for word in quota_options(n_keys)),
        reason=f"\n{textwrap.fill(reason, _WIDTH)}\n" if reason else "",
    )


def _letter_paths(folder: Path, slot: str) -> tuple[Path, Path]:
    return folder / f"{slot}.invitation", folder / f"{slot}.md"


def _is_file_of(path: Path, slot: str, url: str, terms: Terms) -> bool:
    """Return whether a file is the invitation or the letter for a slot of a session."""
    from party_sdk.analyst_client.invitations import Invitation

    try:
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            return text == compose_letter(terms, slot)
        invitation = Invitation.parse(text)
    except (OSError, ValueError, InvitationUnreadable):
        return False
    return (invitation.url, invitation.session) == (url, terms.session)


def _escape_markdown(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
