"""How numbers, names and lanes are written in sentences, tables and plots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import prod

from jobs.scenarios.scenario import CAPTURED_LANE
from jobs.scenarios.settings import find_setting, settings
from jobs.terminal.lane_rows import settings_in_name
from jobs.terminal.screen import printable_text

_NUMBER_AND_UNIT = re.compile(r"(?<=\d)(KiB|MiB|GiB|kB|MB|GB|ms)\b")
_SPANS = ((86_400, "days"), (3600, "hours"), (60, "minutes"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
SEPARATOR = " · "

LEAST_CASES = 10
"""The fewest cases with which a share is ranked among others. With fewer, a single case could make it the least or the
greatest.
"""


def duration(ms: float | None) -> str:
    """A time span as text: `0.4 ms`, `105 ms`, `2.3 s`, `4 min`, `3 h`, `5 days`."""
    if ms is None:
        return "-"
    if ms >= 2 * 86_400_000:
        return f"{ms / 86_400_000:,.0f} days"
    for unit, name, below in ((3_600_000, "h", 2), (60_000, "min", 2), (1000, "s", 1)):
        if ms >= below * unit:
            return f"{ms / unit:,.1f} {name}".replace(".0 ", " ")
    return f"{ms:.1f} ms" if 0 < ms < 9.95 else f"{ms:.0f} ms"


def range_text(first: str, last: str) -> str:
    """A range. The unit is written once if both ends have the same.

    >>> range_text("120 ms", "210 ms"), range_text("700 ms", "2.4 s")
    ('120 to 210 ms', '700 ms to 2.4 s')
    """
    number, _, unit = first.rpartition(" ")
    return f"{number if last.endswith(f' {unit}') else first} to {last}"


def elapsed_times(times: Sequence[datetime]) -> tuple[list[float], str]:
    """(the times since the first one in a suitable unit, the title of an axis with them)."""
    first, last = min(times), max(times)
    seconds = (last - first).total_seconds()
    unit, name = next(((size, name) for size, name in _SPANS if seconds >= 2 * size), (1, "seconds"))
    return [(time - first).total_seconds() / unit for time in times], f"{name} since {utc_time(first)}"


def days_or_hours(span: timedelta) -> str:
    """A time span as for `--retention`, in days or hours.

    >>> days_or_hours(timedelta(days=7)), days_or_hours(timedelta(hours=36))
    ('7 days', '36 hours')
    """
    days, rest = divmod(span, timedelta(days=1))
    return quantity(round(span / timedelta(hours=1)), "hour") if rest else quantity(days, "day")


def utc_time(at: datetime) -> str:
    """A time in UTC to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def short_size(value: float) -> str:
    """Bytes with at most three digits: `195 KiB`, `1.4 MiB`, `1 MiB`, `17 B`."""
    for unit, name in _SIZES:
        if value >= unit:
            share = value / unit
            return f"{share:,.0f} {name}" if share >= 99.95 else f"{share:.1f} {name}".replace(".0 ", " ")
    return f"{value:,.0f} B"


def exact_size(value: int) -> str:
    """Bytes for somebody who has to set them: as from `short_size` if that is exact, else in full.

    >>> exact_size(1 << 20), exact_size(1536), exact_size(1408), exact_size(200_000)
    ('1 MiB', '1.5 KiB', '1408 B', '200000 B')
    """
    unit = next((unit for unit, _ in _SIZES if value >= unit), 1)
    parts = 1 if value >= 99.95 * unit else 10
    return f"{value} B" if value * parts % unit else short_size(value)


def percent(share: float | None) -> str:
    """A share in percent, with `100 %` only for all and `0 %` only for none. A ratio may be above 1."""
    if share is None:
        return "-"
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    if share > 1:
        return f"{100 * share:,.1f} %"
    in_percent = min(max(100 * share, 0.01), 99.99)
    return f"{in_percent:.2f} %" if in_percent < 1 or in_percent > 99 else f"{in_percent:.1f} %"


