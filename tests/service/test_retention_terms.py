"""An analyst opens no session whose signed terms are stricter than its settings."""

from __future__ import annotations

import pytest

from clustering_protocols import session_terms
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.retention import Retention
from clustering_protocols.terms.terms import Layout, read_terms

DAY = 86_400


@pytest.mark.parametrize(
    ("contributions", "session", "refused"),
    [
        (0, 30 * DAY, ""),
        (0, 7 * DAY, ""),
        (1, 30 * DAY, "keeps contributions"),
        (0, 31 * DAY, "keeps ended sessions"),
        (0, None, "for ever"),
    ],
)
def test_settings_that_keep_longer_are_refused(
    contributions: int, session: int | None, refused: str
) -> None:
    terms = Retention(session=30 * DAY)
    if not refused:
        terms.check_settings(contributions, session)
        return
    with pytest.raises(InvalidParameters, match=refused):
        terms.check_settings(contributions, session)


def test_terms_without_retention_have_the_bytes_of_before() -> None:
    request = session_terms.build_request(Dummy(), Layout.lattice(1), seed=1)
    text = session_terms.draw_up("study", request)
    assert b"retention" not in text
    assert b"roles" not in text
    kept = request.model_copy(update={"retention": Retention(session=DAY)})
    drawn = read_terms(session_terms.draw_up("study", kept))
    assert drawn.retention == Retention(session=DAY, contributions=0)
