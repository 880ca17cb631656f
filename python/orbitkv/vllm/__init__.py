"""OrbitKV as a KV connector of vLLM.

vLLM loads it by name: `--kv-transfer-config '{"kv_connector": "OrbitKVConnector", "kv_connector_module_path":
"orbitkv.vllm", "kv_role": "kv_both"}'`. Two objects of one class work together, usually in different processes: the
scheduler's looks prefixes up and takes leases (`orbitkv.vllm.scheduler`), each worker's restores and saves pages
(`orbitkv.vllm.worker`). What goes between them is in `orbitkv.vllm.messages`.
"""

from orbitkv.vllm.connector import OrbitKVConnector

__all__ = ["OrbitKVConnector"]
