"""An analyst opens no session whose signed terms are stricter than its settings."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result
from support.in_process import Api

from analyst_service.sessions.retention import strictest_retention
from analyst_service.storage.models import Session
from clustering_protocols import session_terms, simulation
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.terms.retention import Retention
from clustering_protocols.terms.terms import Layout, read_terms
from party_sdk.cli import main

DAY = 86_400
PARTS = simulation.split(
    np.random.default_rng(0).normal(size=(40, 3)), Layout.lattice(2), seed=1
)


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


# At a start


def serve(api: Api, **seconds: int) -> Result:
    """Run `coterie serve` up to where it would begin to answer."""
    settings = api.service.settings
    return CliRunner().invoke(
        main,
        ["serve"],
        env={
            "COTERIE_DATA_DIR": str(settings.data_dir),
            "COTERIE_DATABASE_URL": settings.database_url,
            **{f"COTERIE_{name.upper()}": str(n) for name, n in seconds.items()},
        },
    )


def promise(api: Api, contributions: int, session: int) -> str:
    """Put a session into the database whose signed terms keep for so long."""
    opened = api.open(Dummy(), PARTS).join()
    kept = Retention(contributions=contributions, session=session)
    text = session_terms.build_request(Dummy(), PARTS.layout, seed=1)
    drawn = session_terms.draw_up(
        opened.id, text.model_copy(update={"retention": kept})
    )
    with api.service.database.write() as transaction:
        transaction.execute(
            sa.update(Session).where(Session.id == opened.id).values(terms=drawn)
        )
    return opened.id


@pytest.mark.usefixtures("serves")
def test_a_start_holds_settings_to_the_strictest_signed_terms(each_api: Api) -> None:
    each_api.open(Dummy(), PARTS).join()
    assert strictest_retention(each_api.service.database) is None
    assert serve(each_api).exit_code == 0
    promise(each_api, 3600, 7 * DAY)
    promise(each_api, 0, 30 * DAY)
    found = strictest_retention(each_api.service.database)
    assert found == Retention(contributions=0, session=7 * DAY)
    assert serve(each_api, delete_seconds=7 * DAY).exit_code == 0
    for settings, said in (
        ({}, ("for ever", "7 days", "COTERIE_DELETE_SECONDS")),
        ({"delete_seconds": 8 * DAY}, ("for 8 days", "COTERIE_DELETE_SECONDS")),
        (
            {"delete_seconds": DAY, "retention_seconds": 60},
            ("60 seconds", "COTERIE_RETENTION_SECONDS"),
        ),
    ):
        refused = serve(each_api, **settings)
        assert refused.exit_code == 1
        assert "Traceback" not in refused.output
        for words in said:
            assert words in refused.stderr


@pytest.mark.usefixtures("serves")
def test_what_is_deleted_binds_no_start(api: Api) -> None:
    ended = promise(api, 0, 7 * DAY)
    now = api.clock.now()
    with api.service.database.write() as transaction:
        chosen = sa.update(Session).where(Session.id == ended)
        transaction.execute(chosen.values(state="completed", purged_at=now))
    week = {"delete_seconds": 7 * DAY}
    assert serve(api, retention_seconds=3600, **week).exit_code == 0
    assert serve(api).exit_code == 1
    with api.service.database.write() as transaction:
        transaction.execute(chosen.values(terms=b"", deleted_at=now))
    assert serve(api, retention_seconds=3600).exit_code == 0
