"""schemas/comparison.schema.json, made from the models of `jobs.comparison.comparison_json`."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.comparison.comparison_json import Comparison

PAGE = Path("schemas/comparison.schema.json")


def page() -> str:
    """The JSON Schema of what `compare --json` prints."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Comparison.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"