def whole_number_text(count: float) -> str:
    """A count as text, without decimals."""
    return f"{count:,.0f}"


def quantity(count: int, one: str, many: str | None = None) -> str:
    """`1 fetch`, `2,345 fetches`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def printable_value(value: object) -> object:
    """The value for a page or plot. In a text, characters with which a name from the wire could reverse other text are
    escaped.
    """
    return printable_text(value) if type(value) is str else value  # markup is ours


def client_name(client_id: str | None) -> str:
    """The name of a client in a sentence or a table."""
    return client_id or "(no client.id)"


def owner_phrase(client_id: str | None, of_client: int, of_all: int) -> str:
    """From which client most of some requests came, as the end of a sentence.

    >>> owner_phrase("team", 1, 1), owner_phrase("team", 7, 7)
    ('from team', 'all from team')
    >>> owner_phrase("team", 4, 7), owner_phrase("team", 2, 7)
    ('most of them from team (4)', 'no client has more than team (2)')
    """
    name = client_name(client_id)
    if of_client >= of_all:
        return f"from {name}" if of_all == 1 else f"all from {name}"
    if 2 * of_client > of_all:
        return f"most of them from {name} ({of_client:,})"
    return f"no client has more than {name} ({of_client:,})"


def changed_settings(lane: str) -> dict[str, str]:
    """The settings that a lane changes, by Kafka's own name, with their values as people write them."""
    return {_shortest_name(key): _NUMBER_AND_UNIT.sub(r" \1", value) for key, value in settings_in_name(lane).items()}


def lane_label(lane: str) -> str:
    """The name of a lane in a plot or table whose heading has the settings: `captured`, or `256 KiB · 1 MiB`."""
    return lane if lane == CAPTURED_LANE else SEPARATOR.join(changed_settings(lane).values())


def lane_heading(lanes: Sequence[str]) -> str:
    """The heading for the labels of these lanes: their settings. All lanes of a grid change the same settings."""
    return next((SEPARATOR.join(changed_settings(lane)) for lane in lanes if lane != CAPTURED_LANE), "lane")


def lane_phrase(lane: str) -> str:
    """A lane in a sentence: `with the captured settings`, or `with fetch.max.bytes=1 MiB and order=fixed`."""
    if lane == CAPTURED_LANE:
        return "with the captured settings"
    return f"with {changes_phrase(lane)}"


def changes_phrase(lane: str) -> str:
    """What a lane changes, as people write it: `fetch.max.bytes=1 MiB and order=fixed`."""
    return " and ".join(f"{key}={value}" for key, value in changed_settings(lane).items())


def lanes_phrase(lanes: Sequence[str]) -> str:
    """The lanes of a replay: the values of each setting if the lanes are all combinations of them; else each lane."""
    others = [lane for lane in lanes if lane != CAPTURED_LANE]
    values: dict[str, dict[str, None]] = {}
    for lane in others:
        for key, value in settings_in_name(lane).items():
            values.setdefault(key, {})[value] = None
    is_grid = all(settings_in_name(lane).keys() == values.keys() for lane in others)
    if not is_grid or len(others) != prod(map(len, values.values())):
        return "; ".join(lanes)
    tried = [f"{key}={','.join(of_key)}" for key, of_key in values.items()]
    every = "every combination of " if len(tried) > 1 else ""
    return "; ".join([*[CAPTURED_LANE] * (CAPTURED_LANE in lanes), *[every + " and ".join(tried)] * bool(tried)])


def capitalized(text: str) -> str:
    """The text with a capital first letter. The rest keeps its case, as names of settings must."""
    return text[:1].upper() + text[1:]


def _shortest_name(key: str) -> str:
    """Kafka's own name of a setting, if --set would take that name for this setting; else its key."""
    name = settings()[key].name if key in settings() else key
    return name if name == key or find_setting(name, settings().values()).key == key else key
