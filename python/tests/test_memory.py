from __future__ import annotations

import pytest

from orbitkv import BindingChangedError, HostTensor, InvalidRequestError, LimitError, layout_of
from orbitkv._memory import Binding, Charges, Facts, layer_memory
from orbitkv.tensors import HostStorage

B, H, N, C, ITEM = 4, 3, 8, 16, 2
SIZES = {"L": 2, "B": B, "H": H, "N": N, "C": C}


def strided(order: str) -> tuple[HostStorage, list[HostTensor]]:
    """Two layers of [block, head, token, content] in the memory order of a layout name."""
    stride = {}
    reach = 1
    for letter in reversed(order):
        stride[letter] = reach
        reach *= SIZES[letter]
    storage = HostStorage(bytearray(reach * ITEM))
    shape = (B, H, N, C)
    tensors = [
        HostTensor(storage, shape=shape, stride=[stride[x] for x in "BHNC"], offset=i * stride["L"], element_size=ITEM)
        for i in range(2)
    ]
    return storage, tensors


@pytest.mark.parametrize(
    ("order", "runs"), [("LBHNC", 1), ("LBNHC", 1), ("LHBNC", H), ("BLHNC", 1), ("BLNHC", 1), ("BHLNC", H)]
)
def test_should_cover_each_byte_of_a_page_once(order: str, runs: int) -> None:
    storage, tensors = strided(order)
    seen: set[int] = set()
    for tensor in tensors:
        memory = layer_memory("x", Facts.of(tensor), layout_of(order), B)
        assert len(memory.segments) == runs
        assert memory.page_bytes == H * N * C * ITEM
        for page in range(B):
            for offset, length in memory.segments:
                at = memory.offset + page * memory.page_stride + offset
                found = set(range(at, at + length))
                assert not seen & found
                seen |= found
    assert seen == set(range(storage.nbytes()))


