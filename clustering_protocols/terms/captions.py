"""Captions: how forms, options, sheets and letters present the fields of a request.

A field carries its caption beside its type, and none of these faces names the field. This
module imports nothing, so that the help of a command starts fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

Group = Literal["words", "limits", "gaps", "runs", "results"]
"""What stands together in a form, and in the options of a command."""
YEAR: Final = 366 * 86_400
DECADE: Final = 10 * YEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The presentation of a field, or of a whole section.

    label: in forms and on sheets.
    group: the group of fields in forms; None if no form asks for it.
    flag, help, metavar: of its option; empty if it has no option of its own.
    least, most: of a number, the limits of its option.
    name: in a form, by default the option's; of a section, that of its sentence on
        sheets.
    hint, usual, choices: in a form; ``{week}`` is a week from now, and ``{}`` in a
        choice the name of its figure.
    days: whether a form takes days for the terms' seconds.
    lacking: the error if only other fields of its section are filled in.
    letter: its label in a letter; that of sheets by default.
    """

    label: str
    group: Group | None = None
    flag: str = ""
    help: str = ""
    metavar: str | None = None
    least: int | None = None
    most: int | None = None
    name: str = ""
    hint: str = ""
    usual: str = ""
    choices: Mapping[str, str] = field(default_factory=dict, hash=False)
    days: bool = False
    lacking: str = ""
    letter: str = ""


TITLE: Final = Caption(
    label="Title",
    group="words",
    name="title",
    hint="By which everybody knows the session.",
)
PURPOSE: Final = Caption(
    label="Purpose",
    group="words",
    flag="--purpose",
    help="What the labels are for, for people.",
)
LEGAL_BASIS: Final = Caption(
    label="Legal basis",
    group="words",
    flag="--legal-basis",
    help="What allows the session, e.g. a contract.",
)
CONTACT: Final = Caption(
    label="Contact",
    group="words",
    flag="--contact",
    help="Whom parties may ask.",
    letter="Questions",
)
ROLES: Final = Caption(
    label="Roles",
    group="words",
    flag="--roles",
    help="Who is controller and who processor, in the words of your contract.",
)
RECRUITING: Final = Caption(
    label="Days within which all have joined",
    group="limits",
    flag="--join-within",
    help="Seconds that parties have to join; a week by default.",
    least=1,
    most=YEAR,
    name="join_days",
    hint="From the opening on: 7 days from now is {week:%A, %d %B %Y}.",
    usual="7",
    days=True,
)
ROUND: Final = Caption(
    label="Days within which each round is answered",
    group="limits",
    flag="--answer-within",
    help="Seconds that parties have to answer in each round; a day by default.",
    least=1,
    most=YEAR,
    name="answer_days",
    hint="Half a day is 0.5. Anyone who is late ends the session, unless you wait longer.",
    usual="1",
    days=True,
)
MINIMUM_ROWS: Final = Caption(
    label="Fewest rows of each party",
    group="limits",
    flag="--minimum-rows",
    help="Fewest rows that each party must have; 10 by default.",
    least=1,
    hint="A party with fewer does not take part.",
    usual="10",
)
PREPARATION: Final = Caption(
    label="Where values are missing",
    group="gaps",
    flag="--missing",
    help="With --schema: one rule for all missing values. 'drop' leaves rows with one "
    "out. 'mean' and 'median' impute numbers with it, and categories with the most "
    "frequent level. By default a table with missing values is refused.",
    hint="Needs a dictionary.",
    usual="a table with gaps is refused",
    choices={
        "drop": "rows with a gap do not take part",
        "mean": "the mean fills them",
        "median": "the median fills them",
    },
)
HARMONISE: Final = Caption(
    label="Take out what differs between sites, but for what follows from",
    group="gaps",
    flag="--harmonise",
    metavar="COVARIATES",
    help="With --schema: take shifts and spreads of sites out of numbers (ComBat), but "
    "keep what follows from these variables, e.g. age,sex; 'none' where none is kept.",
    hint="Variables such as age, sex; or none. Numbers need ranges in the dictionary.",
    usual="sites are compared as they are",
)
EVALUATION: Final = Caption(label="Clusters", name="runs")
CHOOSE: Final = Caption(
    label="How should the number of clusters be chosen?",
    group="runs",
    flag="--choose",
    metavar="FIGURE",
    help="Of several n_clusters: the figure whose best run counts, e.g. "
    "davies_bouldin; 'later' lets you read the figures first. By default the simplified "
    "silhouette, where the protocol computes it.",
    hint="Parties get the labels of that run.",
    usual="the best by simplified silhouette, where there is one",
    choices={"later": "I compare all runs, and choose then"},
)
WITHIN: Final = Caption(
    label="Days to choose, if you choose",
    group="runs",
    flag="--choose-within",
    help="Seconds that you have to choose 'later'; a week by default.",
    least=1,
    most=YEAR,
    name="choose_days",
    hint="After them the usual rule decides.",
    usual="7",
    days=True,
)
RETENTION: Final = Caption(label="Retention", name="storage")
KEEP_CONTRIBUTIONS: Final = Caption(
    label="Days for which the analyst keeps contributions",
    group="limits",
    flag="--keep-contributions",
    help="Longest time in seconds for which the analyst keeps contributions after the "
    "end; 0 by default. Goes into the signed terms.",
    least=0,
    most=DECADE,
    name="keep_days",
    hint="After the end of the session.",
    usual="0",
    days=True,
)
DELETE_WITHIN: Final = Caption(
    label="Days after which the analyst deletes the session",
    group="limits",
    flag="--delete-within",
    help="Longest time in seconds after the end until the analyst has deleted results, "
    "terms and receipts. Goes into the signed terms.",
    least=3600,
    most=DECADE,
    name="delete_days",
    hint="After its end. Its audit stays.",
    usual="180",
    days=True,
    lacking="say when the session is deleted, --delete-within.",
)
RELEASE: Final = Caption(label="Cluster profiles", name="release")
PROFILES: Final = Caption(
    label="Who reads what the clusters are like, field by field?",
    group="results",
    flag="--profiles",
    help="Add up what the clusters are like, field by field: for the parties that hold "
    "the fields, or, rounded, for everybody. Needs a --schema.",
    hint="Needs a dictionary.",
    usual="nobody",
    choices={
        "members": "parties, of the columns that they hold",
        "everybody": "everybody, rounded",
    },
    lacking="say who reads them, --profiles.",
)
MIN_CLUSTER_ROWS: Final = Caption(
    label="Clusters with fewer rows are told together",
    group="results",
    flag="--profile-rows",
    help="Clusters with fewer rows are one line of a profile; 10 by default.",
    least=5,
    hint="Of profiles.",
    usual="10",
)


def find_captions(group: Group) -> list[Caption]:
    """Return the captions of a group that have an option, in the order of this module."""
    captions = (c for c in globals().values() if isinstance(c, Caption))
    return [c for c in captions if c.group == group and c.flag]


def captions_of(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo, Caption]]:
    """Yield the fields of a model that carry a caption."""
    for name, info in model.model_fields.items():
        for caption in info.metadata:
            if isinstance(caption, Caption):
                yield name, info, caption


def texts_of(value: BaseModel) -> Iterator[tuple[Caption, str]]:
    """Yield the texts of a model beside its title, empty ones too."""
    for name, _, caption in captions_of(type(value)):
        if caption.flag:
            yield caption, getattr(value, name)
