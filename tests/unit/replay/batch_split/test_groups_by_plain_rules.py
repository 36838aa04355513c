"""What a capture shows of closes, splits and batches is what follows from each sending, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from schemas.wire.errors import MESSAGE_TOO_LARGE
from udfs.columns.arrays import Records
from udfs.columns.records import new_records
from udfs.columns.sentinels import NONE
from udfs.columns.time_units import NEVER
from udfs.replay.batch_split.events import SENDING, Sent
from udfs.replay.batch_split.possible_estimates.events import groups_of_sendings
from udfs.replay.batch_split.possible_estimates.order import APART, no_order, times_in, write_order
from udfs.replay.batch_split.possible_estimates.state import (
    EARLY,
    LINGERED,
    NO_ESTIMATE,
    NOT_CUT,
    PLACED,
    WAITED,
    EstimateGroup,
)
from udfs.replay.batch_split.state import BATCH, PART, RECORD, SENT_PARTITION, Capture, SizeModel

MS, LINGER = 1000, 3000
KNOWN = {(0, 1): 0.5}


def drawn(seed: int) -> Sent:
    """Batches of three partitions of two topics, some of them sent again, whole or in part. Many times are equal."""
    rng = np.random.default_rng(seed)
    parts, batches, sendings = list[Records](), list[dict[str, int]](), list[dict[str, int]]()
    for partition in range(3):
        begin = sum(map(len, parts))
        counts = rng.integers(1, 4, int(rng.integers(1, 4)))
        records = new_records(
            RECORD, int(counts.sum()), time=np.sort(rng.integers(0, 12, counts.sum())) * MS, partition=partition,
            content=rng.integers(1, 200, counts.sum()), timestamp=rng.integers(0, 50, counts.sum()), part=NONE,
        )  # fmt: skip
        parts.append(records)
        for end in np.cumsum(counts).tolist():
            first = batches[-1]["end"] - begin if batches and batches[-1]["partition"] == partition else 0
            last = int(records["time"][end - 1])
            request = last + int(rng.integers(-1, 6)) * MS
            batches.append(
                {"partition": partition, "first": begin + first, "end": begin + end, "sending": len(sendings)}
            )
            whole = {
                "topic": int(partition > 1), "partition": partition, "request_time": request, "records": end - first,
                "response_time": request + int(rng.integers(0, 5)) * MS, "size": int(rng.integers(62, 900)),
                "not_before": int(rng.integers(-1, 14)) * MS, "codec": int(partition < 2 or seed % 3),
                "sequence": first if seed % 2 else NONE, "error": 0, "began_before": int(rng.random() < 0.3),
                "uncompressed": int(rng.choice([0, 100, 700])), "batch": len(batches) - 1, "made_by": NONE,
            }  # fmt: skip
            if rng.random() < 0.4:
                whole["error"] = MESSAGE_TOO_LARGE
            sendings.append(whole)
            for _ in range(int(rng.integers(0, 3))):
                offset = int(rng.integers(0, end - first))
                of, split = (int(rng.choice([NONE, number])) for number in (len(batches) - 1, len(sendings) - 1))
                again = whole | {
                    "offset": offset, "records": int(rng.integers(0, 4)), "made_by": split, "batch": of,
                    "request_time": request + int(rng.integers(0, 9)) * MS, "size": int(rng.integers(62, 900)),
                    "uncompressed": int(rng.choice([0, 100])),
                }  # fmt: skip
                again["sequence"] = first + offset if seed % 2 else NONE
                again["error"] = int(rng.choice([0, MESSAGE_TOO_LARGE]))
                again["response_time"] = NEVER if rng.random() < 0.2 else again["request_time"] + MS
                sendings.append(again)
    records = np.concatenate(parts)
    made = new_records(
        BATCH, len(batches), next_record=rng.integers(NONE, len(records), len(batches)),
        **{name: [of[name] for of in batches] for name in ("first", "end", "sending")},
    )  # fmt: skip
    partitions = new_records(SENT_PARTITION, 3, topic=[0, 0, 1], is_sticky=rng.integers(0, 2, 3))
    order, none = np.argsort(records["time"], kind="stable"), np.zeros((0, 0))
    capture = Capture(records, order, made, np.zeros(0, PART), partitions, SizeModel(none, none[None]))
    columns = {name: [of.get(name, 0) for of in sendings] for name in SENDING.names or ()}
    return Sent(["a", "b"], new_records(SENDING, len(sendings), **columns), capture)


class Shown:
    """What the sendings show, one at a time. in_turn: the records as they were appended."""

    def __init__(self, sent: Sent) -> None:
        self.sendings, self.records, self.batches = sent.sendings, sent.capture.records, sent.capture.batches
        self.is_sticky = [bool(of) for of in sent.capture.partitions["is_sticky"]]
        self.in_turn: list[int] = sent.capture.append_order.tolist()
        self.firsts = {int(sending): number for number, sending in enumerate(self.batches["sending"])}

    def place(self, record: int) -> int:
        return self.in_turn.index(record)

    def appended_until(self, place: int) -> int:
        """When a record had been appended at the latest: the ms in which it or the next record was sent had ended."""
        return max(int(self.records["time"][record]) for record in self.in_turn[place : place + 2]) + MS

    def last_record(self, number: int) -> int:
        sending = self.sendings[number]
        if sending["batch"] == NONE:
            return NONE
        batch = self.batches[sending["batch"]]
        return min(int(batch["first"] + sending["offset"] + sending["records"]), int(batch["end"])) - 1

    def in_request_order(self, numbers: Sequence[int]) -> list[int]:
        return sorted(numbers, key=lambda number: (int(self.sendings["request_time"][number]), number))

    def answer_before(self, number: int) -> int:
        """When the last sending of the record before a sending's records was answered."""
        record = self.last_record(number) - int(self.sendings["records"][number])
        earlier = [
            other for other in self.in_request_order(range(len(self.sendings)))
            if self.sendings["request_time"][other] < self.sendings["request_time"][number]
            and self.last_record(other) == record != NONE
            and self.sendings["partition"][other] == self.sendings["partition"][number]
        ]  # fmt: skip
        return int(self.sendings["response_time"][earlier[-1]]) if earlier else NEVER

    def earliest(self, number: int) -> int:
        """The earliest time of the close."""
        sending, last = self.sendings[number], self.last_record(number)
        bounds = []
        if last != NONE and sending["records"] > 0:
            bounds.append(int(self.records["time"][last]))
            if number not in self.firsts:
                bounds.append(int(self.sendings["response_time"][self.batches["sending"][sending["batch"]]]))
                bounds += [self.answer_before(number)] if sending["sequence"] >= 0 else []
        bounds = [0 if bound >= sending["request_time"] else bound for bound in bounds]
        return max([int(sending["not_before"]), *bounds])

    def first_part(self, number: int) -> int:
        return min((int(of["request_time"]) for of in self.sendings if of["made_by"] == number), default=NEVER)

    def ratio(self, number: int) -> float:
        sending = self.sendings[number]
        return float(np.float32(sending["size"] - 61) / np.float32(max(sending["uncompressed"], 1)))

    def closed(self, group: EstimateGroup) -> list[int]:
        of = [n for n in np.flatnonzero(group.is_of).tolist() if self.sendings["uncompressed"][n] > 0]
        return self.in_request_order(of)

    def refused(self, group: EstimateGroup) -> list[int]:
        is_refused = (self.sendings["error"] == MESSAGE_TOO_LARGE) & (self.sendings["records"] > 1)
        of = np.flatnonzero(group.is_of & is_refused).tolist()
        return sorted(of, key=lambda number: (int(self.sendings["response_time"][number]), number))

    def closes(self, group: EstimateGroup) -> list[dict[str, Any]]:
        closed, refused = self.closed(group), self.refused(group)
        rows = []
        for place, number in enumerate(closed):
            last, made_by = self.last_record(number), int(self.sendings["made_by"][number])
            rows.append(
                {
                    "latest": self.sendings["request_time"][number], "earliest": self.earliest(number),
                    "none_before": min(self.earliest(later) for later in closed[place:]),
                    "after": NONE if last == NONE else self.place(last), "ratio": self.ratio(number),
                    "splits": refused.index(made_by) + 1 if made_by in refused else 0,
                }
            )  # fmt: skip
        return rows

    def splits(self, group: EstimateGroup) -> list[dict[str, Any]]:
        closed, rows = self.closed(group), []
        for number in self.refused(group):
            sending, part = self.sendings[number], self.first_part(number)
            until = sending["response_time"] if part == NEVER else part
            before = [place for place, other in enumerate(closed) if other in self.firsts
                      and self.sendings["partition"][other] == sending["partition"]
                      and self.sendings["request_time"][other] < until]  # fmt: skip
            rows.append(
                {
                    "earliest": sending["response_time"], "latest": part, "after": before[-1] if before else NONE,
                    "ratio": self.ratio(number),
                }
            )  # fmt: skip
        return rows

    def created(self, group: EstimateGroup) -> list[dict[str, Any]]:
        """The batches as they were created."""
        own = [n for n in range(len(self.batches)) if group.is_of[self.batches["sending"][n]]]
        own.sort(key=lambda number: self.place(int(self.batches["first"][number])))
        closed = self.closed(group)
        rows = []
        for number in own:
            batch, sending = self.batches[number], int(self.batches["sending"][number])
            first, end = self.records[batch["first"]], int(batch["end"])
            after = self.records[end] if end < len(self.records) else None
            after = after if after is not None and after["partition"] == first["partition"] else None
            other = self.records[batch["next_record"]] if batch["next_record"] != NONE else None
            if other is not None and (
                other["partition"] == first["partition"] or not self.is_sticky[first["partition"]]
            ):
                other = None
            came = [of for of in (after, other) if of is not None]
            before = [place for place, one in enumerate(own) if self.batches["end"][one] == batch["first"]
                      and self.records["partition"][batch["first"] - 1] == first["partition"]]  # fmt: skip
            sent_before = int(self.batches["sending"][own[before[0]]]) if before else NONE
            rows.append(
                {
                    "time": first["time"], "until": self.appended_until(self.place(int(batch["first"]))),
                    "place": self.place(int(batch["first"])),
                    "later": sum(bool(of["time"] <= first["time"]) for of in self.records),
                    "first": batch["first"], "end": end, "before": before[0] if before else NONE,
                    "close_before": closed.index(sent_before) if sent_before in closed else NONE,
                    "other_content": NONE if other is None else other["content"],
                    "cut": self.cut(sending, int(first["time"]), came, None if after is None else end),
                    **({"next_content": came[0]["content"], "next_timestamp": came[0]["timestamp"]} if came else {}),
                    **({} if other is None else {"other_timestamp": other["timestamp"]}),
                }
            )  # fmt: skip
        return rows

    def cut(self, sending: int, begun: int, came: Sequence[Any], after: int | None) -> int:
        """Whether the batch may have been sent before the records came that may have ended it."""
        not_before = int(self.sendings["not_before"][sending])
        comes = min((int(of["time"]) for of in came), default=NEVER)
        if comes >= max(not_before, begun + LINGER):
            return LINGERED
        if comes >= not_before:
            return EARLY
        return WAITED if after is not None and self.appended_until(self.place(after)) >= not_before else NOT_CUT

    def initial(self, group: EstimateGroup) -> float:
        begun = next(self.sendings[of] for of in self.batches["sending"] if group.is_of[of])
        is_unknown = group.codec != 0 and (begun["began_before"] == 1 or begun["sequence"] > 0)
        return KNOWN.get((group.topic, group.codec), NO_ESTIMATE if is_unknown else 1.0)


