"""A rehearsal of what the first request needs."""

from __future__ import annotations

import contextlib
import logging
import threading

from orbitkv import _jvm
from orbitkv._scratch import SCRATCH, Reader
from orbitkv.errors import OrbitKVError
from orbitkv.handles import RestoreHandle, SaveHandle

_LOG = logging.getLogger("orbitkv")
_ANSWER_BYTES = 1024
_NOTHING = 0  # no object of the bridge has this id
_first = threading.Lock()  # taken by the first rehearsal, and never given back


def rehearse(client: int) -> None:
    """Plays a restore and a save in memory of its own, once a process; the Manager need not be there.

    More is played in the background, and hints are asked of a Manager that is there. In a new virtual machine the first
    request would wait some milliseconds for classes and run interpreted code.

    Args:
        client: Id of a client in the bridge.
    """
    if not _first.acquire(blocking=False):
        return
    try:
        _play(client)
    except OrbitKVError as error:  # the first request is slower
        _LOG.debug("rehearsal: %s", error)


def _play(client: int) -> None:
    SCRATCH.reserve(_ANSWER_BYTES)
    _jvm.call("rehearse", client, SCRATCH.java)
    restore, save, blocks = Reader().numbers(3)
    restored = RestoreHandle(restore, blocks, 0, {})
    restored.wait_layer(0, 0)
    restored.wait(0)
    saved = SaveHandle(save, blocks)
    saved.wait_save(0)
    saved.pages_free  # noqa: B018
    for method in ("restore", "save"):  # finds the methods, and how failures are told
        with contextlib.suppress(OrbitKVError):
            _jvm.call(method, _NOTHING, SCRATCH.java, _NOTHING)
    with contextlib.suppress(OrbitKVError):
        _jvm.call("lookup", _NOTHING, SCRATCH.java, SCRATCH.java)
    with contextlib.suppress(OrbitKVError):
        _jvm.call("isRegistered", _NOTHING)
