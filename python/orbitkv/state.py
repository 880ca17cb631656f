"""What makes blocks interchangeable: the state descriptor, whose digest is the namespace."""

from __future__ import annotations

import dataclasses
import json
from typing import Literal

GroupKind = Literal["prefix", "window", "checkpoint"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupState:
    """One kind of state of an engine instance.

    Attributes:
        group: Id, 0 to 63.
        kind: `prefix` for full attention, `window` for sliding windows, `checkpoint` for recurrent state.
        window_tokens: Window in tokens of a window group, else 0.
        layers: Layers with memory of their own; a layer that shares another's memory does not count.
        block_bytes: Bytes of one block over all its layers, without padding.
    """

    group: int = 0
    kind: GroupKind = "prefix"
    window_tokens: int = 0
    layers: int
    block_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateDescriptor:
    """All that decides whether two engines may share blocks: only equal descriptors do.

    The Manager and the Java client check the values; each text has at most 4,096 bytes of UTF-8.

    Attributes:
        model: Name or path of the model. Must be stated.
        revision: Revision of the model.
        weights_version: Digest of the weights, and their generation where they change in place.
        quantization: Quantisation scheme; empty for none.
        compute_dtype: Type of the computation, for example `bfloat16`.
        kv_dtype: Type of the cached values.
        layout: `NHD`, `HND`, `MLA`, `recurrent` or `layer-page`; see `orbitkv.layouts`.
        isa: Instruction set that the engine packed the pages for; empty when it does not matter.
        block_tokens: Tokens of a block.
        groups: The groups, usually one.
        tp_size: Tensor parallel size.
        tp_rank: Rank in it.
        pp_size: Pipeline parallel size.
        pp_rank: Rank in it.
        dcp_size: Decode context parallel size.
        dcp_rank: Rank in it.
        replicated: True when each tensor parallel rank holds the same bytes; the rank then does not count.
        adapter: Identity of the adapter (LoRA); empty is explicitly none.
        hash_scheme: How the engine hashes blocks, for example `sha256_cbor`.
        hash_seed: Seed of the hashes.
        hash_bytes: Bytes of a hash, 16 to 32.
        engine: Name and version of the engine as far as its pages depend on it.
        format_version: Version of the adapter's own format.
        scope: Further isolation chosen by the operator.
    """

    model: str
    revision: str = ""
    weights_version: str = ""
    quantization: str = ""
    compute_dtype: str
    kv_dtype: str
    layout: str
    isa: str = ""
    block_tokens: int
    groups: tuple[GroupState, ...]
    tp_size: int = 1
    tp_rank: int = 0
    pp_size: int = 1
    pp_rank: int = 0
    dcp_size: int = 1
    dcp_rank: int = 0
    replicated: bool = False
    adapter: str = ""
    hash_scheme: str
    hash_seed: str = ""
    hash_bytes: int = 32
    engine: str
    format_version: str = ""
    scope: str = ""

    def replace(self, **changes: object) -> StateDescriptor:
        """The same with other values of some fields."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def text(self) -> str:
        """The descriptor as the text form of its protobuf message, which the Java client reads."""
        lines = [f"{name}: {_literal(value)}" for name, value in _fields(self) if name != "groups"]
        for group in self.groups:
            inner = " ".join(f"{'id' if name == 'group' else name}: {_literal(v)}" for name, v in _fields(group))
            lines.append(f"groups {{ {inner} }}")
        return "\n".join(lines)


def _fields(value: GroupState | StateDescriptor) -> list[tuple[str, object]]:
    return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)  # the text form has the escapes of JSON but surrogates
