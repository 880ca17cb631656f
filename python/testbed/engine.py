"""A vLLM engine as a child process that takes commands: one JSON object a line in, one a line out.

Usage: engine.py SETTINGS

Settings is a JSON object: `model`, `connector` (`{"name", "module", "options", "policy"}` or null), `llm` with
further arguments of `vllm.LLM`, and `step_tokens`: see `make_exact`. Words of the engine go to standard error. After
the line `{"ready": true, ...}` these commands are taken; a failed one is answered by `{"error": ...}`:

| command | answer |
| --- | --- |
| `{"do": "generate", "requests": [...]}` | `{"outputs": [...], "seconds": s}` |
| `{"do": "play", "steps": [...]}` | `{"outputs": {...}}`: the same for requests that come and go between steps |
| `{"do": "time", "request": {...}}` | `{"output": {...}, "first_token_seconds": s, "seconds": s, "hook_share": x}` |
| `{"do": "reset", "connector": true}` | `{"ok": true}`: forgets the engine's prefixes, and the connector's |
| `{"do": "arm", "point": name, "pid": pid}` | `{"ok": true}`: see `faults.py` |
| `{"do": "set", "load": "async", "save": "sync", "policy": "fail"}` | `{"ok": true}`: other options from now on |
| `{"do": "facts"}` | memory of the process, counters, metrics and figures of the connector |
| `{"do": "exit"}` | ends the engine in order |

`hook_share` is the part of the time after the first token that was spent in hooks of `timed.py`.

A request is `{"story": seed, "length": tokens, "head": tokens, "max_tokens": n, "salt": text, "prompt_logprobs": n,
"adapter": {"name", "id", "path"}}`: the first `head` tokens of story 0, then tokens of the story `seed`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

STORY_DAYS = 400
MOST_REQUESTS = 8  # at a time, where steps are short


def make_exact(step_tokens: int) -> dict[str, Any]:
    """Has the engine give one answer to a prompt, whether its begin is computed or restored.

    A token's numbers depend on how many others are computed in the same step, on some processors in the last digits, on
    others in more: then already a hit in the engine's own cache differs from the first answer, and nothing exact can be
    said of restored blocks. So the engine computes a prompt in steps of so many tokens: those after a restored begin
    are the same ones. AMX tiles are kept out, in processes that the engine starts, too.

    Returns:
        Arguments of `vllm.LLM`.
    """
    if step_tokens == 0:
        return {}
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_BF16"
    import torch

    torch.cpu._is_amx_tile_supported = lambda: False
    return {"max_num_batched_tokens": step_tokens, "max_num_seqs": MOST_REQUESTS}


EXACT = make_exact(json.loads(sys.argv[1])["step_tokens"])  # processes that the engine starts come here, too


class Engine:
    """The engine and its commands."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Starts the engine."""
        from vllm import LLM
        from vllm.config import KVTransferConfig

        arguments = {"enforce_eager": True, "dtype": "bfloat16", "max_model_len": 2048, **EXACT}
        arguments.update(settings.get("llm", {}))
        connector = settings.get("connector")
        if connector:
            arguments["kv_transfer_config"] = KVTransferConfig(
                kv_connector=connector["name"],
                kv_connector_module_path=connector["module"],
                kv_role=connector.get("role", "kv_both"),
                kv_load_failure_policy=connector.get("policy", "recompute"),
                kv_connector_extra_config=connector.get("options", {}),
            )
        self.llm = LLM(model=settings["model"], **arguments)
        self.tokenizer = self.llm.get_tokenizer()
        self.stories: dict[int, list[int]] = {}
        self.number = 0

    def prompt(self, request: dict[str, Any]) -> dict[str, Any]:
        """The prompt of a request."""
        head = self.story(0)[: request.get("head", 0)]
        tail = self.story(request.get("story", 0))
        tokens = (head + tail)[: request["length"]]
        assert len(tokens) == request["length"], "the stories are too short"
        prompt: dict[str, Any] = {"prompt_token_ids": tokens}
        if request.get("salt"):
            prompt["cache_salt"] = request["salt"]
        return prompt

    def story(self, seed: int) -> list[int]:
        """Tokens of a text that hangs together."""
        if seed not in self.stories:
            text = " ".join(
                f"On day {day + seed * 1000} the ship sailed {(day * 7 + seed) % 31} miles towards port number "
                f"{(day * 13 + seed) % 17} and the captain wrote a note."
                for day in range(STORY_DAYS)
            )
            self.stories[seed] = self.tokenizer.encode(text)
        return self.stories[seed]

    @staticmethod
    def sampling(request: dict[str, Any]) -> Any:
        """How the answer is made: always the most likely token, with its log-probability."""
        from vllm import SamplingParams

        return SamplingParams(
            temperature=0,
            max_tokens=request.get("max_tokens", 16),
            logprobs=1,
            prompt_logprobs=request.get("prompt_logprobs"),
            ignore_eos=True,
        )

    @staticmethod
    def adapter(request: dict[str, Any]) -> Any:
        """The LoRA adapter of a request; None for the model alone."""
        from vllm.lora.request import LoRARequest

        named = request.get("adapter")
        return LoRARequest(named["name"], named["id"], named["path"]) if named else None

    @staticmethod
    def answer(output: Any) -> dict[str, Any]:
        """What came out of a request."""
        tokens = list(output.outputs[0].token_ids)
        chosen = [step[token].logprob for step, token in zip(output.outputs[0].logprobs, tokens, strict=True)]
        return {
            "tokens": tokens,
            "logprobs": chosen,
            "cached": output.num_cached_tokens,
            "text": output.outputs[0].text,
            "finish": output.outputs[0].finish_reason,
        }

    def generate(self, command: dict[str, Any]) -> dict[str, Any]:
        """Answers requests, all at once."""
        requests = command["requests"]
        started = time.perf_counter()
        outputs = self.llm.generate(
            [self.prompt(request) for request in requests],
            [self.sampling(request) for request in requests],
            use_tqdm=False,
            lora_request=[self.adapter(request) for request in requests],
        )
        seconds = time.perf_counter() - started
        return {"outputs": [self.answer(output) for output in outputs], "seconds": seconds}

    def play(self, command: dict[str, Any]) -> dict[str, Any]:
        """Plays `{"add": name, ...request}`, `{"steps": n}` and `{"abort": name}`, then runs to the end."""
        engine = self.llm.llm_engine
        outputs: dict[str, Any] = {}

        def step() -> None:
            for output in engine.step():
                if output.finished:
                    outputs[output.request_id.split("/")[0]] = self.answer(output)

        self.number += 1
        # The engine's own name of a request may carry a suffix; it is told the names it gave out.
        names: dict[str, str] = {}
        for action in command["steps"]:
            if "add" in action:
                name = f"{action['add']}/{self.number}"
                names[action["add"]] = engine.add_request(name, self.prompt(action), self.sampling(action)) or name
            elif "abort" in action:
                engine.abort_request([names[action["abort"]]], internal=True)
            else:
                for _ in range(action["steps"]):
                    step()
        while engine.has_unfinished_requests():
            step()
        return {"outputs": outputs}

    def time(self, command: dict[str, Any]) -> dict[str, Any]:
        """Answers one request, step by step."""
        engine = self.llm.llm_engine
        self.number += 1
        prompt, sampling = self.prompt(command["request"]), self.sampling(command["request"])  # tokens before the clock
        started = time.perf_counter()
        engine.add_request(f"timed/{self.number}", prompt, sampling)
        first = in_hooks = 0.0
        while True:
            outputs = engine.step()
            if outputs and not first:
                first = time.perf_counter() - started
                in_hooks = hook_seconds()
            if outputs and outputs[0].finished:
                seconds = time.perf_counter() - started
                rest = seconds - first
                return {
                    "output": self.answer(outputs[0]),
                    "first_token_seconds": first,
                    "seconds": seconds,
                    "hook_share": (hook_seconds() - in_hooks) / rest if rest > 0 else 0.0,
                }

    def reset(self, command: dict[str, Any]) -> dict[str, Any]:
        """Forgets the engine's own prefixes, and the connector's when asked to."""
        return {"ok": self.llm.reset_prefix_cache(reset_connector=command.get("connector", False))}

    def arm(self, command: dict[str, Any]) -> dict[str, Any]:
        """Sets up a fault."""
        worker_connector().arm(command["point"], command["pid"])
        return {"ok": True}

    def set(self, command: dict[str, Any]) -> dict[str, Any]:
        """Changes options of a running engine, which saves a start."""
        import dataclasses

        scheduler = self.llm.llm_engine.engine_core.engine_core.scheduler
        if "policy" in command:
            scheduler.recompute_kv_load_failures = command["policy"] == "recompute"
        side = scheduler.connector._scheduler
        options = {name: command[name] for name in ("load", "save") if name in command}
        side._options = dataclasses.replace(side._options, **options)
        return {"ok": True}

    def facts(self, _: dict[str, Any]) -> dict[str, Any]:
        """Memory of this process and what the connector counted."""
        import dataclasses

        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        facts: dict[str, Any] = {"pid": os.getpid(), "rss_anon_kib": int(status["RssAnon"].split()[0])}
        connector = worker_connector()
        worker = getattr(connector, "_worker", None)
        if worker is not None:
            facts["counters"] = dataclasses.asdict(worker.counters)
            scheduler = self.llm.llm_engine.engine_core.engine_core.scheduler.connector._scheduler
            facts["epochs"] = [worker._registered_epoch(), scheduler._client.session_epoch]
        if self.llm.llm_engine.log_stats:
            metrics = [metric for metric in self.llm.get_metrics() if metric.name.startswith("vllm:orbitkv_")]
            facts["metrics"] = {metric.name: metric.value for metric in metrics}
        if hasattr(connector, "audit"):
            facts["audit"] = connector.audit()
        return facts


def worker_connector() -> Any:
    """The connector object of the worker in this process; None when it is elsewhere."""
    from vllm.distributed.kv_transfer import get_kv_transfer_group, has_kv_transfer_group

    return get_kv_transfer_group() if has_kv_transfer_group() else None


def hook_seconds() -> float:
    """Time spent so far in hooks of a connector that counts it."""
    connector = worker_connector()
    return float(connector.hook_seconds()) if hasattr(connector, "hook_seconds") else 0.0


def main() -> None:
    """Takes commands until the input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the engine prints goes to standard error
    started = time.perf_counter()
    engine = Engine(json.loads(sys.argv[1]))
    print(json.dumps({"ready": True, "seconds": time.perf_counter() - started}), file=out)
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "exit":
            break
        try:
            answer = getattr(engine, command["do"])(command)
        except Exception as error:  # the caller decides what it means
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out)
    engine.llm.llm_engine.engine_core.shutdown()
    print(json.dumps({"ended": True}), file=out)


if __name__ == "__main__":
    main()
