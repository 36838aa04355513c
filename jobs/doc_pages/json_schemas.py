"""The JSON Schemas of refetch's JSON output, made from the models that it writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from jobs.comparison.comparison_json import Comparison
from jobs.report_page.summary_json import Summary

SUMMARY_SCHEMA = Path("schemas/summary.schema.json")
COMPARISON_SCHEMA = Path("schemas/comparison.schema.json")
MODELS: Mapping[Path, type[BaseModel]] = {SUMMARY_SCHEMA: Summary, COMPARISON_SCHEMA: Comparison}
"""The model of summary.json, and of what `compare --json` prints, by the file of its schema."""


def schema_text(file: Path) -> str:
    """The text of one of these files."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **MODELS[file].model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"
