"""The connector's logger: below vLLM's own, so that its configuration applies."""

from vllm.logger import init_logger

logger = init_logger("vllm.orbitkv")
