"""Who learns what in `dc`, and its risk codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

LEARNS: Final = {
    "analyst": (
        "Numbers of rows and features, the reduced rows up to an unknown rotation, "
        "and with them the distances between rows. It alone computes the clusters."
    ),
    "party": "The cluster of each of its rows, and the sizes of all clusters.",
    "other parties of the row group": "The clusters of the same rows.",
    "coordinator": "Cluster sizes, the inertia, positions of the starts.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst reads your rows in fewer dimensions, up to a rotation, "
        "and thus nearly all distances between them.",
        measured="Where numbers were rounded, a search found 2 of 61 features of five "
        "tables.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Columns of two values (yes or no) may show in the upload.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="An analyst who colludes with one party of your column group can "
        "rebuild your rows.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="So can an analyst who knows enough rows of any party of that group: "
        "one more than the dimensions that you send. Only what is left out of your "
        "rows stays hidden. That is one dimension, or nothing where the terms say "
        "dimensions 'all'. The two also read pooled totals of the group, and can "
        "falsify them.",
    ),
    "all-dimensions-are-sent": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS_JOINTLY,
        sentence="No dimension is left out: an analyst who colludes with one party of "
        "your column group rebuilds all your rows.",
        measured="In rounded numbers a search of the upload alone found all 27 "
        "features of three tables, and none of 34 of two.",
        remedy="dimensions 'all_but_one', the default.",
        detail="Leaving one dimension out keeps a share of the rebuilt rows further "
        "off than 10 %. On tables of more rows than columns, we measured a share of 0 "
        "to .94. The share was largest where a party has two or three columns. Where "
        "columns are more than rows, all rows stay further off. Against an analyst who "
        "unmixes the upload, next to none do, unless there are two columns only. A single column is sent as it is, up to shift and scale. If a "
        "column is constant at one party, the analyst reads that column of the others "
        "in its column group to the same extent.",
    ),
    "uniform-anchors-can-be-unmixed": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="The analyst can separate your features from projections of uniform "
        "anchors alone.",
        remedy="Gaussian anchors (anchor.kind 'gaussian', the default).",
        detail="It uses independent component analysis.",
    ),
    "own-units-show-directions": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.GEOMETRY,
        sentence="You scale by your own standard deviations; where these differ from "
        "the pooled ones, the upload shows the directions of single features.",
        remedy="scaling 'shared', the default.",
        detail="The anchors have the pooled standard deviations.",
    ),
    "anchors-from-first-slots-rows": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="The anchors are near to real rows of the first party of your column "
        "group, and all parties of the group know them.",
        remedy="Gaussian anchors (anchor.kind 'gaussian', the default).",
        detail="The first party synthesises the anchors from its rows.",
    ),
    "coordinates-open-the-row-group": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS_JOINTLY,
        sentence="A party of your row group that knows some of your rows can rebuild "
        "your columns of the others.",
        remedy="output 'labels', the default.",
        detail="Each party of your row group receives the coordinates of its rows in "
        "the common space.",
    ),
    "predictor-lets-the-map-out": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.GEOMETRY,
        sentence="Anyone who sees one party's reduced rows can place them in the "
        "common space, because parties receive the map.",
        remedy="predictor false, the default; new rows then get no labels.",
        detail="Parties receive the collaboration map and the centroids.",
    ),
}
