"""A worker's half of the connector: registers the KV pages, restores and saves what the plans say.

On a CPU the engine computes on the calling thread. So when a hook is called, what the step computed before it is
written: fences are done, and the pages of a save may be copied at once.
"""

from __future__ import annotations

import dataclasses
import operator
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from orbitkv import (
    CacheManagerClient,
    Fence,
    OrbitKVError,
    Registration,
    RestoreHandle,
    RestoreItem,
    RestoreStatus,
    SaveHandle,
    SaveItem,
    SaveNotSubmittedError,
    SaveStatus,
    StateDescriptor,
)
from orbitkv.vllm.log import logger
from orbitkv.vllm.messages import Load, Save, StepPlan, WorkerReport
from orbitkv.vllm.options import Options
from orbitkv.vllm.pause import Pause

IDLE_WAIT_S = 0.005  # of a step without tokens, for what is in progress: instead of the engine spinning
SHUTDOWN_WAIT_S = 2.0  # the engine kills its processes after 5 s
STUCK_WARNING_S = 5.0
CLAIM_SLACK_S = 0.25  # after the bound of a call the client itself says that the Manager has not taken a save up
UNCLAIMED = "not claimed within"  # how it says so

Register = Callable[[StateDescriptor], Registration]
_Status = TypeVar("_Status", RestoreStatus, SaveStatus)


@dataclasses.dataclass(slots=True)
class _Restore:
    """A restore in progress; without a handle it was refused."""

    load: Load
    handle: RestoreHandle | None
    message: str = ""


@dataclasses.dataclass(slots=True)
class Counters:
    """What a worker did, counted since its start.

    Attributes:
        restored_blocks: Blocks restored.
        failed_blocks: Blocks that were to be restored and were not.
        failed_loads: Loads with such blocks.
        stored_blocks: Blocks stored.
        held_blocks: Blocks that another save had stored.
        refused_blocks: Blocks refused, for example since the pool is full of blocks in use.
        failed_saves: Saves that were refused, or with blocks that were.
        unsaved_steps: How often saves were not tried, or not answered.
    """

    restored_blocks: int = 0
    failed_blocks: int = 0
    failed_loads: int = 0
    stored_blocks: int = 0
    held_blocks: int = 0
    refused_blocks: int = 0
    failed_saves: int = 0
    unsaved_steps: int = 0


_COUNTED = tuple(field.name for field in dataclasses.fields(Counters))
_numbers_of = operator.attrgetter(*_COUNTED)


