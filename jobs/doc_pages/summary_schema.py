"""schemas/summary.schema.json, made from the models of `jobs.report_page.summary_json`."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.report_page.summary_json import Summary

PAGE = Path("schemas/summary.schema.json")


def page() -> str:
    """The JSON Schema of summary.json."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Summary.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"
