"""Models of pages to draw: an invented session of three hospitals, and an empty one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.session_terms import draw_up_terms
from clustering_protocols.terms.schema import Constraints, Field, Schema
from clustering_protocols.terms.terms import (
    About,
    Identities,
    Layout,
    SessionRequest,
    Slot,
    Terms,
    read_terms,
)
from clustering_protocols.wire.answers import RunLine
from coterie_pages.models import (
    AuditRow,
    Matrix,
    NamedInstitution,
    Points,
    RunReport,
    SentLine,
    SessionReport,
    SlotEntry,
    TermsSheet,
    Versions,
)
from coterie_pages.views.terms_sheet import sheet_of

BEGIN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
NAMES = ("north", "south", "west")
TITLES = ("North Hospital", "South Hospital", "Western university medical centre")
INSTITUTIONS = [Institution(f"Institution {n}", bytes([n]) * 32) for n in range(5)]
KNOWN = {each.key: each.name for each in INSTITUTIONS[:4]}
DICTIONARY = Schema(
    fields=(
        Field(
            name="age",
            title="Age at admission",
            unit="years",
            type="integer",
            constraints=Constraints(minimum=0, maximum=120),
        ),
        Field(name="crp", title="C-reactive protein", unit="mg/l"),
        Field(name="smoker", type="boolean"),
        Field(
            name="ward",
            title="Ward of the first night",
            type="string",
            categories=("surgery", "medicine", "intensive care"),
        ),
    )
)


def terms_text(**more: object) -> bytes:
    """The exact terms of the session."""
    slots = [
        Slot(name=name, title=title, row=row, column=0)
        for row, (name, title) in enumerate(zip(NAMES, TITLES, strict=True))
    ]
    said = {
        "about": About(
            title="Wards of three hospitals",
            purpose="Which admissions resemble each other, to plan wards.",
            legal_basis="Vote of the ethics board; contract of 12 January.",
            contact="data.office@north.example",
        ),
        "protocol": {"name": "dc", "params": {"n_clusters": 3}},
        "layout": Layout(slots=tuple(slots)),
        "identities": Identities(
            coordinator=INSTITUTIONS[3].key,
            analyst=INSTITUTIONS[4].key,
            slots={
                name: each.key
                for name, each in zip(NAMES[:2], INSTITUTIONS[:2], strict=True)
            },
        ),
        "dictionary": (DICTIONARY,),
        "preparation": ({},),
        "seed": 1,
    }
    return draw_up_terms("wards", SessionRequest.model_validate({**said, **more}))


def sheet(text: bytes | None = None) -> TermsSheet:
    text = text or terms_text()
    terms: Terms = read_terms(text)
    own = NamedInstitution(
        name=INSTITUTIONS[0].name, known=True, fingerprint="0011 2233 4455 6677"
    )
    return sheet_of(
        text, terms, KNOWN, url="https://analyst.example", slot=NAMES[0], you=own
    )


def seats() -> tuple[SlotEntry, ...]:
    return tuple(
        SlotEntry(
            slot=name,
            title=title,
            row=row,
            column=0,
            who=NamedInstitution(
                name=f"Institution {row}", known=row < 2, fingerprint="ab12 " * 8
            ),
            own=row == 0,
            joined_at=BEGIN,
            n_rows=400 + row,
            n_columns=4,
        )
        for row, (name, title) in enumerate(zip(NAMES, TITLES, strict=True))
    )


def runs() -> tuple[RunLine, ...]:
    return tuple(
        RunLine(
            n_clusters=k,
            figures={
                "n_clusters": k,
                "inertia": 4000.0 / k,
                "simplified_silhouette": 0.3 + 0.2 / (1 + (k - 3) ** 2),
                "calinski_harabasz": 300.0 - 20 * (k - 3) ** 2,
                "davies_bouldin": 0.8 + 0.1 * abs(k - 3),
                "silhouette": None,
                "n_iter": 7,
                "converged": True,
            },
            chosen=k == 3,
        )
        for k in range(2, 8)
    )


def profile() -> Profile:
    """Four lines: three clusters, and small ones together; a value that is not told."""
    return Profile(
        column=0,
        own=False,
        clusters=(0, 1, 2),
        others=(3, 4),
        n_rows=(600, 400, 180, 23),
        rounded=True,
        fields=(
            FieldProfile(
                name="crp",
                title="C-reactive protein",
                unit="mg/l",
                n_rows=(600, 400, 180, 23),
                mean=(4.0, 60.0, 120.0, 30.0),
                spread=(3.0, 25.0, 40.0, 28.0),
                quartiles=(
                    (2.0, 4.0, 6.0),
                    (40.0, 60.0, 80.0),
                    (90.0, 120.0, None),
                    None,
                ),
                difference=1.72,
            ),
            FieldProfile(
                name="ward",
                title="Ward of the first night",
                n_rows=(600, 400, 180, 23),
                levels=("surgery", "medicine", "other levels"),
                shares=((0.8, 0.15, 0.05), (0.2, 0.75, 0.05), (0.1, 0.3, 0.6), None),
                difference=0.91,
            ),
            FieldProfile(
                name="age",
                title="Age at admission",
                unit="years",
                n_rows=(600, 400, 180, None),
                mean=(52.0, 55.0, 71.0, None),
                spread=(15.0, 14.0, 9.0, None),
                quartiles=(
                    (40.0, 52.0, 64.0),
                    (45.0, 55.0, 65.0),
                    (65.0, 71.0, 77.0),
                    None,
                ),
                difference=0.4,
            ),
            FieldProfile(
                name="admitted",
                title="Day of admission",
                is_date=True,
                n_rows=(600, 400, 180, 23),
                mean=(20000.0, 20010.0, 19990.0, 20001.0),
                spread=(90.0, 91.0, 89.0, 93.0),
                difference=0.02,
            ),
        ),
    )


def points(n: int = 400) -> Points:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n)
    labels[:9] = -1
    centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 4.0]])
    X = centres[labels] + rng.normal(size=(n, 2))
    return Points(
        x=tuple(X[:, 0].tolist()),
        y=tuple(X[:, 1].tolist()),
        labels=tuple(labels.tolist()),
        explained=(0.46, 0.21),
        n_rows=n,
    )


def left() -> tuple[SentLine, ...]:
    lines = [SentLine(number=1, at=BEGIN, event="joining", digest="ab" * 32)]
    for round_ in range(1, 4):
        at = BEGIN + timedelta(minutes=round_)
        sent = {"round": round_, "attempt": 1, "digest": f"{round_}c" * 32}
        receipt = {"entry": 10 + round_, "signed": True}
        for event, more in (("sending", {}), ("receipt", receipt)):
            said = {"number": len(lines) + 1, "at": at, "event": event, "size": 70_000}
            lines.append(SentLine.model_validate({**said, **sent, **more}))
    return tuple(lines)


VERSIONS = Versions(coterie="0.2.0", protocol=1, terms=2)


def whole() -> dict[str, Any]:
    """The fields that a party's and a session's report have alike."""
    return {
        "session": "wards",
        "title": "Wards of three hospitals",
        "protocol": "dc",
        "sheet": sheet(),
        "agreement": "cd" * 32,
        "seats": seats(),
        "safety_number": "12345 67890 " * 6,
        "runs": runs(),
        "sizes": (620, 401, 182),
        "way": "kmeans",
        "measured": (0.95, 1.0),
        "versions": VERSIONS,
    }


def run_report() -> RunReport:
    return RunReport(
        **whole(),
        centroids=Matrix(columns=("age", "crp"), rows=((52.0, 4.0), (55.0, 60.0))),
        told={"dimensions sent": 3, "rows that took part": "398 of 400"},
        profiles=(profile(),),
        slot="north",
        complete=True,
        n_rows=400,
        own_sizes=(201, 132, 58),
        without=9,
        points=points(),
        left=left(),
    )


def empty_run() -> RunReport:
    """The report of a party that has read the terms, and no more."""
    return RunReport(
        session="wards",
        title="wards",
        protocol="dc",
        sheet=sheet(),
        versions=VERSIONS,
        slot="north",
        complete=False,
    )


def session_report() -> SessionReport:
    audit = tuple(
        AuditRow(
            number=number,
            at=BEGIN + timedelta(minutes=number),
            event=event,
            slot=slot,
            round=round_,
            attempt=min(1, round_),
            digest="ef" * 32,
        )
        for number, (event, slot, round_) in enumerate(
            [("created", "", 0), ("joined", "north", 0), ("received", "north", 1)], 1
        )
    )
    return SessionReport(
        **whole(),
        told={"inertia": 1333.3},
        state="completed",
        created_at=BEGIN,
        audit=audit,
        signed_by="ab12 " * 8,
    )


def empty_session() -> SessionReport:
    """The report of a session that nobody has joined, seen from another machine."""
    return SessionReport(
        session="wards",
        title="wards",
        protocol="dc",
        sheet=None,
        seats=tuple(
            SlotEntry(slot=name, row=row, column=0, state="invited")
            for row, name in enumerate(NAMES)
        ),
        versions=VERSIONS,
        state="recruiting",
        created_at=BEGIN,
    )
