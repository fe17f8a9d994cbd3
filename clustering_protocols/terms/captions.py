"""Captions that forms, options, sheets and letters use to present request fields.

A field's annotation carries its caption, so that none of these presentations has to
list the fields. This module imports nothing at run time, which keeps ``--help`` fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

Group = Literal["words", "limits", "gaps", "runs", "results"]
"""Groups into which forms divide fields, and commands divide options."""
YEAR: Final = 366 * 86_400
DECADE: Final = 10 * YEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The texts with which forms, commands and sheets present a field or a section.

    label: the label in forms and on sheets.
    group: the group of fields in forms; None if no form shows the field.
    flag, help, metavar: texts of the command-line option; empty if there is none.
    least, most: the smallest and the largest number that the option accepts.
    name: the field's name in forms; by default, the name of the option. For a section,
        the key of the sentence that describes it on sheets.
    hint, default, choices: the hint, default and choices in forms. ``{week}`` stands for
        the date one week from now, and ``{}`` in a choice for the name of a quality
        figure.
    days: whether forms ask for days where the terms contain seconds.
    lacking: the error if the field is empty while other fields of its section are not.
    letter: the label in letters; by default, ``label``.
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
    default: str = ""
    choices: Mapping[str, str] = field(default_factory=dict, hash=False)
    days: bool = False
    lacking: str = ""
    letter: str = ""


TITLE: Final = Caption(
    label="Title",
    group="words",
    name="title",
    hint="The name under which everybody sees the session.",
)
PURPOSE: Final = Caption(
    label="Purpose",
    group="words",
    flag="--purpose",
    help="What the labels will be used for, in your own words.",
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
    help="Who is the controller and who the processor, in the words of your contract.",
)
RECRUITING: Final = Caption(
    label="Days for all parties to join",
    group="limits",
    flag="--join-within",
    help="Seconds that parties have to join; a week by default.",
    least=1,
    most=YEAR,
    name="join_days",
    hint="Counted from the opening: 7 days from now is {week:%A, %d %B %Y}.",
    default="7",
    days=True,
)
ROUND: Final = Caption(
    label="Days to answer each round",
    group="limits",
    flag="--answer-within",
    help="Seconds that parties have to answer in each round; a day by default.",
    least=1,
    most=YEAR,
    name="answer_days",
    hint="Half a day is 0.5. A late answer ends the session, unless you extend the deadline.",
    default="1",
    days=True,
)
MINIMUM_ROWS: Final = Caption(
    label="Minimum rows of each party",
    group="limits",
    flag="--minimum-rows",
    help="Minimum number of rows of each party; 10 by default.",
    least=1,
    hint="A party with fewer does not take part.",
    default="10",
)
PREPARATION: Final = Caption(
    label="Where values are missing",
    group="gaps",
    flag="--missing",
    help="With --schema: one rule for all missing values. 'drop' leaves out their "
    "rows. 'mean' and 'median' impute this number, and for categories the most "
    "frequent level. By default a table with missing values is refused.",
    hint="Needs a dictionary.",
    default="a table with gaps is refused",
    choices={
        "drop": "rows with a gap do not take part",
        "mean": "the mean fills them",
        "median": "the median fills them",
    },
)
HARMONISE: Final = Caption(
    label="Remove site effects, but keep the effects of",
    group="gaps",
    flag="--harmonise",
    metavar="COVARIATES",
    help="With --schema: remove the shift and the spread of each site from numbers "
    "(ComBat), but keep the effects of these variables, e.g. age,sex; 'none' keeps none.",
    hint="Variables such as age, sex; or none. Numbers need ranges in the dictionary.",
    default="sites are compared as they are",
)
EVALUATION: Final = Caption(label="Clusters", name="runs")
CHOOSE: Final = Caption(
    label="How should the number of clusters be chosen?",
    group="runs",
    flag="--choose",
    metavar="FIGURE",
    help="With several n_clusters: the figure that selects the run, e.g. davies_bouldin; "
    "'later' lets you read all figures before you choose. By default the simplified "
    "silhouette, where the protocol computes it.",
    hint="Parties get the labels of that run.",
    default="the best by simplified silhouette, where there is one",
    choices={"later": "I compare all runs, and choose then"},
)
WITHIN: Final = Caption(
    label="Days to choose, if you choose later",
    group="runs",
    flag="--choose-within",
    help="With --choose later: seconds that you have to choose; a week by default.",
    least=1,
    most=YEAR,
    name="choose_days",
    hint="After that, the usual rule decides.",
    default="7",
    days=True,
)
RETENTION: Final = Caption(label="Retention", name="storage")
KEEP_CONTRIBUTIONS: Final = Caption(
    label="Days for which the analyst keeps contributions",
    group="limits",
    flag="--keep-contributions",
    help="Longest time in seconds for which the analyst keeps contributions after the "
    "end; 0 by default. It becomes part of the signed terms.",
    least=0,
    most=DECADE,
    name="keep_days",
    hint="After the end of the session.",
    default="0",
    days=True,
)
DELETE_WITHIN: Final = Caption(
    label="Days after which the analyst deletes the session",
    group="limits",
    flag="--delete-within",
    help="Seconds after the end within which the analyst deletes results, terms and "
    "receipts. They become part of the signed terms.",
    least=3600,
    most=DECADE,
    name="delete_days",
    hint="After its end. Its audit is kept.",
    default="180",
    days=True,
    lacking="say when the session is deleted, --delete-within.",
)
RELEASE: Final = Caption(label="Cluster profiles", name="release")
PROFILES: Final = Caption(
    label="Who reads the profiles of the clusters?",
    group="results",
    flag="--profiles",
    help="Compute a profile of the clusters, field by field, for the parties that hold "
    "the fields, or also (rounded) for everybody. Needs a --schema.",
    hint="Needs a dictionary.",
    default="nobody",
    choices={
        "members": "parties, of the columns that they hold",
        "everybody": "everybody, rounded",
    },
    lacking="say who reads the profiles, --profiles.",
)
MIN_CLUSTER_ROWS: Final = Caption(
    label="Clusters with fewer rows share one line",
    group="results",
    flag="--profile-rows",
    help="Clusters with fewer rows share one line of a profile; 10 by default.",
    least=5,
    hint="In profiles.",
    default="10",
)


def find_captions(group: Group) -> list[Caption]:
    """Return a group's captions with a command-line option, in the order of definition."""
    captions = (c for c in globals().values() if isinstance(c, Caption))
    return [c for c in captions if c.group == group and c.flag]


def captioned_fields(
    model: type[BaseModel],
) -> Iterator[tuple[str, FieldInfo, Caption]]:
    """Yield the name, the field and the caption of each field that has a caption."""
    for name, info in model.model_fields.items():
        for caption in info.metadata:
            if isinstance(caption, Caption):
                yield name, info, caption


def captioned_texts(value: BaseModel) -> Iterator[tuple[Caption, str]]:
    """Yield the caption and the text, which may be empty, of each field with an option."""
    for name, _, caption in captioned_fields(type(value)):
        if caption.flag:
            yield caption, getattr(value, name)
