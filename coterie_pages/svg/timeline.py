"""When stages and rounds were open, and when each party joined and answered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from markupsafe import Markup

from coterie_pages.models.screens import Timeline, Work
from coterie_pages.svg.elements import element, line, picture, shorten, text

_WIDTH: Final = 840.0
_LANE: Final = 26.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 150.0, 20.0, 8.0, 30.0
_MOST_NAME: Final = 12
_LABELS: Final = 5
_LEAST_WIDTH: Final = 1.0
_LETTER: Final = 6.5  # the usual width of one


class _TimeScale(NamedTuple):
    """The stretch of time that is drawn."""

    begin: datetime
    seconds: float

    def place(self, at: datetime) -> float:
        """Return where a time lies, from left to right."""
        share = (at - self.begin).total_seconds() / self.seconds
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * share


def timeline(name: str, title: str, told: Timeline) -> Markup:
    """Return lanes of stages and rounds, and a lane of marks for each slot."""
    height = _TOP + _LANE * (_lanes_above(told) + len(told.slots)) + _BOTTOM
    rounds = sum(each.rounds for each in told.work)
    said = f"{rounds} rounds, {len(told.answers)} answers of {len(told.slots)} slots."
    size = (_WIDTH, height)
    return picture(name, title, said, size, _draw(told, height), class_="timeline")


def _draw(told: Timeline, height: float) -> Iterator[Markup]:
    scale = _scale(told)
    bottom = height - _BOTTOM
    yield from _axis(scale, bottom)
    top = _TOP + _LANE * (_lanes_above(told) - 1)
    yield from _stages(told, scale)
    yield text(_LEFT - 10, top + 17, "rounds", anchor="end")
    for index, work in enumerate(told.work):
        x = scale.place(work.begin)
        width = max(_LEAST_WIDTH, scale.place(work.end) - x)
        kind = "stage" if index % 2 else "stage alt"
        shape = {"x": x, "y": top + 4, "width": width, "height": _LANE - 8}
        yield element("rect", element("title", _span(work)), class_=kind, **shape)
    for lane, slot in enumerate(told.slots, start=1):
        y = top + _LANE * lane
        yield text(
            _LEFT - 10,
            y + 17,
            shorten(slot, _MOST_NAME),
            anchor="end",
            class_="small",
        )
        yield line(_LEFT, y + _LANE / 2, _WIDTH - _RIGHT, y + _LANE / 2, class_="grid")
        for answer in told.joined:
            if answer.slot == slot:
                x = scale.place(answer.at)
                yield element("circle", cx=x, cy=y + _LANE / 2, r=5.5, class_="ring")
        for answer in told.answers:
            if answer.slot == slot:
                x = scale.place(answer.at)
                yield element("circle", cx=x, cy=y + _LANE / 2, r=3.0, class_="mark")


def _lanes_above(told: Timeline) -> int:
    return 2 if told.stages else 1


def _stages(told: Timeline, scale: _TimeScale) -> Iterator[Markup]:
    """Yield a line for each stage, with its name where there is room for it."""
    if told.stages:
        yield text(_LEFT - 10, _TOP + 17, "stages", anchor="end")
    for index, stage in enumerate(told.stages):
        x = scale.place(stage.begin)
        width = max(_LEAST_WIDTH, scale.place(stage.end) - x)
        kind = "stage" if index % 2 else "stage alt"
        shape = {"x": x, "y": _TOP + 18, "width": width, "height": 4}
        yield element("rect", element("title", stage.name), class_=kind, **shape)
        if width > _LETTER * len(stage.name):
            yield text(x, _TOP + 13, stage.name, class_="small roomy")


def _axis(scale: _TimeScale, bottom: float) -> Iterator[Markup]:
    yield line(_LEFT, bottom, _WIDTH - _RIGHT, bottom)
    for number in range(_LABELS):
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * number / (_LABELS - 1)
        at = datetime.fromtimestamp(
            scale.begin.timestamp() + scale.seconds * number / (_LABELS - 1),
            tz=scale.begin.tzinfo,
        )
        form = "%m-%d %H:%M" if scale.seconds > 86_400 else "%H:%M:%S"
        anchor = "end" if number == _LABELS - 1 else "middle"
        kind = "small roomy" if number % 2 else "small"
        yield text(x, bottom + 22, f"{at:{form}}", anchor=anchor, class_=kind)


def _scale(told: Timeline) -> _TimeScale:
    times = [each.at for each in (*told.joined, *told.answers)]
    times += [time for each in told.work for time in (each.begin, each.end)]
    begin, end = min(times), max(times)
    return _TimeScale(begin, max(1.0, (end - begin).total_seconds()))


def _span(work: Work) -> str:
    last = work.first_round + work.rounds - 1
    if work.rounds == 1:
        return f"round {last}"
    return f"rounds {work.first_round} to {last}"
