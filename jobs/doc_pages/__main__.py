"""`python -m jobs.doc_pages` writes the pages and the JSON Schemas anew."""

from __future__ import annotations

from jobs.doc_pages import outcome_docs, reason_docs, setting_docs, table_docs
from jobs.doc_pages.json_schemas import MODELS, schema_text

if __name__ == "__main__":
    pages = {docs.PAGE: docs.page() for docs in (table_docs, reason_docs, setting_docs, outcome_docs)}
    for file, text in (pages | {file: schema_text(file) for file in MODELS}).items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
