"""The kernels' machine code on disk is that of one version of the code, wherever it was imported from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.release import zipped
from udfs import CODE, code_digest, kernel_cache_dir
from udfs.errors import SetupError
from udfs.kernels.imported_code import names_in_imports

FOLDER = "import udfs; print(udfs.kernel_cache_dir())"
CALL = """
import numpy as np
from udfs.wire.primitives import set_cell
numbers = np.zeros(3, np.int64)
set_cell(numbers, 1, 7)
print(numbers.tolist(), sum(set_cell.stats.cache_hits.values()), sum(set_cell.stats.cache_misses.values()))
"""


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A zip of the packages as executors have it."""
    return zipped(tmp_path / "application-1" / "refetch.zip")


def output_of(code: str, packages: Path, caches: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(packages), "XDG_CACHE_HOME": str(caches)}
    command = [sys.executable, "-P", "-c", code]
    answer = subprocess.run(
        command, env=environment, cwd=caches, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_code_in_a_zip_has_the_digest_that_it_has_in_folders(repository: Path, release: Path, tmp_path: Path) -> None:
    assert code_digest(zipfile.Path(release, "udfs/"), zipfile.Path(release, "schemas/")) == CODE
    assert output_of(FOLDER, release, tmp_path) == output_of(FOLDER, repository, tmp_path)
    assert Path(kernel_cache_dir()).name == f"kernels-{CODE}"


@pytest.mark.parametrize("changed", ["udfs/wire/primitives.py", "schemas/wire/apis.py"])
def test_another_release_in_a_zip_has_other_machine_code(changed: str, release: Path, tmp_path: Path) -> None:
    other = zipped(tmp_path / "application-2" / "refetch.zip", changed)
    assert output_of(FOLDER, other, tmp_path) != output_of(FOLDER, release, tmp_path)


def test_a_kernel_is_compiled_once_for_all_places_the_code_comes_from(
    repository: Path, release: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "application-2" / "refetch.zip"
    elsewhere.parent.mkdir()
    shutil.copy(release, elsewhere)
    answers = [output_of(CALL, packages, tmp_path) for packages in (release, elsewhere, repository)]
    assert answers == ["[0, 7, 0] 0 1", "[0, 7, 0] 1 0", "[0, 7, 0] 1 0"]


@pytest.mark.parametrize(
    ("changed", "hits_and_misses"),
    [
        ("udfs/replay/session_cache/cache.py", "1 0"),
        ("udfs/wire/primitives.py", "0 1"),
        ("udfs/wire/faults.py", "0 1"),
        ("udfs/wire/__init__.py", "0 1"),
    ],
    ids=["a module that it does not import", "its own module", "a module that it imports", "a package that it is in"],
)
def test_another_release_compiles_a_kernel_again_if_code_changed_from_which_it_is_made(
    changed: str, hits_and_misses: str, release: Path, tmp_path: Path
) -> None:
    output_of(CALL, release, tmp_path)
    other = zipped(tmp_path / "application-2" / "refetch.zip", changed)
    assert output_of(CALL, other, tmp_path) == f"[0, 7, 0] {hits_and_misses}"


@pytest.mark.parametrize(
    "statement",
    [
        "from udfs.wire import faults, primitives",
        "from udfs.wire import (\n    faults,\n    primitives as p,\n)",
        "from udfs.wire import faults; from udfs.wire.primitives import cell",
        "    from udfs.wire.faults import DecodeFault\n    import udfs.wire.primitives as p",
        "import udfs.wire.faults, udfs.wire.primitives",
    ],
)
def test_every_form_of_import_is_followed(statement: str) -> None:
    assert {"udfs.wire.faults", "udfs.wire.primitives"} <= set(names_in_imports(f"# a module\n{statement}\n".encode()))


def test_every_module_that_python_imports_counts_as_imported_code() -> None:
    code = (
        "import sys; from udfs.kernels.imported_code import reached_from; before = {*sys.modules};"
        "import udfs.replay.fetch_max_bytes.replay as of;"
        "ours = {n for n, m in sys.modules.items() if n.split('.')[0] in ('udfs', 'schemas') and m.__file__};"
        "print(sorted(ours - before - reached_from(of.__name__)))"
    )
    assert output_of(code, REPOSITORY, REPOSITORY) == "[]"


def test_packages_without_source_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "refetch.zip", "w") as archive:
        archive.writestr("udfs/__init__.pyc", b"compiled")
    with pytest.raises(SetupError, match=r"refetch\.zip/udfs/: there is no Python source in it"):
        code_digest(zipfile.Path(tmp_path / "refetch.zip", "udfs/"))


def in_place_of_a_home(temporary: Path) -> Path:
    """The folder of caches if there is no home to write to."""
    code = "import udfs; print(udfs.cache_dir())"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "HOME": "/nowhere",
        "TMPDIR": str(temporary),
    }
    command = [sys.executable, "-P", "-c", code]
    return Path(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip())


def test_without_a_home_caches_are_in_a_folder_that_nobody_else_can_write_to(tmp_path: Path) -> None:
    folder = in_place_of_a_home(tmp_path)
    assert folder == tmp_path / f"refetch-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert in_place_of_a_home(tmp_path) == folder


@pytest.mark.parametrize("what", ["open to all", "a link", "a file"])
def test_code_is_not_taken_from_a_folder_that_others_may_have_made(what: str, tmp_path: Path) -> None:
    planted, mine = tmp_path / f"refetch-{os.getuid()}", tmp_path / "mine"
    mine.mkdir(mode=0o700)
    if what == "open to all":
        planted.mkdir()
        planted.chmod(0o777)
    elif what == "a link":
        planted.symlink_to(mine)
    else:
        planted.touch()
    folder = in_place_of_a_home(tmp_path)
    assert folder.parent == tmp_path
    assert folder not in (planted, mine)
    assert folder.stat().st_mode & 0o777 == 0o700
