"""What screen and advice say about an aim: the setting that meets it, or what to relax."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from pyspark.sql import Row

from jobs.find.scopes import Scope
from jobs.report_page.advice.aim_advice import replace_by_aims
from jobs.report_page.advice.aims import aim_settings, trade_off_lanes
from jobs.report_page.advice.alike import owners_text
from jobs.report_page.advice.batch_sizes import split_producers, split_topics
from jobs.report_page.advice.client_rows import CLIENT
from jobs.report_page.advice.fetch_limits import SHOWN, consumer_lanes
from jobs.report_page.advice.recommendation import Confidence, InForce, Recommendation
from jobs.report_page.aim_lines import TRADE_OFFS_ELSEWHERE, aim_lines, lanes_column, rows_by_aim
from jobs.report_page.page import aim_part
from jobs.report_page.question import Findings, Unplotted
from jobs.report_page.trade_off_plot import trade_off_plot
from schemas.tables.gold_aims import AIM_SETTINGS, TRADE_OFF
from schemas.tables.values import CAPTURED as FROM_CAPTURE
from schemas.tables.values import CHANGE, DEFAULT, INFERRED, KEEP, OF_CLIENT, OF_CLUSTER, OF_LIMIT, OF_TOPIC, WITHHELD
from tests.unit.report.findings import findings, row_of
from udfs.replay.batch_split.settings import BATCH_SIZE as BATCH

MiB = 1 << 20
FETCH = "consumer.fetch.max.bytes"
LANE = f"{FETCH}=2MiB"
AIM = f"fetch_max_bytes: least catch_up where held <= 8MiB over {FETCH}=1MiB..64MiB"
MEETS = {"catch_up": 250.0, "catch_up_p90": 300.0, "held": 4.0 * MiB, "held_p90": 4.0 * MiB}
CAPTURED = {"catch_up": inf, "catch_up_p90": inf, "held": 1.0 * MiB, "held_p90": 1.0 * MiB}


def setting(**values: Any) -> Row:
    told = {
        "algorithm": "fetch_max_bytes", "scope_kind": OF_CLUSTER, "setting": FETCH, "aim": AIM, "scenario": LANE,
        "is_met": True, "value": "2MiB", "value_from": "1MiB", "value_to": "8MiB", "outcomes": MEETS,
        "captured": CAPTURED, "lanes_replayed": 70, "rounds": 3,
    }  # fmt: skip
    return row_of(AIM_SETTINGS, **(told | values))


def lane(name: str, outcomes: dict[str, float], **values: Any) -> Row:
    told = {"algorithm": "fetch_max_bytes", "scope_kind": OF_CLUSTER, "scenario": name, "outcomes": outcomes}
    return row_of(TRADE_OFF, **told, **values)


def of(row: Row, *lanes: Row) -> Findings:
    return findings({aim_settings: [row], trade_off_lanes: list(lanes)}, {"fetch_max_bytes": ("captured", LANE)})


OWN_LANE = f"{FETCH}=8MiB"


def alone(name: str, **values: Any) -> Row:
    """A row of one client that has a lane of its own."""
    own = {"catch_up": 100.0, "catch_up_p90": 120.0, "held": 8.0 * MiB, "held_p90": 8.0 * MiB}
    told = {
        "scope_kind": OF_CLIENT, "scope": name, "scenario": OWN_LANE, "value": "8MiB", "value_from": "8MiB",
        "value_to": "8MiB", "outcomes": own, "captured": MEETS, "for_all": MEETS,
    }  # fmt: skip
    return setting(**(told | values))


def usual(key: str) -> Recommendation:
    now = InForce("1", DEFAULT)
    return Recommendation("fetch_max_bytes", Scope(), key, KEEP, now, "1", Confidence(), "as usual")


def test_the_screen_shows_what_meets_the_aim_which_values_do_as_well_and_what_other_lanes_trade() -> None:
    found = of(
        setting(binds=["held <= 8MiB"]),
        lane(LANE, MEETS, is_met=True, is_chosen=True),
        lane("captured", CAPTURED, is_met=True),
    )
    told = "\n".join(aim_lines(found))
    assert "AIM       fetch_max_bytes: least catch_up where held <= 8MiB" in told
    assert "met by fetch.max.bytes=2 MiB: catch_up 250 ms, p90 300 ms; held 4 MiB" in told
    assert f"any {FETCH} from 1 MiB to 8 MiB does as well" in told
    assert "what binds: held <= 8MiB" in told
    chosen, captured = told.splitlines()[-2:]
    assert chosen.split() == ["2", "MiB", "250", "ms,", "p90", "300", "ms", "4", "MiB", "chosen"]
    assert captured.split() == ["replayed", "as", "captured", "without", "end", "1", "MiB"]


def test_a_trade_off_of_two_settings_and_three_outcomes_fits_a_screen() -> None:
    slow = {"catch_up": 168.0, "catch_up_p90": 466.0, "held": 571.0 * 1024, "held_p90": 644.0 * 1024}
    slow |= {"longest_wait": 120.0, "longest_wait_p90": 202.0}
    two = f"{FETCH}=328KiB,consumer.max.partition.fetch.bytes=584KiB"
    aim = AIM.replace(" over", " and longest_wait <= 1ms over")
    lanes = [lane(two, slow, is_met=False), lane("captured", slow, is_chosen=True)]
    searched = setting(aim=aim, outcomes=slow, captured=slow)
    found = findings({aim_settings: [searched], trade_off_lanes: lanes}, {"fetch_max_bytes": ("captured", two)})
    told = [line for line in aim_lines(found) if line.startswith("        ")]
    assert max(map(len, told)) <= 120
    assert told[-1].strip() == "A lane is named by its values of fetch.max.bytes · max.partition.fetch.bytes."


def test_a_screen_with_room_for_a_part_of_the_trade_off_shows_the_lanes_next_to_the_chosen_one() -> None:
    names = [f"{FETCH}={n}MiB" for n in range(1, 9)]
    lanes = [lane(name, MEETS, is_met=True, is_chosen=name == names[5]) for name in names]
    of_run = {"fetch_max_bytes": ("captured", *names)}
    found = findings({aim_settings: [setting()], trade_off_lanes: lanes}, of_run)
    lines = aim_lines(found, len(aim_lines(found)) - 2)
    assert [line.split()[0] for line in lines if " MiB " in line and "p90" in line and "met by" not in line] == [
        "5", "6", "7"
    ]  # fmt: skip
    assert lines[-1].strip() == TRADE_OFFS_ELSEWHERE
    assert len(lines) <= len(aim_lines(found)) - 2


def test_an_aim_for_the_least_value_of_a_setting_says_that_the_value_is_the_gain() -> None:
    aim = f"fetch_max_bytes: least {FETCH} where held <= 8MiB over {FETCH}"
    found = of(setting(aim=aim, outcomes=MEETS, captured=MEETS), lane(LANE, MEETS, is_met=True, is_chosen=True))
    (made,) = replace_by_aims(found, [])
    assert made.verdict == CHANGE
    assert made.gain.text == f"least {FETCH} of those that meet the aim; held 4 MiB, unchanged"


def test_a_screen_without_room_shows_what_meets_the_aim_and_leaves_the_trade_off_to_the_report() -> None:
    found = of(
        setting(binds=["held <= 8MiB"]),
        lane(LANE, MEETS, is_met=True, is_chosen=True),
        lane("captured", CAPTURED, is_met=True),
    )
    whole = aim_lines(found)
    assert aim_lines(found, len(whole)) == whole
    without = aim_lines(found, len(whole) - 1)
    assert without[-1].strip() == TRADE_OFFS_ELSEWHERE
    assert without[:-1] == whole[: len(without) - 1]
    assert "what binds: held <= 8MiB" in "\n".join(without)
    assert "chosen" not in "\n".join(without)
    least = aim_lines(found, 0)
    assert [line.split()[0] for line in least] == ["AIM", "met", "what"]


def test_the_trade_off_is_drawn_with_the_chosen_lane_marked_and_the_bounded_outcome_at_its_p90() -> None:
    small = {"catch_up": 400.0, "catch_up_p90": 500.0, "held": 2.0 * MiB, "held_p90": 3.0 * MiB}
    lanes = [lane(LANE, MEETS, is_chosen=True), lane("captured", small)]
    plot = trade_off_plot(of(setting(), *lanes), setting())
    assert [tuple(row.values()) for row in plot.rows] == [
        ("2 MiB, chosen", 4 * MiB, 250), ("captured", 3 * MiB, 400)
    ]  # fmt: skip
    assert plot.colour is not None
    assert plot.colour.title == "fetch.max.bytes"
    assert (plot.x.title, plot.x.scale, plot.y.title, plot.y.scale) == ("held", "bytes", "catch_up", "ms")


@pytest.mark.parametrize(("least_ms", "in_doublings"), [(400.0, False), (4.0, True), (0.0, False)])
def test_outcomes_that_are_far_apart_are_drawn_in_doublings_if_none_is_0(least_ms: float, in_doublings: bool) -> None:
    small = {"catch_up": least_ms, "catch_up_p90": least_ms, "held": 2.0 * MiB, "held_p90": 3.0 * MiB}
    plot = trade_off_plot(of(setting(), lane(LANE, MEETS), lane("captured", small)), setting())
    assert (plot.x.log, plot.y.log) == (False, in_doublings)


def test_lanes_that_never_end_and_aims_of_one_outcome_are_not_drawn() -> None:
    with pytest.raises(Unplotted, match="fewer than two lanes"):
        trade_off_plot(of(setting(), lane(LANE, MEETS), lane("captured", CAPTURED)), setting())
    alone = setting(aim=f"fetch_max_bytes: least catch_up over {FETCH}=1MiB..64MiB")
    with pytest.raises(Unplotted, match="one outcome alone"):
        trade_off_plot(of(alone, lane(LANE, MEETS)), alone)


def test_the_page_has_each_aim_with_its_result() -> None:
    found = of(setting(binds=["held <= 8MiB"]), lane(LANE, MEETS, is_met=True, is_chosen=True))
    (part,) = (aim_part(found, rows) for rows in rows_by_aim(found))
    assert part.asks == "fetch_max_bytes: least catch_up where held <= 8MiB"
    assert "what binds: held <= 8MiB" in part.sentences
    assert part.grid.rows[0][-1] == "chosen"


def test_the_screen_says_what_to_relax() -> None:
    found = of(setting(is_met=False, relax=["held <= 9MiB", "longest_wait <= 2s"]))
    assert "no setting meets it: relax it to held <= 9MiB or to longest_wait <= 2s" in "\n".join(aim_lines(found))


def test_an_aim_advises_on_its_settings_instead_of_the_usual_advice() -> None:
    other, own = replace_by_aims(of(setting()), [usual(FETCH), usual("consumer.max.poll.records")])
    assert (other.setting, other.reason) == ("consumer.max.poll.records", "as usual")
    assert (own.setting, own.verdict, own.recommended, own.enough) == (FETCH, CHANGE, str(2 * MiB), str(MiB))
    assert (own.gain.text, own.gain.before, own.gain.after) == ("catch_up without end -> 250 ms, p90 300 ms", None, 250)
    assert own.cost.text == "held 1 MiB -> 4 MiB"


def test_a_setting_that_exists_only_in_the_model_is_not_advised() -> None:
    growth = setting(setting="traffic.speed", value="2", value_from="2", value_to="2")
    assert list(replace_by_aims(of(growth), [usual(FETCH)])) == [usual(FETCH)]


def test_an_aim_that_nothing_meets_is_withheld_with_what_to_relax() -> None:
    (own,) = replace_by_aims(of(setting(is_met=False, relax=["held <= 9MiB"])), [])
    assert (own.verdict, own.recommended) == (WITHHELD, None)
    assert own.reason == "No lane of 70 meets the aim; one would with held <= 9MiB."


def test_settings_in_force_that_are_as_good_are_kept() -> None:
    (own,) = replace_by_aims(of(setting(scenario="captured", value=None, value_from=None, value_to=None)), [])
    assert (own.verdict, own.recommended) == (KEEP, own.now.value)


@pytest.mark.parametrize(
    ("held", "gain", "cost"),
    [
        (4 * MiB, "catch_up without end -> 250 ms, p90 300 ms", "held 1 MiB -> 4 MiB"),
        (MiB, "catch_up without end -> 250 ms, p90 300 ms", "held 1 MiB, unchanged"),
        (MiB // 2, "catch_up without end -> 250 ms, p90 300 ms; held 1 MiB -> 512 KiB", ""),
    ],
)
def test_an_outcome_that_gets_better_is_a_gain_even_if_the_aim_only_bounds_it(held: int, gain: str, cost: str) -> None:
    (made,) = replace_by_aims(of(setting(outcomes=MEETS | {"held": float(held), "held_p90": float(held)})), [])
    assert (made.gain.text, made.cost.text) == (gain, cost)


def test_an_outcome_that_is_0_before_and_after_costs_nothing() -> None:
    nothing = {"held": 0.0, "held_p90": 0.0}
    (made,) = replace_by_aims(of(setting(outcomes=MEETS | nothing, captured=CAPTURED | nothing)), [])
    assert made.cost.text == ""


LANES = {"fetch_max_bytes": ("captured", LANE, OWN_LANE)}


def test_the_screen_has_a_line_for_each_client_with_a_lane_of_its_own_those_that_gain_most_first() -> None:
    little = {"catch_up": 200.0, "catch_up_p90": 240.0, "held": 4.0 * MiB, "held_p90": 4.0 * MiB}
    found = findings({aim_settings: [setting(), alone("a", outcomes=little), alone("b")], trade_off_lanes: []}, LANES)
    told = [line.strip() for line in aim_lines(found) if "alone" in line]
    assert told == [
        "b alone: fetch.max.bytes=8 MiB: catch_up 100 ms, p90 120 ms instead of 250 ms, p90 300 ms",
        "a alone: fetch.max.bytes=8 MiB: catch_up 200 ms, p90 240 ms instead of 250 ms, p90 300 ms",
    ]
    assert len(rows_by_aim(found)) == 1


def test_a_client_with_a_lane_of_its_own_has_a_row_of_its_own_beside_that_for_all() -> None:
    asked = Row(**{
        CLIENT: "b", "scenario": "captured", "checked": 7, "agreed": 6, "unknown": 1, SHOWN[FETCH]: [MiB],
    })  # fmt: skip
    other = Row(**{**asked.asDict(), CLIENT: "a", SHOWN[FETCH]: [3 * MiB]})
    found = findings({aim_settings: [setting(), alone("b")], consumer_lanes: [other, asked]}, LANES)
    every, own = replace_by_aims(found, [])
    assert (every.scope, every.now.value, every.recommended) == (Scope(), f"{MiB}, {3 * MiB}", str(2 * MiB))
    assert (own.scope, own.verdict, own.recommended) == (Scope(OF_CLIENT, "b"), CHANGE, str(8 * MiB))
    assert (own.now, own.sure) == (InForce(str(MiB), FROM_CAPTURE), Confidence(7, 6, 1))
    assert own.reason == (
        "Alone it is better than with what is best for all: catch_up 100 ms, p90 120 ms instead of 250 ms, p90 300 ms."
    )
    assert (own.gain.before, own.gain.after) == (250, 100)


def test_a_client_that_is_better_off_as_captured_keeps_what_it_has() -> None:
    row = alone("b", scenario="captured", value=None, value_from=None, value_to=None)
    _, own = replace_by_aims(findings({aim_settings: [setting(), row]}, LANES), [])
    assert (own.scope, own.verdict, own.recommended) == (Scope(OF_CLIENT, "b"), KEEP, own.now.value)


def test_if_no_setting_suits_all_clients_one_that_suits_a_single_client_is_shown() -> None:
    found = findings({aim_settings: [setting(is_met=False, relax=["held <= 9MiB"]), alone("b")]}, LANES)
    every, own = replace_by_aims(found, [])
    assert (every.verdict, own.verdict) == (WITHHELD, CHANGE)
    told = "catch_up 100 ms, p90 120 ms; held 8 MiB"
    assert own.reason == f"It meets the aim alone, and no setting meets it for all: {told}."
    assert any(line.strip() == f"b alone: fetch.max.bytes=8 MiB: {told}" for line in aim_lines(found))


def test_a_topic_is_shown_with_its_limit_and_the_batch_size_of_its_producers() -> None:
    aim = "batch_split: most producer.batch.size where split_rate <= 1% over producer.batch.size=1KiB..1MiB"
    none = {"split_rate": 0.0, "split_rate_p90": 0.0}
    told = {"algorithm": "batch_split", "setting": "producer.batch.size", "aim": aim, "outcomes": none}
    told |= {"captured": none, "for_all": none}
    small, large = ({"scenario": f"producer.batch.size={size}", "value": size} for size in ("4KiB", "64KiB"))
    own = alone("orders", **told, **large, scope_kind=OF_TOPIC)
    topic = Row(topic="orders", sizes=[8192], is_told=True, max_message_bytes=MiB)
    rows = [setting(**told, **small), own]
    found = findings({aim_settings: rows, split_topics: [topic], trade_off_lanes: []}, {"batch_split": ("captured",)})
    _, made = replace_by_aims(found, [])
    assert (made.scope, made.now, made.recommended) == (Scope(OF_TOPIC, "orders"), InForce("8192", INFERRED), "65536")
    line = next(line.strip() for line in aim_lines(found) if "alone" in line)
    assert line == "topic orders (1 MiB at most) alone: batch.size=64 KiB instead of batch.size=4 KiB"


def test_topics_of_one_limit_are_shown_together_with_the_batch_sizes_of_their_producers() -> None:
    aim = "batch_split: most producer.batch.size where split_rate <= 1% over producer.batch.size=1KiB..1MiB"
    none = {"split_rate": 0.0, "split_rate_p90": 0.0}
    told = {"algorithm": "batch_split", "setting": "producer.batch.size", "aim": aim, "outcomes": none}
    told |= {"captured": none, "for_all": none}
    small, large = ({"scenario": f"producer.batch.size={size}", "value": size} for size in ("4KiB", "64KiB"))
    own = alone(str(MiB), **told, **large, scope_kind=OF_LIMIT)
    topics = [
        Row(topic=name, sizes=[size], is_told=is_told, max_message_bytes=limit)
        for name, size, is_told, limit in [
            ("a", 8192, False, MiB), ("b", 16384, True, MiB), ("small", 1024, False, 4096), ("c", 8192, False, MiB),
            ("d", 8192, False, MiB),
        ]
    ]  # fmt: skip
    rows = [setting(**told, **small), own]
    found = findings({aim_settings: rows, split_topics: topics, trade_off_lanes: []}, {"batch_split": ("captured",)})
    _, made = replace_by_aims(found, [])
    assert (made.scope, made.now, made.recommended) == (
        Scope(OF_LIMIT, str(MiB)), InForce("8192, 16384", INFERRED), "65536"
    )  # fmt: skip
    line = " ".join(" ".join(line.strip() for line in aim_lines(found)).split())
    says = "topics of max.message.bytes=1 MiB (a, b, c, 1 more) alone: batch.size=64 KiB instead of batch.size=4 KiB"
    assert says in line
    assert owners_text([made]) == "topics of max.message.bytes=1 MiB"


def test_an_aim_for_some_clients_gives_advice_for_each_of_them_and_none_for_others() -> None:
    named = setting(aim=AIM.replace("where", "for client=orders-* where"))
    clients = [{CLIENT: name, "scenario": "captured", SHOWN[FETCH]: [1 * MiB]} for name in ("orders-1", "billing")]
    own = [alone("orders-2", aim=named[AIM_SETTINGS.aim])]
    found = findings(
        {
            aim_settings: [named, *own],
            consumer_lanes: [Row(**{**of, "checked": 9, "agreed": 9, "unknown": 0}) for of in clients],
        },
        {"fetch_max_bytes": ("captured", LANE)},
    )
    before = [replace(usual(FETCH), scope=Scope(OF_CLIENT, name)) for name in ("orders-1", "orders-2", "billing")]
    advised = {one.scope.name: one.recommended for one in replace_by_aims(found, before)}
    assert advised == {"orders-1": f"{2 * MiB}", "orders-2": f"{8 * MiB}", "billing": "1"}


def test_lanes_of_many_settings_have_their_values_in_a_column_and_the_names_below() -> None:
    one = f"{FETCH}=2MiB,consumer.max.poll.records=500"
    two = f"{FETCH}=2MiB,consumer.max.partition.fetch.bytes=1MiB,consumer.max.poll.records=500"
    assert lanes_column(["captured", one]) == (
        "fetch.max.bytes · max.poll.records",
        ["replayed as captured", "2 MiB · 500"],
        [],
    )
    heading, labels, notes = lanes_column([two, f"{FETCH}=1MiB"])
    assert (heading, labels) == ("lane", ["2 MiB · 1 MiB · 500", "1 MiB · - · -"])
    names = "fetch.max.bytes · max.partition.fetch.bytes · max.poll.records"
    assert notes == [f"A lane is named by its values of {names}.", "- stands for the captured value."]
    assert lanes_column([f"{FETCH}=1MiB", one])[2] == notes[1:]
    assert lanes_column(["captured"]) == ("lane", ["replayed as captured"], [])


def test_a_batch_size_for_all_is_shown_with_those_that_producers_have_and_the_batches_that_it_costs() -> None:
    aim = f"batch_split: most {BATCH} where split_rate <= 0.01 over {BATCH}=1KiB..1MiB"
    figures = {"split_rate": 0.05, "split_rate_p90": 0.1, "batches": 100.0, "batches_p90": 100.0}
    row = setting(
        algorithm="batch_split", setting=BATCH, aim=aim, scenario=f"{BATCH}=8KiB", value="8KiB", captured=figures,
        outcomes={"split_rate": 0.0, "split_rate_p90": 0.0, "batches": 140.0, "batches_p90": 140.0},
    )  # fmt: skip
    sizes = {"a": 38_000, "b": 16_384, "c": 38_000}
    producers = [
        Row(
            client_id=name,
            scenario="captured",
            batch_size=size,
            is_batch_size_told=True,
            checked=1,
            agreed=1,
            unknown=0,
        )
        for name, size in sizes.items()
    ]
    found = findings({aim_settings: [row], split_producers: producers}, {"batch_split": ("captured", f"{BATCH}=8KiB")})
    (advised,) = replace_by_aims(found, [])
    assert advised.now == InForce("16384, 38000", INFERRED)
    assert advised.cost.text == "batches 100 -> 140"
