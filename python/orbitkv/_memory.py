"""Checks of the tensors of a registration, and where the pages are in them."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from orbitkv.errors import BindingChangedError, InvalidRequestError, LimitError
from orbitkv.layouts import Layout
from orbitkv.tensors import TensorLike

MAX_REGISTRATIONS = 64
MAX_TENSORS = 4096
MAX_CHARGED_BYTES = 1 << 40
MAX_SEGMENTS = 4096


class Facts(NamedTuple):
    """What is true of a tensor while it is registered. Strides in elements, as the tensor says."""

    pointer: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    element_size: int
    storage_pointer: int
    storage_bytes: int

    @classmethod
    def of(cls, tensor: TensorLike) -> Facts:
        """Asks a tensor."""
        storage = tensor.untyped_storage()
        return cls(
            tensor.data_ptr(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            tensor.element_size(),
            storage.data_ptr(),
            storage.nbytes(),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class LayerMemory:
    """Pages of one layer, in bytes: page p is its segments at `offset + p * page_stride + segment offset`."""

    facts: Facts
    offset: int
    page_stride: int
    segments: tuple[tuple[int, int], ...]

    @property
    def page_bytes(self) -> int:
        """Bytes of the layer's part of a block."""
        return sum(length for _, length in self.segments)


class Binding:
    """The tensors of one registration, kept alive, and what was true of them when it was made."""

    def __init__(self, tensors: Mapping[str, TensorLike], layout: Layout, num_blocks: int) -> None:
        """Checks the tensors of all layers.

        Raises:
            InvalidRequestError: Naming the layer, the value and the rule.
        """
        if not 1 <= len(tensors) <= MAX_TENSORS:
            raise LimitError(f"tensors={len(tensors)}, allowed=1..{MAX_TENSORS}", "LIMIT")
        if num_blocks < 1:
            raise InvalidRequestError(f"num_blocks={num_blocks}, at least 1", "INVALID")
        self._tensors = dict(tensors)
        self._kept = [tensor.untyped_storage() for tensor in tensors.values()]  # also where a tensor takes another
        self._facts = {name: Facts.of(tensor) for name, tensor in self._tensors.items()}
        self.index: dict[str, int] = {}
        self.layers: dict[str, LayerMemory] = {}
        own: dict[Facts, int] = {}
        for name, facts in self._facts.items():
            if facts not in own:
                own[facts] = len(own)
                self.layers[name] = layer_memory(name, facts, layout, num_blocks)
            self.index[name] = own[facts]
        _check_apart(self.layers, num_blocks)

    @property
    def storages(self) -> frozenset[tuple[int, int]]:
        """Address and bytes of each storage, once."""
        return frozenset((facts.storage_pointer, facts.storage_bytes) for facts in self._facts.values())

    def require_unchanged(self) -> None:
        """Asks every tensor again.

        Raises:
            BindingChangedError: Naming the first that is not as it was.
        """
        for name, tensor in self._tensors.items():
            found = Facts.of(tensor)
            if found != self._facts[name]:
                raise BindingChangedError(
                    f'layer="{name}" is no longer as registered: {_difference(self._facts[name], found)}', "INVALID"
                )

    def release(self) -> None:
        """Lets the tensors go."""
        self._tensors = {}
        self._kept = []


def _difference(old: Facts, new: Facts) -> str:
    return ", ".join(
        f"{field}={now}, registered={before}"
        for field, before, now in zip(Facts._fields, old, new, strict=True)
        if before != now
    )


def layer_memory(name: str, facts: Facts, layout: Layout, num_blocks: int) -> LayerMemory:
    """Checks the tensor of a layer against its layout, and finds its pages.

    Raises:
        InvalidRequestError: Naming the layer, the value and the rule.
    """
    dimensions = _dimensions(name, facts, layout)
    _check_order(name, dimensions, layout)
    rows = facts.shape[0] // num_blocks
    if rows < 1 or facts.shape[0] % num_blocks:
        raise _refused(name, f"blocks={facts.shape[0]} are no multiple of num_blocks={num_blocks}")
    offset = facts.pointer - facts.storage_pointer
    last = sum((size - 1) * stride for size, stride in dimensions.values())
    if offset < 0 or offset + last + facts.element_size > facts.storage_bytes:
        end = offset + last + facts.element_size
        raise _refused(name, f"bytes {offset}..{end} are beyond its storage, bytes={facts.storage_bytes}")
    row_stride = dimensions["B"][1]
    inner = [dimensions[letter] for letter in layout.order if letter != "B" and letter in dimensions]
    segments = _segments(name, [(rows, row_stride), *inner], facts.element_size)
    return LayerMemory(facts, offset, max(1, rows * row_stride), segments)  # of one page, any stride will do


