"""The list of refetch's parts: packages with the lock file's hashes, and jars."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.sbom import document

POM = "groupId={}\nartifactId={}\nversion=4.2.13.Final\n"


@pytest.fixture(scope="module")
def sparks_jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A jar with a classifier that has another jar's description beside its own, and a jar without a description."""
    folder = tmp_path_factory.mktemp("jars")
    with zipfile.ZipFile(folder / "netty-epoll-4.2.13.Final-linux-x86_64.jar", "w") as jar:
        for group, artifact in (("org.jctools", "jctools-core"), ("io.netty", "netty-epoll")):
            jar.writestr(f"META-INF/maven/{group}/{artifact}/pom.properties", POM.format(group, artifact))
    with zipfile.ZipFile(folder / "xz-1.12.jar", "w") as jar:
        jar.writestr("empty", "")
    return folder


@pytest.fixture(scope="module")
def described(sparks_jars: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(document(sparks_jars))
    return told


def test_packages_are_those_of_the_lock_file_with_its_hashes(described: dict[str, Any]) -> None:
    lock = (REPOSITORY / "requirements.txt").read_text()
    listed = [one for one in described["components"] if one.get("purl", "").startswith("pkg:pypi/")]
    assert {f"{one['name']}=={one['version']}" for one in listed} == set(re.findall(r"^[a-z]\S+==\S+", lock, re.M))
    hashes = [
        each["content"] for one in listed for of in one["externalReferences"] for each in of.get("hashes", [])
    ]  # fmt: skip
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:(\w+)", lock))
    assert described["metadata"]["component"]["name"] == "refetch"


def test_jars_have_their_maven_names_if_they_contain_a_description(
    described: dict[str, Any], sparks_jars: Path
) -> None:
    refs = {one["bom-ref"]: one for one in described["components"]}
    netty, xz = refs["netty-epoll-4.2.13.Final-linux-x86_64.jar"], refs["xz-1.12.jar"]
    assert netty["purl"] == "pkg:maven/io.netty/netty-epoll@4.2.13.Final?type=jar&classifier=linux-x86_64"
    assert (xz["name"], xz["version"], "purl" in xz) == ("xz", "1.12", False)
    assert xz["hashes"][0]["content"] == hashlib.sha256((sparks_jars / "xz-1.12.jar").read_bytes()).hexdigest()
    assert refs["delta-storage-4.4.0.jar"]["purl"] == "pkg:maven/io.delta/delta-storage@4.4.0?type=jar"
    assert refs["delta-spark_4.2_2.13-4.4.0.jar"]["group"] == "io.delta"
    assert len(refs) == len(described["components"])
