"""Page layouts that engines name, and what they mean.

A layout name of vLLM is the order of the dimensions in memory, outermost first: L layers, B blocks, H heads, N tokens,
C content (keys and values of a head). The bytes of a block are those of its layers one behind the other, each in the
order of memory; so the layouts with heads before tokens share their block format, and so do the others.
"""

from __future__ import annotations

import dataclasses

from orbitkv.errors import InvalidRequestError


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """One page layout.

    Attributes:
        name: Name in the engine's description.
        order: Order in memory of the dimensions B, H, N, C of one layer's tensor, outermost first.
        state: Value of `StateDescriptor.layout`.
    """

    name: str
    order: str
    state: str


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("LBHNC", "BHNC", "HND"),
        Layout("LBNHC", "BNHC", "NHD"),
        Layout("LHBNC", "HBNC", "HND"),
        Layout("BLHNC", "BHNC", "HND"),
        Layout("BLNHC", "BNHC", "NHD"),
        Layout("BHLNC", "BHNC", "HND"),
        Layout("layer-page", "BC", "layer-page"),
    )
}


def layout_of(name: str) -> Layout:
    """The layout of a name.

    Args:
        name: `kv_cache_layout` of the engine, for example `LBHNC`; `layer-page` for tensors of shape [block, bytes].

    Raises:
        InvalidRequestError: Naming the layout when it is not known.
    """
    layout = LAYOUTS.get(name)
    if layout is None:
        raise InvalidRequestError(f'layout="{name}" is not known, allowed={", ".join(sorted(LAYOUTS))}', "INVALID")
    return layout