def test_should_order_the_parts_of_a_page_as_the_layout_does() -> None:
    _, tensors = strided("LHBNC")
    memory = layer_memory("x", Facts.of(tensors[0]), layout_of("LHBNC"), B)
    assert memory.segments == tuple((h * B * N * C * ITEM, N * C * ITEM) for h in range(H))
    of_two = layer_memory("x", Facts.of(tensors[0]), layout_of("LHBNC"), B // 2)
    assert of_two.segments == tuple(
        (row * N * C * ITEM + h * B * N * C * ITEM, N * C * ITEM) for row in range(2) for h in range(H)
    )


def test_should_take_several_rows_as_one_block() -> None:
    _, tensors = strided("LBHNC")
    memory = layer_memory("x", Facts.of(tensors[0]), layout_of("LBHNC"), B // 2)
    assert memory.page_stride == 2 * H * N * C * ITEM
    assert memory.segments == ((0, 2 * H * N * C * ITEM),)
    with pytest.raises(InvalidRequestError, match="no multiple of num_blocks=3"):
        layer_memory("x", Facts.of(tensors[0]), layout_of("LBHNC"), 3)


def test_should_leave_padding_between_pages_out() -> None:
    tensor = HostTensor(bytearray(4 * 64), shape=(4, 40), stride=(64, 1), element_size=1)
    memory = layer_memory("x", Facts.of(tensor), layout_of("layer-page"), 4)
    assert (memory.page_stride, memory.segments) == (64, ((0, 40),))


def test_should_refuse_strides_of_another_layout() -> None:
    _, tensors = strided("LBNHC")
    with pytest.raises(InvalidRequestError, match=r'layer="x": stride bytes of H=.* in layout="LBHNC"'):
        layer_memory("x", Facts.of(tensors[0]), layout_of("LBHNC"), B)


def test_should_refuse_a_layout_without_a_name_of_ours() -> None:
    with pytest.raises(InvalidRequestError, match='layout="XYZ" is not known'):
        layout_of("XYZ")


@pytest.mark.parametrize(
    ("offset", "shape", "message"),
    [(1, (4, 64), "bytes 1..257 are beyond its storage, bytes=256"), (0, (5, 64), "beyond its storage")],
)
def test_should_refuse_a_tensor_beyond_its_storage(offset: int, shape: tuple[int, int], message: str) -> None:
    tensor = HostTensor(bytearray(256), shape=shape, offset=offset, element_size=1)
    with pytest.raises(InvalidRequestError, match=message):
        layer_memory("x", Facts.of(tensor), layout_of("layer-page"), shape[0])


def test_should_count_layers_that_share_memory_once() -> None:
    _, (first, second) = strided("LBHNC")
    binding = Binding({"a": first, "b": second, "again": first}, layout_of("LBHNC"), B)
    assert list(binding.layers) == ["a", "b"]
    assert binding.index == {"a": 0, "b": 1, "again": 0}
    assert len(binding.storages) == 1


@pytest.mark.parametrize("order", ["LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"])
@pytest.mark.parametrize("num_blocks", [B, B // 2, 1])
def test_should_take_layers_in_every_layout(order: str, num_blocks: int) -> None:
    _, (first, second) = strided(order)
    assert list(Binding({"a": first, "b": second}, layout_of(order), num_blocks).layers) == ["a", "b"]


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"shape": (4, 64), "stride": (64, 1), "offset": 64}, 'layer="b": its pages have bytes of .*layer="a"'),
        ({"shape": (4, 64), "stride": (64, 1), "offset": 128 + 32}, 'layer="b": its pages have bytes of .*layer="a"'),
        ({"shape": (2, 64), "stride": (192, 1), "offset": 64}, None),
        ({"shape": (4, 16), "stride": (16, 1), "offset": 0}, 'layer="b": page stride bytes=16, .* layer="a", 64'),
        ({"shape": (4, 64), "stride": (64, 1), "offset": 256}, None),
    ],
)
def test_should_refuse_layers_whose_pages_overlap(second: dict[str, object], words: str | None) -> None:
    storage = HostStorage(bytearray(640))
    a = HostTensor(storage, shape=(4, 64), stride=(64, 1), element_size=1)
    b = HostTensor(storage, element_size=1, **second)  # type: ignore[arg-type]
    if words is not None:
        with pytest.raises(InvalidRequestError, match=words):
            Binding({"a": a, "b": b}, layout_of("layer-page"), 4)
        with pytest.raises(InvalidRequestError):
            Binding({"b": b, "a": a}, layout_of("layer-page"), 4)
    else:
        blocks = 4 if second["shape"] == (4, 64) else 2
        a = HostTensor(storage, shape=(blocks, 64), stride=(64 if blocks == 4 else 192, 1), element_size=1)
        Binding({"a": a, "b": b}, layout_of("layer-page"), blocks)


class Movable(HostTensor):
    """A tensor whose memory can be swapped, as `share_memory_` does."""

    def swap(self, buffer: bytearray) -> None:
        self._storage = HostStorage(buffer)


def test_should_notice_that_a_tensor_has_other_memory() -> None:
    tensor = Movable(bytearray(256), shape=(4, 64), element_size=1)
    binding = Binding({"a": tensor}, layout_of("layer-page"), 4)
    binding.require_unchanged()
    tensor.swap(bytearray(512))
    with pytest.raises(BindingChangedError, match=r'layer="a" .*storage_bytes=512, registered=256'):
        binding.require_unchanged()


def test_should_charge_shared_storages_once_and_bound_the_sum() -> None:
    charges = Charges()
    charges.add(frozenset({(1, 100)}))
    charges.add(frozenset({(1, 100), (2, 10)}))
    assert charges.charged_bytes == 110
    with pytest.raises(LimitError, match="registered storage bytes=1099511627886, limit=1099511627776"):
        charges.add(frozenset({(3, 1 << 40)}))
    charges.remove(frozenset({(1, 100)}))
    assert charges.charged_bytes == 110
    charges.remove(frozenset({(1, 100), (2, 10)}))
    assert charges.charged_bytes == 0
    for _ in range(64):
        charges.add(frozenset())
    with pytest.raises(LimitError, match="registrations=64, limit=64"):
        charges.add(frozenset())


def test_should_bound_the_number_of_tensors() -> None:
    tensor = HostTensor(bytearray(256), shape=(4, 64), element_size=1)
    with pytest.raises(LimitError, match=r"tensors=4097, allowed=1\.\.4096"):
        Binding({str(i): tensor for i in range(4097)}, layout_of("layer-page"), 4)