class WorkerSide:
    """Restores and saves pages. Belongs to the worker's thread."""

    def __init__(
        self,
        client: CacheManagerClient,
        options: Options,
        rank: int,
        state: StateDescriptor,
        register: Register,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Registers the pages; without a Manager they are registered once one is there.

        Args:
            client: Connection to the Manager.
            options: The connector's options.
            rank: Index of the worker over all ranks.
            state: What the blocks are.
            register: Registers the engine's tensors under a state.
            now: Clock, seconds.
        """
        self._client = client
        self._options = options
        self._rank = rank
        self._state = state
        self._register = register
        self._generation = ""
        self._registration: Registration | None = register(state)
        self._retired: Registration | None = None
        self._pause = Pause(now)
        self._layers: dict[str, int] = {}
        self._sync: list[_Restore] = []
        self._async: dict[str, _Restore] = {}
        self._arrived: set[str] = set()
        self._invalid: set[int] = set()
        self._had_failure = False
        self._saves: dict[int, tuple[Save, SaveHandle]] = {}
        self._report = WorkerReport()
        self._epoch = self._registered_epoch()
        self._is_silent = False
        self.counters = Counters()
        self._counts_told = _numbers_of(self.counters)

    @property
    def epoch(self) -> int:
        """Manager epoch under which the pages are registered, as last reported; 0 for none."""
        return self._epoch

    def _registered_epoch(self) -> int:
        registration = self._registration
        return self._client.session_epoch if registration is not None and registration.is_active else 0

    # Restoring

    def start(self, plan: StepPlan) -> None:
        """Begins the loads of a step."""
        if plan.generation != self._generation:
            self._rotate(plan.generation)
        for load in plan.loads:
            restore = self._begin(load)
            if load.is_async:
                self._async[load.request_id] = restore
            else:
                self._sync.append(restore)

    def _rotate(self, generation: str) -> None:
        """Registers the pages under another generation of the weights; when that fails, later steps try again."""
        if self._registration is not None:
            self._retired, self._registration = self._registration, None
        if not self._pause.is_over:
            return
        try:
            if self._retired is not None:
                self._retired.close()
                self._retired = None
            self._registration = self._register(self._state.replace(weights_version=generation))
        except OrbitKVError as error:
            self._pause.begin()
            self._say_once(f"the pages are not registered for now: {error}")
            return
        self._generation = generation

    def _begin(self, load: Load) -> _Restore:
        lease, message = load.leases[self._rank], "the pages are not registered"
        if self._registration is not None:
            try:
                item = RestoreItem(lease, load.pages, load.skip)
                return _Restore(load, self._registration.restore(item, fence=Fence.DONE))
            except OrbitKVError as error:
                message = str(error)
        try:
            self._client.give_back(lease)  # nobody will use it
        except OrbitKVError as error:  # it ends with its age or the session
            logger.debug("a lease was not released: %s", error)
        return _Restore(load, None, message)

    def wait_layer(self, name: str) -> None:
        """Waits until a layer of every load of this step has arrived, or its load has failed.

        A load that is late is waited for once more, until its end: attention may not run before, and a clock that went
        on while the process was stopped proves nothing.
        """
        if not self._sync or self._registration is None:
            return
        layer = self._layers.get(name)
        if layer is None:
            layer = self._layers[name] = self._registration.layer_index(name)
        for restore in self._sync:
            handle = restore.handle
            if handle is not None and not handle.wait_layer(layer, self._options.timeout):
                _wait_restore(restore, self._options.timeout)

    def _end_sync(self) -> None:
        """Waits for the loads of this step and notes what was not delivered."""
        restores, self._sync = self._sync, []
        for restore in restores:
            is_whole = self._ended(restore, _wait_restore(restore, self._options.timeout))
            self._had_failure = self._had_failure or not is_whole

    def _ended(self, restore: _Restore, status: RestoreStatus) -> bool:
        """Notes how a restore ended; False when pages were not delivered."""
        pages = restore.load.pages
        if status.success:
            self.counters.restored_blocks += len(pages)
            return True
        failed = [pages[index] for index in status.failed] or list(pages)
        self._invalid.update(failed)
        self.counters.failed_blocks += len(failed)
        self.counters.failed_loads += 1
        self.counters.restored_blocks += len(pages) - len(failed)
        logger.warning(
            "request %s: %d of %d blocks were not restored (%s): %s",
            restore.load.request_id,
            len(failed),
            len(pages),
            status.status,
            status.message,
        )
        return False

    def arrived(self) -> set[str]:
        """Requests whose asynchronous loads have ended since the last call, well or not; each once."""
        for request_id, restore in list(self._async.items()):
            status = _poll_restore(restore)
            if status.done:
                del self._async[request_id]
                self._ended(restore, status)
                self._arrived.add(request_id)
        arrived, self._arrived = self._arrived, set()
        return arrived

    def take_invalid(self) -> set[int]:
        """Pages that were not delivered since the last call; each once."""
        invalid, self._invalid = self._invalid, set()
        return invalid

    # Saving

    def finish(self, plan: StepPlan) -> None:
        """Ends the step: waits for its loads, stores its blocks."""
        if self._sync:
            self._end_sync()
        if plan.saves:
            if self._had_failure:  # what the step computed may follow from pages that were not delivered
                self._leave_unsaved(plan.saves)
            else:
                self._save(plan.saves)
        self._had_failure = False
        if plan.is_idle and (self._async or self._saves):
            self._wait_idle()

    def _leave_unsaved(self, saves: Iterable[Save]) -> None:
        self.counters.unsaved_steps += 1
        for save in saves:
            before = self._report.unsaved.get(save.request_id, save.position)
            self._report.unsaved[save.request_id] = min(before, save.position)
            self._note_finished(save.ticket)

    def _save(self, saves: Sequence[Save]) -> None:
        if not self._pause.is_over:
            self._leave_unsaved(saves)
            return
        waited = [save for save in saves if save.ticket == 0]
        handle = self._submit(waited) if waited else None
        for save in saves:
            if save.ticket != 0:
                later = self._submit([save])
                if later is None:
                    self._note_finished(save.ticket)
                else:
                    self._saves[save.ticket] = (save, later)
        if handle is not None:
            self._settle(waited, _wait_save(handle, self._options.timeout + CLAIM_SLACK_S))

    def _submit(self, saves: Sequence[Save]) -> SaveHandle | None:
        """Begins to store blocks; None when that was refused, and the blocks are noted as unsaved."""
        items = [SaveItem(save.hashes, save.pages, save.position, save.parent) for save in saves]
        if self._registration is None:
            self._leave_unsaved(saves)
            return None
        try:
            handle = self._registration.save(items, fence=Fence.DONE)
        except SaveNotSubmittedError as error:
            self.counters.failed_saves += 1
            if error.status == "RESTORE_ONLY":  # no later try of this session would end otherwise
                self._say_once(f"blocks are not stored: {error}")
            else:
                self._say_once(f"blocks are not stored for now: {error}")
                self._leave_unsaved(saves)
            return None
        except OrbitKVError as error:
            self.counters.failed_saves += 1
            self._say_once(f"blocks are not stored: {error}")
            return None
        self._is_silent = False
        return handle

    def _settle(self, saves: Sequence[Save], status: SaveStatus) -> None:
        """Takes note of how a save ended; where the Manager did not answer, its blocks are noted as unsaved."""
        self._count(status)
        if not status.done or (status.status == "CANCELLED" and status.message.startswith(UNCLAIMED)):
            self._pause.begin()
            self._leave_unsaved(saves)
        else:
            self._pause.end()

    def _count(self, status: SaveStatus) -> None:
        self.counters.stored_blocks += status.stored
        self.counters.held_blocks += status.held
        self.counters.refused_blocks += status.refused
        if not status.success or status.refused:
            self.counters.failed_saves += 1
        if not status.done:
            self._say_once("the Manager does not say what became of a save; its pages are free")
        elif not status.success:
            self._say_once(f"{status.refused} blocks were not stored ({status.status}): {status.message}")

    def _note_finished(self, ticket: int) -> None:
        if ticket:
            self._report.finished_saves[ticket] = 1

    def _say_once(self, text: str) -> None:
        """Warns, until something is stored again."""
        if not self._is_silent:
            logger.warning("%s", text)
        self._is_silent = True

    def _wait_idle(self) -> None:
        """Waits a little for the oldest operation, by copying on this thread."""
        for restore in self._async.values():
            if restore.handle is not None:
                restore.handle.wait(IDLE_WAIT_S)
            return
        for _, handle in self._saves.values():
            handle.wait_save(IDLE_WAIT_S)
            return

    # Reports

    def _end_saves(self) -> None:
        """Takes note of saves that no step waited for and whose pages are free."""
        for ticket, (save, handle) in list(self._saves.items()):
            if handle.pages_free:
                del self._saves[ticket]
                self._settle([save], handle.poll())
                self._note_finished(ticket)

    def report(self) -> WorkerReport | None:
        """What the scheduler's half must know; None when nothing happened."""
        self._end_saves()
        epoch = self._registered_epoch()
        if epoch != self._epoch:
            self._epoch = epoch
            self._report.epochs[self._rank] = epoch
            if epoch != 0:
                self._pause.end()
        if not self._report:
            return None
        report, self._report = self._report, WorkerReport()
        return report

    def take_counts(self) -> dict[str, int] | None:
        """What was counted since the last call, by the names of `Counters`; None for nothing."""
        self._end_saves()  # the engine asks for counts before it asks for the report of a step
        told, now = self._counts_told, _numbers_of(self.counters)
        if now == told:
            return None
        self._counts_told = now
        return {name: new - old for name, new, old in zip(_COUNTED, now, told, strict=True) if new != old}

    def close(self) -> None:
        """Ends what is in progress, within a bound, and the session."""
        deadline = time.monotonic() + SHUTDOWN_WAIT_S
        for _, handle in self._saves.values():
            handle.wait_save(max(0.0, deadline - time.monotonic()))
        logger.info("cache use of this worker: %s", dataclasses.asdict(self.counters))
        try:
            if self._registration is not None:
                self._registration.close()
            self._client.close()
        except OrbitKVError as error:  # the process ends; the Manager sees that
            logger.warning("the session did not end in order: %s", error)


def _poll_restore(restore: _Restore) -> RestoreStatus:
    if restore.handle is None:
        return RestoreStatus(True, False, restore.message, "NOT_SUBMITTED")
    return restore.handle.poll()


def _wait_restore(restore: _Restore, timeout: float) -> RestoreStatus:
    """Waits for the end of a restore: until then nobody else may use its pages."""
    handle = restore.handle
    if handle is None:
        return _poll_restore(restore)
    status = handle.wait(timeout)
    if not status.done:
        handle.cancel()
        status = _until_done(lambda: handle.wait(STUCK_WARNING_S), f"restore {handle.key}")
    return status


def _wait_save(handle: SaveHandle, timeout: float) -> SaveStatus:
    """Waits for the end of a save, or until its pages are free: until then they may not be overwritten."""
    status = handle.wait_save(timeout)
    if status.done or handle.pages_free:
        return status
    handle.cancel()
    return _until_done(lambda: handle.wait_save(STUCK_WARNING_S), f"save {handle.operation_id}")


def _until_done(wait: Callable[[], _Status], what: str) -> _Status:
    """Waits for an end that only the copy itself can prove; says so while it does not come."""
    while True:
        status = wait()
        if status.done:
            return status
        logger.warning("%s was cancelled and its copy still runs: its pages cannot be used yet", what)