def rows_of(records: Records, expected: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fields of the records that are expected."""
    return [{name: row[name].item() for name in of} for row, of in zip(records, expected, strict=True)]


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_groups_are_those_of_plain_rules(first: int) -> None:
    for seed in range(first, first + 40):
        sent = drawn(seed)
        shown, groups = Shown(sent), list(groups_of_sendings(sent, LINGER, KNOWN))
        keys = {(int(of["topic"]), int(of["codec"])) for of in sent.first_sendings}
        assert [(group.topic, group.codec) for group in groups] == sorted(keys)
        for group in groups:
            own = (sent.sendings["topic"] == group.topic) & (sent.sendings["codec"] == group.codec)
            assert group.is_of.tolist() == own.tolist()
            assert (group.closed.tolist(), group.refused.tolist()) == (shown.closed(group), shown.refused(group))
            assert group.initial == shown.initial(group)
            for found, expected in (
                (group.closes, shown.closes(group)), (group.splits, shown.splits(group)),
                (group.batches, shown.created(group)),
            ):  # fmt: skip
                plain = [
                    {name: getattr(of, "item", lambda of=of: of)() for name, of in row.items()} for row in expected
                ]
                assert (seed, rows_of(found, expected)) == (seed, plain)


Event = tuple[int, int]
"""Whether it is a split, and of which sending."""


class Placed:
    """Where each close and split stands, as far as the batches show it, one at a time."""

    def __init__(self, shown: Shown) -> None:
        self.shown, self.n = shown, len(shown.in_turn)
        self.known: dict[Event, tuple[int, int, int]] = {}  # place, rank, earliest

    def note(self, group: EstimateGroup, number: int, placed: Records) -> None:
        """Take what is known of a group. placed: PLACED[closes, then splits]."""
        events = [(0, int(of)) for of in group.closed] + [(1, int(of)) for of in group.refused]
        earliest = [*group.closes["earliest"].tolist(), *group.splits["earliest"].tolist()]
        for event, since, (batch, rank) in zip(events, earliest, placed.tolist(), strict=True):
            if batch != NONE:
                self.known[event] = int(group.batches["place"][batch]), rank + number * APART, since

    def latest(self, event: Event) -> int:
        sending = self.shown.sendings[event[1]]
        if event[0] == 0:
            return int(sending["request_time"])
        if sending["error"] != MESSAGE_TOO_LARGE:
            return NEVER
        part = self.shown.first_part(event[1])
        return int(sending["response_time"]) if part == NEVER else part

    def is_ranked(self, event: Event) -> bool:
        if event[0] == 1 and NEVER in (self.latest(event), self.shown.first_part(event[1])):
            return False
        return event in self.known

    def begun(self, place: int) -> int:
        return int(self.shown.records["time"][self.shown.in_turn[place]]) // MS * MS

    def place(self, event: Event) -> int:
        """Before which record an event stands: no later than its own time allows, and than the events behind it."""
        events = [event]
        if self.is_ranked(event):
            rank = self.known[event][1]
            events += [other for other, (_, behind, _) in self.known.items() if self.is_ranked(other)
                       and behind > rank and behind // APART == rank // APART]  # fmt: skip
        by_time = [sum(self.begun(place) <= self.latest(of) for place in range(self.n)) for of in events]
        return min([*by_time, *(self.known[of][0] for of in events if of in self.known)])

    def times(self) -> tuple[dict[int, int], dict[Event, int]]:
        """(when each record was appended; when each event was)."""
        events = [(kind, number) for kind in (0, 1) for number in range(len(self.shown.sendings))]
        line: list[tuple[int, int, int, int, int, int | Event]] = []  # place, is a record, rank, until, earliest, which
        for place in range(self.n):
            line.append((place, 1, NEVER, self.begun(place) + MS - 1, 0, place))
        for event in events:
            _, rank, earliest = self.known.get(event, (0, NEVER, 0))
            earliest = earliest if self.is_ranked(event) else 0
            line.append((self.place(event), 0, rank, self.latest(event), earliest, event))
        line.sort(key=lambda of: of[:4])
        since = [max(line[j][4] + k - j for j in range(k + 1)) for k in range(len(line))]
        until = [max(of[3], since[k]) if of[1] else of[3] for k, of in enumerate(line)]
        time = {of[5]: min(until[j] - (j - k) for j in range(k, len(line))) for k, of in enumerate(line)}
        records = {self.shown.in_turn[of]: at for of, at in time.items() if isinstance(of, int)}
        return records, {of: at for of, at in time.items() if not isinstance(of, int)}


@pytest.mark.parametrize("first", range(1000, 1060, 20))
def test_times_are_the_latest_that_keep_to_the_order_that_is_known(first: int) -> None:
    for seed in range(first, first + 20):
        sent, rng = drawn(seed), np.random.default_rng(seed)
        order, plain = no_order(len(sent.sendings)), Placed(Shown(sent))
        for number, group in enumerate(groups_of_sendings(sent, LINGER, {})):
            events = len(group.closed) + len(group.refused)
            placed = new_records(PLACED, events, batch=rng.integers(NONE, len(group.batches), events))
            placed["rank"] = rng.permutation(events)
            write_order(order, group, number, placed)
            plain.note(group, number, placed)
        times, (records, events_at) = times_in(order, sent), plain.times()
        assert (seed, times.append.tolist()) == (seed, [records[record] for record in range(len(times.append))])
        for kind, found in enumerate((times.close, times.split)):
            assert (seed, found.tolist()) == (seed, [events_at[kind, number] for number in range(len(found))])
