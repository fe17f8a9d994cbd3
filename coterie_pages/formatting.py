"""Format numbers, times and names in the same way on pages and in terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.numerics.outcomes import Outcome, OutcomeTable
from clustering_protocols.numerics.profiles import NO_YES, FieldProfile, format_date
from clustering_protocols.numerics.survival import TOO_FEW, Survival
from clustering_protocols.terms.captions import captioned_fields, captioned_texts
from clustering_protocols.terms.session_risks import RiskLevel
from clustering_protocols.terms.terms import SessionRequest
from clustering_protocols.wire.answers import RunLine
from clustering_protocols.wire.states import OVER, SessionState
from coterie_pages.models import (
    NamedInstitution,
    PlannedSlot,
    Risk,
    RoundKind,
    RunReport,
    SessionReport,
    SlotEntry,
    TermsSheet,
    VariableDrift,
)

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_PAIRS: Final = tuple(pairwise(length for _, length in _UNITS))
AUXILIARY: Final = frozenset({"n_clusters", "gap_error", "gap_of_one"})
"""Figures that are needed only to interpret other figures."""
_FIGURES: Final = {
    "calinski_harabasz": "Caliński–Harabasz",
    "davies_bouldin": "Davies–Bouldin",
    "xie_beni": "Xie–Beni",
    "aic": "AIC",
    "bic": "BIC",
    "icl": "ICL",
    "entropy": "entropy of memberships",
    "n_iter": "updates",
}
PERSONAL_DATA: Final = "docs/personal-data.md, a page of coterie's documentation"
"""The documentation page on which data are stored, and for how long."""
_MAX_LENGTH: Final = 200
_MAX_VARIABLES: Final = 8
LEVELS: Final = {
    RiskLevel.OPTION: "Added by this session's choices",
    RiskLevel.COLLUSION: "If parties collude or lie",
    RiskLevel.DESIGN: "By taking part",
}
"""The heading of each level of risk, in the order in which a page shows them."""
_UNKNOWN: Final = "you do not know this key"


def group_by_level(risks: Sequence[Risk]) -> Iterator[tuple[RiskLevel, list[Risk]]]:
    """Group risks by level, and skip levels without a risk."""
    for level in LEVELS:
        if of_level := [risk for risk in risks if risk.level is level]:
            yield level, of_level


def format_duration(seconds: int) -> str:
    """Return a duration in the largest unit that gives a whole number, e.g. ``7 days``."""
    unit, length = next(u for u in _UNITS if seconds % u[1] == 0)
    count = seconds // length
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def format_number(value: Any) -> str:
    """Format a number with three significant digits, or as an integer if it is large.

    Booleans are formatted as ``yes`` or ``no``, and None as a dash.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if 999.5 <= abs(value) < 1e12 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def format_cell(value: Any) -> Any:
    """Format a value as a table cell; a string is returned unchanged."""
    if isinstance(value, datetime):
        return format_time(value)
    return value if isinstance(value, str) else format_number(value)


def plain_heading(heading: str) -> str:
    """Return the heading without the ``#`` or ``=`` that marks the type of its column."""
    return heading[1:] if heading[:1] in {"#", "="} else heading


