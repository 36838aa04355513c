"""The Java that Spark will start: which one it is, and whether Spark supports it.

Standard library only: this runs before the Python environment is set up.
"""

from __future__ import annotations

import locale
import os
import re
import shutil
import subprocess

from udfs.errors import SetupError

OLDEST, NEWEST = 17, 25
"""Spark 4.2 runs on Java 17, 21 and 25 (https://spark.apache.org/docs/4.2.0/, "Downloading")."""

_UTF8 = ("UTF-8", "UTF8")
_UTF8_LOCALES = ("C.UTF-8", "C.utf8", "en_US.UTF-8", "UTF-8")

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_WHAT_TO_DO = (
    f"refetch needs Java {OLDEST} to {NEWEST} (Spark 4.2 is made for 17, 21 and 25). "
    "Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17), "
    "or set JAVA_HOME to the folder of one that is installed."
)


def java_command() -> str:
    """The java that Spark's own scripts use: that of JAVA_HOME if it is set, else the one on PATH.

    Raises SetupError if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if command:
        return command
    where = f"JAVA_HOME is {home}, and there is no bin/java in it" if home else "there is no java on PATH"
    raise SetupError(f"No Java found: {where}. {_WHAT_TO_DO}")


def major_version(banner: str) -> int | None:
    """The major version in the banner of `java -version`; None if there is none.

    >>> major_version('openjdk version "17.0.15" 2025-04-15'), major_version('java version "1.8.0_392"')
    (17, 8)
    """
    match = _VERSION.search(banner)
    if not match:
        return None
    first, second = int(match[1]), match[2]
    return int(second) if first == 1 and second else first


def check_java() -> str:
    """The banner of the java that Spark would start. Raises SetupError unless Spark supports it."""
    command = java_command()
    try:
        answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise SetupError(f"{command} does not run ({type(fault).__name__}). {_WHAT_TO_DO}") from fault
    banner = answer.stderr + answer.stdout
    version = major_version(banner)
    if version is None:
        raise SetupError(f"{command} -version does not say which Java it is (exit {answer.returncode}). {_WHAT_TO_DO}")
    if not OLDEST <= version <= NEWEST:
        raise SetupError(f"Wrong Java: {command} is Java {version}. {_WHAT_TO_DO}")
    return banner


def utf8_locale() -> dict[str, str]:
    """The environment variables with which Java finds files whose names are not ASCII, as Python does anyway: none if
    the locale is one of UTF-8, else such a locale of the system.
    """
    if locale.nl_langinfo(locale.CODESET).upper() in _UTF8:
        return {}
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        return next(({"LC_ALL": name} for name in _UTF8_LOCALES if _is_there(name)), {})
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def _is_there(name: str) -> bool:
    try:
        locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return False
    return True
