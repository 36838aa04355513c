"""What refetch consists of, as CycloneDX JSON: the packages of requirements.txt, and all jars of Spark and Delta.

    python -m tests.sbom dist/refetch.cdx.json

cyclonedx-py describes the packages, with the hashes of the lock file. The jars are those of the installed pyspark with
their hashes, and Delta's two by their Maven coordinates, without hashes. The document is the same each time it is made.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from jobs.paths import CONF, ROOT
from jobs.session.spark_properties import DELTA_JARS, EVERYWHERE, PACKAGES, read_properties

SPARKS_JARS = Path(pyspark.__file__).parent / "jars"
_NAME = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[^/]*?)\.jar")
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")


def packages() -> dict[str, Any]:
    """The document that cyclonedx-py writes for requirements.txt: it has no time and no serial number."""
    command = [
        sys.executable, "-m", "cyclonedx_py", "requirements", str(ROOT / "requirements.txt"),
        "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application", "--output-reproducible",
        "--no-validate", "--spec-version", "1.6", "--output-format", "JSON",
    ]  # fmt: skip
    told: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return told


def jars(folder: Path) -> Iterator[dict[str, Any]]:
    """A component for each jar: Spark's jars, which are in this folder, with their hashes; then Delta's two jars."""
    for jar in sorted(folder.glob("*.jar")):
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        yield component(jar.name, *coordinates(jar)) | {"hashes": [{"alg": "SHA-256", "content": digest}]}
    (delta,) = [one for one in read_properties(CONF / EVERYWHERE)[PACKAGES].split(",") if one.startswith("io.delta:")]
    group, _, version = delta.split(":")
    for name in DELTA_JARS:
        yield component(name, group, name.removesuffix(f"-{version}.jar"), version)


def coordinates(jar: Path) -> tuple[str, str, str]:
    """(group, artifact, version) from the jar's own pom.properties; without one, from its name, with an empty group.

    A jar may also contain pom.properties of other artifacts. Its own is the one whose artifactId is in the jar's name.
    """
    found = _NAME.fullmatch(jar.name)
    artifact, version = (found["artifact"], found["version"]) if found else (jar.stem, "")
    with zipfile.ZipFile(jar) as archive:
        poms = [archive.read(name).decode() for name in archive.namelist() if _POM.fullmatch(name)]
    for pom in poms:
        told = dict(re.findall(r"^(\w+)\s*=\s*(\S+)", pom, re.MULTILINE))
        if told["artifactId"] == artifact:
            return told["groupId"], artifact, told["version"]
    return "", artifact, version


def component(file: str, group: str, artifact: str, version: str) -> dict[str, Any]:
    """A jar as a CycloneDX component. Without a group it gets no package URL, which would name another artifact."""
    described = {"type": "library", "bom-ref": file, "name": artifact, "version": version}
    if group:
        classifier = file.removeprefix(f"{artifact}-{version}").removesuffix(".jar").removeprefix("-")
        of = f"&classifier={classifier}" if classifier else ""
        described |= {"group": group, "purl": f"pkg:maven/{group}/{artifact}@{version}?type=jar{of}"}
    return described


def document(folder: Path) -> str:
    """The whole document, with Spark's jars from this folder. Raises ValueError if it is not valid CycloneDX 1.6."""
    described = packages()
    described["components"] += jars(folder)
    text = json.dumps(described, indent=2) + "\n"
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        raise ValueError(f"not CycloneDX 1.6: {fault}")
    return text


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document(SPARKS_JARS), encoding="utf-8")
