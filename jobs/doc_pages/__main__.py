"""`python -m jobs.doc_pages` writes the pages and the JSON Schemas anew."""

from __future__ import annotations

from jobs.doc_pages import outcome_docs, reason_docs, setting_docs, table_docs
from jobs.doc_pages.json_schemas import MODELS, schema_text

if __name__ == "__main__":
    pages = {
        table_docs.PAGE: table_docs.tables_page(),
        reason_docs.PAGE: reason_docs.reasons_page(),
        setting_docs.PAGE: setting_docs.settings_page(),
        outcome_docs.PAGE: outcome_docs.outcomes_page(),
    }
    for file, text in (pages | {file: schema_text(file) for file in MODELS}).items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
