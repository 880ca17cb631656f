"""A Manager and engines as processes of their own, and the answers of engines."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
PYTHON = REPOSITORY / "python"
BED = Path(sys.prefix).parent  # the tests run in the test bed's environment
MODEL = BED / "model"

START_BOUND_S = 300.0
ANSWER_BOUND_S = 180.0
END_BOUND_S = 60.0


class Lines:
    """Lines of a child's output, read in the background so that the child never waits."""

    def __init__(self, stream: Any) -> None:
        """Begins to read."""
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    def next(self, bound: float) -> str | None:
        """The next line; None at the end. Fails when none comes within the bound, seconds."""
        try:
            return self._lines.get(timeout=bound)
        except queue.Empty:
            raise AssertionError(f"no line within {bound:.0f} s") from None


def close_input(process: subprocess.Popen[str]) -> None:
    """Tells a child that there is no more."""
    assert process.stdin is not None
    process.stdin.close()


class Manager:
    """A Manager process on a socket of its own; can be killed and started again."""

    def __init__(self, folder: Path, *flags: str, pool: str = "512mb") -> None:
        """Starts it, with further flags, and waits until it is ready."""
        self.socket = folder / "manager.sock"
        self._flags = ("--pool-size", pool, *flags)
        self.start()

    def start(self) -> None:
        """Starts it again on the same socket."""
        command = [str(REPOSITORY / "orbitkv"), "manager", *self._flags, "--socket", str(self.socket)]
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [*command, "--http-addr", "127.0.0.1:0", "--log-level", "warn", "--stop-with-stdin"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = Lines(self.process.stdout)
        while not (line := lines.next(START_BOUND_S) or "ended").startswith("ready "):
            assert line != "ended", "the Manager ended before it was ready"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def status(self) -> dict[str, Any]:
        """What it holds."""
        command = [str(REPOSITORY / "orbitkv"), "status", "--json", "--socket", str(self.socket)]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))

    def corrupt(self, needle: bytes) -> None:
        """Changes one byte in the middle of a stored block that contains some bytes.

        The pool is memory of the Manager without a name; another process of the user reaches it through `/proc`.
        """
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            if not os.readlink(link).startswith("/memfd:") or link.stat().st_size < 64 << 20:
                continue
            with link.open("r+b", buffering=0) as arena:
                content = arena.read()
                at = content.find(needle)
                if at >= 0:
                    arena.seek(at)
                    arena.write(bytes([content[at] ^ 1]))
                    return
        raise AssertionError("no arena holds these bytes")

    def kill(self) -> None:
        """Ends it without notice."""
        self.process.kill()
        self.process.wait(END_BOUND_S)

    def close(self) -> None:
        """Ends it in order."""
        if self.process.poll() is None:
            close_input(self.process)
            assert self.process.wait(END_BOUND_S) == 0


@dataclasses.dataclass(frozen=True)
class Answer:
    """What came out of a request."""

    tokens: list[int]
    logprobs: list[float]
    cached: int
    text: str
    finish: str


def same(answer: Answer, wanted: Answer) -> bool:
    """Whether tokens and log-probabilities are equal, exactly."""
    return (answer.tokens, answer.logprobs) == (wanted.tokens, wanted.logprobs)


def assert_settled(manager: Manager) -> None:
    """Nothing of a request is left at the Manager."""
    status = manager.status()
    names = ("leases", "lease_bytes", "grants_active", "pinned_blocks", "unsealed_blocks", "retained_operations")
    assert {name: status[name] for name in names} == dict.fromkeys(names, 0)
    assert status["violations_total"] == 0


class Engine:
    """An engine process; see `python/testbed/engine.py`."""

    def __init__(
        self,
        manager: Manager | None = None,
        *,
        audit: Path | None = None,
        module: str = "faults",
        options: dict[str, Any] | None = None,
        policy: str = "recompute",
        environment: dict[str, str] | None = None,
        processes: bool = False,
        model: Path = MODEL,
        step_tokens: int = 32,
        **llm: Any,
    ) -> None:
        """Starts it and waits until it is ready; steps of one block make answers after any hit exact."""
        settings: dict[str, Any] = {"model": str(model), "step_tokens": step_tokens, "llm": {"block_size": 32, **llm}}
        if manager is not None:
            settings["connector"] = {
                "name": "OrbitKVConnector",
                "module": module,
                "policy": policy,
                "options": {"orbitkv.bootstrap_socket": str(manager.socket), **(options or {})},
            }
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ORBITKV_", "VLLM_"))},
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",  # results of runs with other thread counts differ
            "PYTHONPATH": f"{PYTHON}:{PYTHON / 'testbed'}",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "1" if processes else "0",
            "VLLM_NO_USAGE_STATS": "1",
            "ORBITKV_AUDIT": str(audit or "/dev/null"),
            "ORBITKV_JARS": str(REPOSITORY / "app/target/lib"),
            **(environment or {}),
        }
        variables.pop("PYTHONDONTWRITEBYTECODE", None)  # without byte code a start takes minutes
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log", prefix="engine-")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(PYTHON / "testbed/engine.py"), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=variables,
        )
        self._lines = Lines(self.process.stdout)
        self.start_seconds = self._answer(START_BOUND_S)["seconds"]

    def words(self) -> str:
        """What it has printed."""
        return Path(self.log.name).read_text()

    def _answer(self, bound: float) -> dict[str, Any]:
        line = self._lines.next(bound)
        assert line is not None, f"the engine ended:\n{self.words()[-4000:]}"
        answer = dict(json.loads(line))
        assert "error" not in answer, f"{answer['error']}\n{self.words()[-4000:]}"
        return answer

    def call(self, **command: Any) -> dict[str, Any]:
        """One command and its answer."""
        self.send(**command)
        return self._answer(ANSWER_BOUND_S)

    def send(self, **command: Any) -> None:
        """One command, without waiting."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def generate(self, *requests: dict[str, Any]) -> list[Answer]:
        """Answers requests, all at once."""
        return [Answer(**output) for output in self.call(do="generate", requests=requests)["outputs"]]

    def ask(self, **request: Any) -> Answer:
        """Answers one request."""
        return self.generate(request)[0]

    def play(self, *steps: dict[str, Any]) -> dict[str, Answer]:
        """Plays requests that come and go between steps."""
        outputs = self.call(do="play", steps=steps)["outputs"]
        return {name: Answer(**output) for name, output in outputs.items()}

    def forget(self) -> None:
        """Empties the engine's own prefix cache."""
        assert self.call(do="reset")["ok"]

    def facts(self) -> dict[str, Any]:
        """Counters of the connector and memory of the process."""
        return self.call(do="facts")

    def awaits_death(self) -> None:
        """Waits until it has died."""
        assert self._lines.next(ANSWER_BOUND_S) is None
        self.process.wait(END_BOUND_S)

    def close(self) -> None:
        """Ends it in order."""
        if self.process.poll() is None:
            self.send(do="exit")
            assert self._answer(END_BOUND_S) == {"ended": True}
            close_input(self.process)
            assert self.process.wait(END_BOUND_S) == 0, self.words()[-4000:]
        self.log.close()

    def kill(self) -> None:
        """Ends it without notice, when it still runs."""
        self.process.kill()
        self.process.wait(END_BOUND_S)
        self.log.close()