def _dimensions(name: str, facts: Facts, layout: Layout) -> dict[str, tuple[int, int]]:
    """Size and stride in bytes of each dimension, by its letter."""
    shape, stride, item = facts.shape, facts.stride, facts.element_size
    if len(shape) != len(stride) or item < 1 or any(size < 1 for size in shape):
        raise _refused(name, f"shape={shape}, stride={stride}, element bytes={item}: none may be empty")
    if layout.order == "BC":
        if len(shape) < 2 or not _is_dense(shape[1:], stride[1:]):
            raise _refused(name, f"shape={shape}, stride={stride}: wanted [block, ...] with dense blocks")
        return {"B": (shape[0], stride[0] * item), "C": (_product(shape[1:]), item)}
    letters = {4: "BHNC", 3: "BNC"}.get(len(shape))
    if letters is None:
        raise _refused(name, f"shape={shape}, wanted [block, head, token, content] or [block, token, content]")
    return {letter: (shape[i], stride[i] * item) for i, letter in enumerate(letters)}


def _product(sizes: Iterable[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _is_dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    return all(shape[i] == 1 or stride[i] == _product(shape[i + 1 :]) for i in range(len(shape)))


def _check_order(name: str, dimensions: dict[str, tuple[int, int]], layout: Layout) -> None:
    """The strides fall in the order of the layout, and no two elements overlap."""
    reach = 0
    for letter in reversed(layout.order):
        size, stride = dimensions.get(letter, (1, 0))
        if size > 1 and stride < max(1, reach):
            raise _refused(name, f'stride bytes of {letter}={stride}, at least {reach} in layout="{layout.name}"')
        if size > 1:
            reach = size * stride


def _segments(name: str, dimensions: list[tuple[int, int]], item: int) -> tuple[tuple[int, int], ...]:
    """Contiguous parts of a page, in the order of the dimensions, outermost first."""
    run = item
    outer = [dimension for dimension in dimensions if dimension[0] > 1]
    while outer and outer[-1][1] == run:
        run *= outer.pop()[0]
    offsets = [0]
    for size, stride in outer:
        if len(offsets) * size > MAX_SEGMENTS:
            raise _refused(name, f"a page is in {len(offsets) * size} or more parts, limit={MAX_SEGMENTS}")
        offsets = [offset + i * stride for offset in offsets for i in range(size)]
    return tuple((offset, run) for offset in offsets)


def _check_apart(layers: Mapping[str, LayerMemory], num_blocks: int) -> None:
    """No page of a layer has bytes of another's: their memory does not meet, or is interleaved page by page."""
    in_order = sorted(layers.items(), key=lambda item: item[1].facts.storage_pointer + item[1].offset)
    cluster: list[tuple[str, LayerMemory]] = []
    end = 0
    for name, memory in in_order:
        begin = memory.facts.storage_pointer + memory.offset
        if begin >= end:
            _check_cluster(cluster, num_blocks)
            cluster = []
        cluster.append((name, memory))
        last = max(offset + length for offset, length in memory.segments)
        end = max(end, begin + (num_blocks - 1) * memory.page_stride + last)
    _check_cluster(cluster, num_blocks)


def _check_cluster(cluster: list[tuple[str, LayerMemory]], num_blocks: int) -> None:
    """The parts of a page of layers whose memory meets lie apart, and so do those of all pages at the same distance."""
    if len(cluster) < 2:
        return
    first, stride = cluster[0][0], cluster[0][1].page_stride
    parts: list[tuple[int, int, str]] = []
    for name, memory in cluster:
        if num_blocks > 1 and memory.page_stride != stride:
            raise _refused(
                name, f'page stride bytes={memory.page_stride}, but its memory meets that of layer="{first}", {stride}'
            )
        for offset, length in memory.segments:
            begin = memory.facts.storage_pointer + memory.offset + offset
            if num_blocks > 1:
                begin %= stride
                if begin + length > stride:  # goes on at the begin of the next page
                    parts.append((0, begin + length - stride, name))
                    length = stride - begin
            parts.append((begin, begin + length, name))
    parts.sort()
    for (_, end, before), (begin, _, name) in itertools.pairwise(parts):
        if begin < end:
            raise _refused(name, f'its pages have bytes of pages of layer="{before}"')


def _refused(name: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(f'layer="{name}": {what}', "INVALID")


class Charges:
    """Registrations of this process and the storages that they hold, each charged once. Thread-safe."""

    def __init__(self) -> None:
        """Nothing is charged."""
        self._lock = threading.Lock()
        self._registrations = 0
        self._storages: Counter[tuple[int, int]] = Counter()

    def add(self, storages: frozenset[tuple[int, int]]) -> None:
        """Charges a registration.

        Raises:
            LimitError: Naming the limit; nothing is charged then.
        """
        with self._lock:
            if self._registrations >= MAX_REGISTRATIONS:
                raise LimitError(f"registrations={self._registrations}, limit={MAX_REGISTRATIONS}", "LIMIT")
            total = sum(size for _, size in storages | set(self._storages))
            if total > MAX_CHARGED_BYTES:
                raise LimitError(f"registered storage bytes={total}, limit={MAX_CHARGED_BYTES}", "LIMIT")
            self._registrations += 1
            self._storages.update(storages)

    def remove(self, storages: frozenset[tuple[int, int]]) -> None:
        """Ends a charge."""
        with self._lock:
            self._registrations -= 1
            self._storages.subtract(storages)
            self._storages = +self._storages

    @property
    def charged_bytes(self) -> int:
        """Bytes of all storages, each once."""
        with self._lock:
            return sum(size for _, size in self._storages)


CHARGES = Charges()
