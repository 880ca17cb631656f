"""The wheel, built and installed as a user does it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orbitkv import cli
from support import BOUND, ROOT

INSTALL_BOUND = 300.0

ROUND_TRIP = """
import sys
from orbitkv import *
blocks, pages, page_bytes = 4, 8, 1024
memory = bytearray(pages * page_bytes)
state = StateDescriptor(
    model="m", compute_dtype="float16", kv_dtype="float16", layout="layer-page", block_tokens=16,
    groups=(GroupState(layers=1, block_bytes=page_bytes),), hash_scheme="sha256", engine="e")
hashes = BlockHashes([bytes([i]) * 32 for i in range(blocks)])
client = CacheManagerClient(sys.argv[1])
registration = client.register(
    {"layer": HostTensor(memory, shape=(pages, page_bytes))}, state=state, layout="layer-page", num_blocks=pages)
wanted = [bytes([40 + i]) * page_bytes for i in range(blocks)]
if sys.argv[2] == "save":
    memory[: blocks * page_bytes] = b"".join(wanted)
    assert registration.save(SaveItem(hashes, (0, 1, 2, 3)), fence=Fence.DONE).wait_save(10).stored == blocks
else:
    lease = client.lookup(registration.namespace, hashes).lease
    assert registration.restore(RestoreItem(lease, (7, 6, 5, 4)), fence=Fence.DONE).wait(10).success
    assert [bytes(memory[p * page_bytes:][:page_bytes]) for p in (7, 6, 5, 4)] == wanted
print("done")
"""


def run(*line: str, bound: float = BOUND) -> str:
    result = subprocess.run(line, capture_output=True, text=True, timeout=bound, check=False)
    assert result.returncode == 0, result
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    java, *options = cli.command()
    output = tmp_path_factory.mktemp("wheel")
    run(java, f"-Dorbitkv.root={ROOT}", *options, "package", "--output", str(output), bound=INSTALL_BOUND)
    (built,) = output.iterdir()
    return built


@pytest.fixture
def installed(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The programs of a fresh environment with the wheel and what it depends on; no Java of the machine is named."""
    monkeypatch.delenv("ORBITKV_JARS")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "venv" / "bin"
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"), bound=INSTALL_BOUND)
    run(str(programs / "python"), "-m", "pip", "install", "-q", str(wheel), bound=INSTALL_BOUND)
    return programs


def test_should_restore_bytes_with_nothing_but_the_wheel(tmp_path: Path, installed: Path) -> None:
    assert run(str(installed / "orbitkv"), "--version").startswith("orbitkv 0.1.0")
    python = str(installed / "python")
    socket = str(tmp_path / "manager.sock")
    line = [str(installed / "orbitkv"), "manager", "--pool-size", "64mb", "--socket", socket]
    with subprocess.Popen([*line, "--http-addr", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as manager:
        try:
            assert manager.stdout is not None
            assert any(text.startswith("ready ") for text in manager.stdout)
            assert run(python, "-c", ROUND_TRIP, socket, "save") == "done\n"
            assert run(python, "-c", ROUND_TRIP, socket, "restore") == "done\n"
            assert run(python, "-c", ROUND_TRIP, socket, "restore") == "done\n"
            assert "pool capacity bytes" in run(str(installed / "orbitkv"), "status", "--socket", socket)
            manager.terminate()
            assert manager.wait(BOUND) == 0
        finally:
            manager.kill()


def test_should_build_the_wheel_only_from_a_checkout(tmp_path: Path) -> None:
    result = subprocess.run(
        [*cli.command(), "package", "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert (result.returncode, result.stderr) == (
        1,
        "orbitkv: package: only ./orbitkv of a checkout can build the wheel\n",
    )
