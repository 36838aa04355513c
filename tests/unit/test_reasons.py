"""Every word by which tables say why something could not be compared or read is declared once, with what to do."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from pathlib import Path

import pytest

import udfs
from jobs.doc_pages import reason_docs
from jobs.scenarios.scenario_file import resolve_scenario
from jobs.scenarios.settings import find_setting, settings
from schemas.tables import fault_reasons, fetch_reasons, memory_reasons
from schemas.tables.fault_reasons import FAULT_REASONS
from schemas.tables.fetch_reasons import CLOSED_OBSTACLES
from schemas.tables.fidelity_reasons import FIDELITY_REASONS, reason_of
from schemas.tables.limit_reasons import CHANGES
from schemas.tables.metrics import METRICS
from schemas.tables.quota_reasons import THROTTLES
from schemas.tables.reason import FaultReasons, FidelityReason, FidelityReasons
from schemas.tables.session_reasons import SESSIONS, SHARES
from schemas.tables.silver import SILVER
from schemas.tables.split_reasons import SPLITS
from udfs.capture.compression import Compression
from udfs.capture.faults import FaultReason
from udfs.capture.packet_walk import CaptureFormat
from udfs.facts import quarantine_reasons as quarantine
from udfs.replay.batch_split.fidelity import Metric as SplitMetric
from udfs.replay.shared.correlation_ids import Fit
from udfs.wire.faults import DecodeFault
from udfs.wire.records import RecordsFault

NO_REASONS = {CaptureFormat, Compression, SplitMetric, Fit}
"""Words of other kinds: what is compared, how a file is stored, and whether a connection is of a process."""

GIVEN: Mapping[str, tuple[FidelityReasons | FaultReasons, Iterable[str]]] = {
    "quarantine": (fault_reasons.QUARANTINE, quarantine.QuarantineReason),
    "decoding": (fault_reasons.DECODE, [fault.name.lower() for fault in DecodeFault if fault != DecodeFault.OK]),
    "captures": (fault_reasons.CAPTURE, FaultReason),
    "records": (fault_reasons.RECORDS, RecordsFault),
}
"""What is declared, and the words that the code gives."""

DERIVED = (
    fetch_reasons.OPEN_FETCHES, fetch_reasons.CLOSED_FETCHES, fetch_reasons.FETCHERS, memory_reasons.DRAINED,
    memory_reasons.HELD, memory_reasons.QUEUE, memory_reasons.BUFFERS, CHANGES, SPLITS, SESSIONS, SHARES, THROTTLES,
)  # fmt: skip
"""Declared reasons from which the code takes its words."""


WORDS = [
    pytest.param(word, reason, id=f"{group.title}-{word}")
    for group in (*FIDELITY_REASONS, *FAULT_REASONS)
    for word, reason in group.words.items()
]


@pytest.mark.parametrize("name", GIVEN)
def test_every_word_that_is_given_is_declared_and_every_declared_word_is_given(name: str) -> None:
    group, given = GIVEN[name]
    assert set(group.words) == {str(word) for word in given}


def test_every_enumeration_of_words_in_the_code_is_listed_here() -> None:
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(udfs.__path__, "udfs.")]
    kinds = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, StrEnum | IntEnum) and kind.__module__ == module.__name__
    }
    declared = {type(word) for _, given in GIVEN.values() for word in given} - {str} | {DecodeFault}
    assert kinds == declared | NO_REASONS
    groups = [*DERIVED, *(group for group, _ in GIVEN.values())]
    assert {id(group) for group in groups} == {id(group) for group in (*FIDELITY_REASONS, *FAULT_REASONS)}


def test_no_reason_counts_as_agreement_except_that_session_ids_show_an_order() -> None:
    equal = {word for group in FIDELITY_REASONS for word, reason in group.words.items() if reason.counts == "equal"}
    assert equal == {word for word, reason in SESSIONS.words.items() if reason.counts == "equal"}
    assert len(equal) == 1


def test_the_metrics_of_a_group_are_those_of_its_algorithm_and_no_others() -> None:
    for algorithm, metrics in METRICS.items():
        groups = [group for group in FIDELITY_REASONS if group.algorithm == algorithm]
        named = [metric for group in groups for metric in group.metrics]
        assert sorted(named) == (sorted(metrics) if named else []), algorithm
        assert named or len(groups) == 1, algorithm


def test_a_word_of_two_metrics_has_the_meaning_of_the_one_that_gives_it() -> None:
    of_fetches, of_closed_loop = (
        reason_of("fetch_max_bytes", metric, "fewer_bytes") for metric in ("empty_fetches", "closed_loop_bytes")
    )
    assert of_fetches
    assert of_closed_loop
    assert of_fetches.means != of_closed_loop.means
    assert reason_of("consumer_memory", "closed_loop_held", "throttled") is CLOSED_OBSTACLES["throttled"]
    assert reason_of("batch_split", "splits", "of_another_version") is None
    assert reason_of("another_replay", "splits", "near_limit") is None


@pytest.mark.parametrize(("word", "reason"), WORDS)
def test_a_reason_has_whole_sentences_that_fit_into_a_cell_of_a_table(word: str, reason: FidelityReason) -> None:
    for text in (reason.means, reason.do):
        assert re.fullmatch(r"[A-Z`][^|\n]*\.", text), word


def test_the_settings_that_reasons_ask_to_state_can_be_stated() -> None:
    told = {
        key
        for group in FIDELITY_REASONS
        for reason in group.words.values()
        for part in re.findall(r"--captured(?:=[^`]*|` with [^:;]*)", reason.do)
        for key in re.findall(r"(?:=|`)([a-zA-Z_]+(?:\.[a-zA-Z_]+)*)(?==|`|$)", part.replace("=...", "`"))
    }
    assert {"broker.fetch.max.bytes", "controller_mutation_rate", "linger.ms", "producer.buffer.memory"} <= told
    for key in told - {"recompress", "all", "recut.sizes", "exact", "kraft"}:
        assert find_setting(key, settings().values()).captured, key
    resolve_scenario(None, [], ["recompress=all", "recut.sizes=exact"])


def test_the_faults_are_words_of_a_column_that_exists() -> None:
    columns = {f"{table.name}.{column}" for table in SILVER for column in table.columns}
    assert {group.column for group in FAULT_REASONS} <= columns


def test_the_page_is_current(repository: Path) -> None:
    found = (repository / reason_docs.PAGE).read_text(encoding="utf-8")
    assert found == reason_docs.reasons_page(), "make it anew: python -m jobs.doc_pages"


def test_no_page_for_users_sends_them_to_a_module(repository: Path) -> None:
    text = (repository / "docs" / "tables.md").read_text(encoding="utf-8")
    assert not re.search(r"\budfs\.|\w\.py\b", text)
    assert text.count("(reasons.md)") >= len(FAULT_REASONS) + 1
