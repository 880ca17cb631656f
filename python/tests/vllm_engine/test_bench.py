"""The benchmark of the connector, interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from engines import REPOSITORY

MEMORY = Path("/dev/shm")
BOUND_S = 120.0


def naive_folders() -> set[Path]:
    return set(MEMORY.glob("orbitkv-naive-*"))


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += [int(child) for child in task.read_text().split()]
    return found


def is_engine(pid: int) -> bool:
    try:
        return b"engine.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_leaves_nothing_when_it_is_interrupted(tmp_path: Path, how: signal.Signals) -> None:
    before = naive_folders()
    bench = subprocess.Popen(
        [str(REPOSITORY / "orbitkv"), "bench", "vllm"],
        env={**os.environ, "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={tmp_path}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + BOUND_S
        while not any(map(is_engine, running := children(bench.pid))):
            assert bench.poll() is None, "the benchmark ended"
            assert time.monotonic() < deadline, "no engine was started"
            time.sleep(0.05)
        (folder,) = naive_folders() - before
        bench.send_signal(how)
        assert bench.wait(BOUND_S) == 128 + how
    finally:
        bench.kill()
    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []
    assert [pid for pid in running if is_engine(pid)] == []
