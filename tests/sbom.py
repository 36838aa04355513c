"""What refetch consists of, as CycloneDX JSON: the packages of requirements.txt, and all jars of Spark and Delta.

    python -m tests.sbom dist/refetch.cdx.json

cyclonedx-py describes the packages, with the hashes of the lock file. Jars are those of the pyspark that is installed,
and Delta's two by their Maven coordinates, without hashes. The document is the same each time it is made.
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
    """The document of the packages of requirements.txt, as cyclonedx-py writes it: no time, no serial number."""
    command = [
        sys.executable, "-m", "cyclonedx_py", "requirements", str(ROOT / "requirements.txt"),
        "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application", "--output-reproducible",
        "--no-validate", "--spec-version", "1.6", "--output-format", "JSON",
    ]  # fmt: skip
    told: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return told


def jars(folder: Path) -> Iterator[dict[str, Any]]:
    """A component a jar: those in this folder, which are Spark's, with the hashes of their files, then Delta's two."""
    for jar in sorted(folder.glob("*.jar")):
        digest = hashlib.sha256(jar.read_bytes()).hexdigest()
        yield component(jar.name, *coordinates(jar)) | {"hashes": [{"alg": "SHA-256", "content": digest}]}
    (delta,) = [one for one in read_properties(CONF / EVERYWHERE)[PACKAGES].split(",") if one.startswith("io.delta:")]
    group, _, version = delta.split(":")
    for name in DELTA_JARS:
        yield component(name, group, name.removesuffix(f"-{version}.jar"), version)


def coordinates(jar: Path) -> tuple[str, str, str]:
    """Group, artifact and version: what the jar says of itself, else what its name says and no group.

    A jar may have the descriptions of others in it: its own is that of the artifact that it is named after.
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
    """A jar as CycloneDX has it. Without a group it has no package URL, which would name another one."""
    described = {"type": "library", "bom-ref": file, "name": artifact, "version": version}
    if group:
        classifier = file.removeprefix(f"{artifact}-{version}").removesuffix(".jar").removeprefix("-")
        of = f"&classifier={classifier}" if classifier else ""
        described |= {"group": group, "purl": f"pkg:maven/{group}/{artifact}@{version}?type=jar{of}"}
    return described


def document(folder: Path) -> str:
    """The whole document, with Spark's jars from this folder. Raises ValueError where it is no CycloneDX 1.6."""
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
