"""The page loads nothing from elsewhere, is the same for the same tables, and is safe whatever names it shows."""

from __future__ import annotations

import base64
import hashlib
import re
from html import unescape
from html.parser import HTMLParser

from pyspark.sql import Row

from jobs.report_page.markup import breakable_name, setting_lines, with_code
from jobs.report_page.page import page_text
from jobs.report_page.question import Query
from jobs.report_page.questions import QUESTIONS
from jobs.report_page.traffic import (
    fetches_by_reader,
    fetching_consumers,
    produced_batch_sizes,
    produced_codecs,
    produced_topics,
)
from jobs.report_page.trust import agreement_bars, fidelity_by_reason
from schemas.tables.silver import FETCH_PARTITIONS, RECORD_BATCHES
from tests.unit.report.findings import agreement, findings, known, one_of_one, verdict

EVIL = "<script>alert('topic')</script>"


class Elements(HTMLParser):
    """The names, ids and links of a page's elements."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]


def rows(in_all: int = 1) -> dict[Query, list[Row]]:
    """Rows of a capture whose topic and client have markup as names. in_all: the number of topics and of clients."""
    b, f = RECORD_BATCHES, FETCH_PARTITIONS
    sums = {
        "batches": 3, "answered": 3, "refused": 1, "largest_taken": 9, "smallest_refused": 10,
        "largest_taken_uncompressed": None, "bytes": 29, "uncompressed": None,
    }  # fmt: skip
    consumer = {
        f.client_id: EVIL, "fetches": 4, "empty": 1, "bytes": 9000, "median": 3000, f.max_bytes: 1 << 20,
        f.min_bytes: 1, f.max_wait_ms: 500,
    }  # fmt: skip
    return {
        produced_codecs: [Row(**{b.codec: "none", **sums})],
        produced_topics: [one_of_one(Row(**{b.topic: EVIL, b.client_id: EVIL, **sums}), in_all)],
        produced_batch_sizes: [Row(refused=True, bin=6, batches=1), Row(refused=False, bin=6, batches=2)],
        fetches_by_reader: [
            Row(reader="consumer", fetches=4, empty=1, beyond=0, bytes=9000, sessions=1, oldest=12, cut=0)
        ],
        fetching_consumers: [one_of_one(Row(**consumer), in_all)],
    }


def written() -> str:
    return page_text("/lake", verdict(findings(rows())))


def elements() -> Elements:
    found = Elements()
    found.feed(written())
    return found


def test_a_topic_called_script_is_text() -> None:
    told = written()
    assert EVIL not in told
    assert "&lt;script&gt;alert(&#39;topic&#39;)&lt;/script&gt;" in told
    assert elements().names.count("script") == 1


def test_no_script_but_the_pages_own_may_run() -> None:
    told = written()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', told)
    (script,) = re.findall(r"<script>(.*?)</script>", told, re.DOTALL)
    assert "default-src 'none'" in unescape(policy)
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{hashed}';" in unescape(policy)


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    told = re.sub(r'xmlns(:xlink)?="http://www\.w3\.org/[^"]*"|http-equiv', "", written())
    assert "http" not in told
    assert [link for link in elements().links if not link.startswith(("#", "data:"))] == []


def test_all_questions_are_there_and_every_link_leads_somewhere() -> None:
    found = elements()
    assert [
        f"question-{question.number}" for question in QUESTIONS if f"question-{question.number}" not in found.ids
    ] == []
    assert [link for link in found.links if link.startswith("#") and link[1:] not in found.ids] == []
    assert len(found.ids) == len(set(found.ids))


def test_the_verdict_comes_first_and_says_whether_to_trust_it() -> None:
    ids = elements().ids
    assert (
        ids.index("verdict") < ids.index("plots") < ids.index("clients") < ids.index("question-7") < ids.index("trust")
    )
    assert '<p class="trust ok"><b>Trust</b> ok: 99.50 % of 200 results' in written().replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_says_what_the_reasons_of_this_run_mean_and_no_others() -> None:
    given = [agreement("consumer_memory", "consumer", "drained_partitions", 9, 8, 1, reason) for reason in (None, EVIL)]
    assert "What the reasons mean" not in page_text("/lake", verdict(findings({fidelity_by_reason: given})))
    given += [agreement("consumer_memory", "consumer", "drained_partitions", 9, 8, 1, "another_connection")]
    told = page_text("/lake", verdict(findings({fidelity_by_reason: given})))
    glossary = told.partition("What the reasons mean")[2].partition("</details>")[0]
    assert re.findall("<dt>(.*)</dt>", glossary) == ["another_connection"]
    assert "perhaps from another process with the same <code>client.id</code> and address." in glossary
    assert told.index('id="trust"') < told.index("What the reasons mean")


def test_if_there_is_nothing_to_plot_the_page_says_why() -> None:
    assert "No other plot: the estimates of producers were not replayed: <code>--set=" in written()
    without_any = page_text("/lake", verdict(findings(rows() | {produced_batch_sizes: []})))
    assert "No plot: the estimates of producers" in without_any


def test_unknown_results_have_a_share_of_all_results() -> None:
    plot = agreement_bars(
        findings({fidelity_by_reason: [agreement("fetch_max_bytes", "follower", "empty_fetches", 3, 3, 1)]})
    )
    assert [row["share"] for row in plot.rows] == [0.75, 0.0, 0.25]
    assert plot.x.title == "of all results, unknown ones too"


def test_no_part_of_the_page_is_called_like_another() -> None:
    names = re.findall(r"<a href=\"#[^\"]+\">([^<]+)</a>", written().partition("<nav>")[2].partition("</nav>")[0])
    assert len(names) > 5
    assert [(one, other) for one in names for other in names if one != other and one.lower() in other.lower()] == []


def test_plots_and_tables_have_names_for_those_who_do_not_see_them() -> None:
    told = written()
    assert re.findall(r"<svg (?!role=\"img\" aria-label=\"[^\"]+\")", told) == []
    assert '<svg role="img" aria-label="Produced batches by their bytes on the wire"' in told
    assert 'aria-label="Table: Are my fetches small and many (fetch.min.bytes, fetch.max.wait.ms)?"' in told
    assert "<th>" not in told


def test_each_setting_of_a_lane_has_a_line() -> None:
    assert setting_lines("fetch.max.bytes=1MiB  <b>=2") == "fetch.max.bytes=1MiB<br>&lt;b&gt;=2"


def test_a_table_says_how_many_rows_it_leaves_out() -> None:
    told = page_text("/lake", verdict(findings(rows(in_all=10_001))))
    assert told.count("And 10,000 more, which silver/") == 2


def test_the_same_tables_give_the_same_bytes() -> None:
    assert written() == written()


def test_flags_and_commands_of_a_sentence_are_code_and_the_rest_is_escaped() -> None:
    told = with_code("<b> is not replayed: run `pipeline` with --set=max.partitions=500,none, or not.")
    assert told == (
        "&lt;b&gt; is not replayed: run <code>pipeline</code> with <code>--set=max.partitions=500,none</code>, or not."
    )


def test_the_name_of_a_column_may_break_after_a_dot_so_that_a_setting_does_not_widen_its_table() -> None:
    assert breakable_name("by max.partitions* <b>") == "by max.<wbr>partitions* &lt;b&gt;"


def test_of_several_clusters_the_page_says_which_is_replayed() -> None:
    """The cluster's id is from the wire, so it is escaped."""
    told = "Only cluster {} is replayed, one of several that they show."
    assert told.format("&lt;b&gt;other") in page_text(
        "/lake", verdict(findings(rows()), of=known(cluster_id="<b>other"))
    )
    assert told.partition(" {}")[0] not in page_text("/lake", verdict(findings(rows())))
