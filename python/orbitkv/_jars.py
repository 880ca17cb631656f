"""Where our Java archives are."""

from __future__ import annotations

import os
from pathlib import Path

from orbitkv.errors import JvmError

_CLIENT = ("orbitkv-client-", "orbitkv-channel-", "orbitkv-device-", "orbitkv-linux-", "protobuf-java-")


def _folders() -> list[Path]:
    named = os.environ.get("ORBITKV_JARS")
    return [Path(folder) for folder in named.split(os.pathsep)] if named else [Path(__file__).parent / "jars"]


def _found(pattern: str) -> list[Path]:
    found = sorted(file for folder in _folders() for file in folder.glob(pattern))
    if not found:
        where = ", ".join(str(folder) for folder in _folders())
        raise JvmError(f"no {pattern} in {where}: install the package's wheel, or set ORBITKV_JARS", "JVM")
    return found


def all_jars() -> list[Path]:
    """Every archive of the command line: those of the package, or in the folders of `$ORBITKV_JARS`.

    Raises:
        JvmError: When there is none.
    """
    return _found("*.jar")


def jvm_options() -> Path:
    """Options of the command line's virtual machine, as an argument file."""
    return _found("jvm.options")[0]


def client_jars() -> list[Path]:
    """The archives that the client needs."""
    jars = [jar for jar in all_jars() if jar.name.startswith(_CLIENT)]
    if len(jars) < len(_CLIENT):
        found = ", ".join(jar.name for jar in jars)
        raise JvmError(f"Java archives are missing: wanted={', '.join(_CLIENT)}, found={found}", "JVM")
    return jars