def attribute_rows(records: Iterable[Any], *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield one table row per record, with the values of the named attributes.

    ``name|format_percent`` formats the attribute ``name`` with that function.
    """
    for record in records:
        row = []
        for name, _, write in (name.partition("|") for name in names):
            value = getattr(record, name)
            row.append(globals()[write](value) if write else value)
        yield tuple(row)


def indices_of(records: Iterable[Any], name: str, value: bool = True) -> list[int]:  # noqa: FBT001, FBT002  templates
    """Return the indices of the records whose attribute ``name`` is truthy (or falsy)."""
    flags = [bool(getattr(record, name)) for record in records]
    return [index for index, flag in enumerate(flags) if flag is value]


def number_clusters(rows: Iterable[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield table rows, one for each cluster, with the label of the cluster prepended."""
    return ((f"cluster {cluster}", *row) for cluster, row in enumerate(rows))


def cluster_rows(
    report: RunReport | SessionReport, own: Sequence[int]
) -> Iterator[tuple[str, ...]]:
    """Yield each cluster's name and, if known, its size and its number of own rows."""
    columns = [sizes for sizes in (report.sizes, own) if sizes]
    for cluster in range(max(map(len, columns))):
        yield (
            name_cluster(cluster, report.names),
            *(
                f"{n:,} ({format_percent_of(n, sum(sizes))})"
                for sizes in columns
                for n in (sizes[cluster] if cluster < len(sizes) else 0,)
            ),
        )


def outcome_rows(
    table: OutcomeTable, lines: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield a table row for each described variable: its name, test and intervals."""
    for field in table.fields:
        unit = f", {field.unit}" if field.unit else ""
        intervals = (format_intervals(field, line) for line in range(len(lines)))
        yield f"{field.title or field.name}{unit}", format_test(field), *intervals


def drift_cells(drift: VariableDrift) -> tuple[str, str, str]:
    """Return the table cells that show how far a column has drifted."""
    shift = "–" if drift.shift is None else f"{drift.shift:+.2f}"
    return drift.name, shift, format_percent(drift.outside)


def column_rows(columns: Iterable[Any], ranges: bool) -> Iterator[tuple[Any, ...]]:  # noqa: FBT001  templates
    """Yield the name, type and missing values of each column, and optionally its range."""
    for column in columns:
        ends = (end or "–" for end in column.range_texts) if ranges else ()
        yield column.name, column.type, column.missing, *ends


def contribution_facts(inspection: Inspection) -> Iterator[tuple[str, str]]:
    """Yield label and text for the receivers, the size and the notes of a contribution."""
    for part in inspection.parts:
        yield f"To {part.receiver}", part.meaning
    yield "Size", f"{inspection.n_bytes:,} bytes"
    for name, value in inspection.notes.items():
        yield name_figure(name), shorten(value)


def named_figures(figures: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the readable name and the value of each quality figure."""
    return ((name_figure(name), value) for name, value in figures.items())


def shorten_values(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each name with its value, which is truncated if it is long."""
    return ((name, shorten(value)) for name, value in values.items())


def join_shape(shape: Sequence[int]) -> str:
    """Format the shape of an array, e.g. ``3 × 2``."""
    return " × ".join(map(str, shape)) or "one value"


def shorten(value: Any) -> str:
    """Return the value as text, truncated to 200 characters."""
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


def format_percent_of(part: float, whole: float) -> str:
    """Format ``part / whole`` as a percentage; a dash if ``whole`` is 0."""
    return f"{part / whole:.0%}" if whole else "–"


def name_institution(institution: NamedInstitution | None) -> str:
    """Return a description of an institution that does not include its key."""
    if institution is None:
        return "anyone who has the invitation"
    if institution.known:
        return institution.name or "you, without a name"
    return (
        f"{institution.name} ({_UNKNOWN})"
        if institution.name
        else "a key that you do not know"
    )


def describe_frequency(kind: RoundKind) -> str:
    """Return how many times a round of this kind can occur, in words."""
    if kind.least == kind.most:
        return "once" if kind.most == 1 else f"{kind.most:,} times"
    if kind.least == 0:
        return f"at most {'once' if kind.most == 1 else f'{kind.most:,} times'}"
    return f"{kind.least:,} to {kind.most:,} times"


def title_of(seat: SlotEntry | PlannedSlot) -> str:
    """Return the title of a slot, or its name if it has no title."""
    return seat.title or seat.slot


def name_figure(name: str) -> str:
    """Return the readable name of a figure."""
    return _FIGURES.get(name, name.replace("_", " "))


def name_cluster(cluster: int, names: Sequence[str] = ()) -> str:
    """Return ``cluster`` and the number, followed by the name if the cluster has one."""
    name = names[cluster] if cluster < len(names) else ""
    return f"cluster {cluster}: {name}" if name else f"cluster {cluster}"


def agreement_sentence(sheet: TermsSheet) -> str:
    """Return the declaration that is printed above the digest and the signature."""
    where = f" as {sheet.slot}" if sheet.slot else ""
    return (
        f"We take part in {sheet.session}{where} and accept the sheet with this SHA-256 "
        "digest, its risks and what it lists as sent:"
    )


def page_facts(sheet: TermsSheet) -> Iterator[tuple[str, str]]:
    """Yield label and text of each fact on the page that a party signs."""
    for caption, text in captioned_texts(sheet):
        yield caption.label, text or "Not stated in the terms."
    n_open = sum(slot.expected is None for slot in sheet.places)
    names = ", ".join(map(title_of, sheet.places))
    yield "Parties", names + (f" ({n_open} open to any institution)" if n_open else "")
    service = sheet.url or "the analyst"
    if sheet.coordinator is not None:
        service += f", opened by {name_institution(sheet.coordinator)}"
    yield "Service", service
    yield "Method", sheet.protocol_title
    variables = ", ".join(sheet.categories[:_MAX_VARIABLES])
    if more := len(sheet.categories) - _MAX_VARIABLES:
        variables += f" and {more} more" if more > 0 else ""
    yield "Data", variables or "The terms name no variables."
    yield "Personal data", sheet.personal_data
    unlimited = "the terms do not limit how long the analyst keeps results"
    storage = sheet.storage or unlimited
    yield "Retention", f"{storage[:1].upper()}{storage[1:]}."
    for sentence in sheet.cautions:
        yield "Warning", sentence


def sent_sentences(sheet: TermsSheet) -> Iterator[str]:
    """Yield the sentences about what is sent, for the page that a party signs."""
    yield "No row or id is sent as it is."
    yield from (kind.meaning for kind in sheet.sent if kind.reach == "readable")
    if n_hidden := sum(kind.reach == "hidden" for kind in sheet.sent):
        kinds = "One kind" if n_hidden == 1 else f"{n_hidden} kinds"
        yield f"{kinds} of numbers that nobody can read alone."
    yield "Signatures, keys and keyed digests."


def section_sentences(sheet: TermsSheet) -> Iterator[tuple[str, str]]:
    """Yield the label and the summary sentence of each optional section of the terms."""
    for _, _, caption in captioned_fields(SessionRequest):
        sentence = "" if caption.group else getattr(sheet, caption.name)
        if sentence:
            yield caption.label, f"{sentence[:1].upper()}{sentence[1:]}."


def format_percent(part: float | None) -> str:
    """Format a proportion between 0 and 1 as a percentage; None becomes a dash."""
    return "–" if part is None else f"{part:.0%}" if part >= 0.1 else f"{part:.1%}"


def format_time(time: datetime) -> str:
    """Format a time in UTC, to the second."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_minute(time: datetime) -> str:
    """Format a time in UTC, to the minute."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def format_elapsed(time: datetime, now: datetime) -> str:
    """Return the duration between a past or future time and now, in whole units."""
    seconds = max(1, abs(int((now - time).total_seconds())))
    for length, smaller in _PAIRS:
        if seconds >= length:
            unit = length if seconds >= 2 * length else smaller
            return format_duration(seconds // unit * unit)
    return format_duration(seconds)


def is_over(report: RunReport | SessionReport) -> bool:
    """Return whether the session of the report has ended, with or without a result."""
    if isinstance(report, RunReport):
        return report.complete or bool(report.ended)
    return report.state in OVER


def is_completed(report: RunReport | SessionReport) -> bool:
    """Return whether the session of the report has ended with a result."""
    if isinstance(report, RunReport):
        return report.complete
    return report.state == SessionState.COMPLETED


def figures_with_values(runs: Sequence[RunLine]) -> list[str]:
    """Return the names of the quality figures that at least one run has."""
    return [
        name
        for name in (runs[0].figures if runs else ())
        if name not in AUXILIARY
        and any(run.figures.get(name) is not None for run in runs)
    ]


def profile_cell(field: FieldProfile, line: int, *, quartiles: bool = True) -> str:
    """Format a variable's mean and deviation, or its proportions of levels, as a cell.

    line: the index of a line of the profile, such as a cluster.
    quartiles: whether to append the quartiles.
    """
    if field.levels:
        return field.format_shares(line)
    mean, spread = field.mean[line], field.spread[line]
    if mean is None:
        return "–"
    if field.is_date:
        centre = f"{format_date(mean)} ± {format_number(spread)} days"
    else:
        centre = f"{format_number(mean)} ± {format_number(spread)}"
    quartile_values = field.quartiles[line] if field.quartiles and quartiles else None
    if quartile_values is None or quartile_values == (None, None, None):
        return centre
    texts = (
        format_date(q) if field.is_date and q is not None else format_number(q)
        for q in quartile_values
    )
    return f"{centre} ({', '.join(texts)})"


_MAX_LEVELS: Final = 12
_SMALLEST_P: Final = 0.001


def format_intervals(field: Outcome, line: int) -> str:
    """Format the 95 % intervals of a described variable: of its mean, or of each level.

    A yes-or-no variable has only the interval of yes. At most 12 levels are shown.
    """
    if not field.levels:
        interval = field.means[line]
        if interval is None:
            return "–"
        low, high = (
            format_date(end) if field.is_date else format_number(end)
            for end in interval
        )
        return f"{low} to {high}"
    shares = field.shares[line]
    if shares is None:
        return "–"
    pairs = list(zip(field.levels, shares, strict=True))
    if field.levels == NO_YES:
        pairs = pairs[1:]
    texts = [
        f"{level} {low:.0%} to {high:.0%}" for level, (low, high) in pairs[:_MAX_LEVELS]
    ]
    more = len(pairs) - len(texts)
    return ", ".join([*texts, *([f"{more} more"] if more else [])])


def format_test(field: Outcome) -> str:
    """Format a variable's test: the statistic, its degrees of freedom and the p-value."""
    if field.statistic is None or field.p is None:
        return "nothing to compare"
    letter = "F" if field.test == "anova" else "χ²"
    text = _format_statistic(letter, field.degrees, field.statistic, field.p)
    if field.n_small:
        text += f" (unreliable: fewer than 5 rows expected in {field.n_small} cells)"
    return text


def format_log_rank(time: Survival) -> str:
    """Format the log-rank test: the statistic, its degrees of freedom and the p-value."""
    p = time.p
    if time.statistic is None or p is None:
        return "nothing to compare"
    return _format_statistic("χ²", [time.degrees], time.statistic, p)


def _format_statistic(
    letter: str, degrees: Sequence[int], value: float, p: float
) -> str:
    degrees_text = ", ".join(map(str, degrees))
    p_text = "p < 0.001" if p < _SMALLEST_P else f"p = {p:.3f}"
    return f"{letter}({degrees_text}) = {format_number(value)}, {p_text}"


def survival_rows(time: Survival, lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each curve: its name, rows, events and restricted mean time."""
    for name, line in zip(lines, time.lines, strict=True):
        if line is None:
            yield name, "–", "–", "–"
            continue
        events = sum(line.events.n_rows)
        n_rows = events + sum(line.censored.n_rows)
        if line.mean is None or not line.shows_events:
            yield name, f"{n_rows:,}", TOO_FEW, "–"
            continue
        mean = f"{format_number(line.mean)} ± {format_number(line.deviation)}"
        yield name, f"{n_rows:,}", f"{events:,}", mean


_AGO: Final = re.compile(r"([0-9]{1,6})([dhm])")
_AGES: Final = {"d": "days", "h": "hours", "m": "minutes"}
FORMS: Final = "a date (2026-11-01), a time (2026-11-01T09:30) or an age (3d, 12h, 30m)"


def read_moment(text: str, now: datetime) -> datetime:
    """Parse a time entered by a user; a time without a zone is taken as UTC.

    Raises ValueError if the text has none of the :data:`FORMS`, or is out of range.
    """
    text = text.strip()
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(**{_AGES[ago[2]]: int(ago[1])})
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"give {FORMS}") from None
