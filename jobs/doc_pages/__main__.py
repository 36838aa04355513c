"""`python -m jobs.doc_pages` writes the pages anew."""

from __future__ import annotations

from jobs.doc_pages import comparison_schema, outcome_docs, reason_docs, setting_docs, summary_schema, table_docs

if __name__ == "__main__":
    for made in (table_docs, reason_docs, setting_docs, outcome_docs, summary_schema, comparison_schema):
        made.PAGE.parent.mkdir(exist_ok=True)
        made.PAGE.write_text(made.page(), encoding="utf-8")
