"""Options of the connector, from `kv_connector_extra_config`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

PREFIX = "orbitkv."

Mode = Literal["read_write", "read_only", "save_only"]
Way = Literal["auto", "sync", "async"]

_MAX_BYTES = 1 << 50


class OptionError(ValueError):
    """An option is unknown or breaks its rule; the message names both."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """All options, checked.

    Attributes:
        bootstrap_socket: Socket of the Manager; None for the default.
        mode: What the engine does with the cache.
        timeout_ms: Bound of every call to the Manager, milliseconds.
        copy_threads: Threads that copy what nobody waits for, 1 to 64.
        verify: Whether each restored block's checksum is compared first.
        load: How blocks are restored: before the step that needs them, beside other steps, or by size.
        async_load_bytes: Size from which `auto` restores beside other steps.
        save: How blocks are stored: at the end of the step that filled them, beside later steps, or by size.
        async_save_bytes: Size from which `auto` stores beside later steps.
        scope: Isolation chosen by the operator: engines with different scopes share nothing; by default
            `$ORBITKV_CACHE_SCOPE`.
    """

    bootstrap_socket: str | None = None
    mode: Mode = "read_write"
    timeout_ms: int = 5000
    copy_threads: int = 1
    verify: bool = False
    load: Way = "auto"
    async_load_bytes: int = 256 << 20
    save: Way = "auto"
    async_save_bytes: int = 256 << 20
    scope: str = dataclasses.field(default_factory=lambda: os.environ.get("ORBITKV_CACHE_SCOPE", ""))

    @classmethod
    def read(cls, extra: Mapping[str, Any]) -> Options:
        """Reads and checks the options; keys without the prefix belong to others, unless they look like ours.

        Raises:
            OptionError: Naming the option, its value and the rule.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        for key in extra:
            if not key.startswith(PREFIX) and (key in known or key.lower().startswith("orbitkv")):
                raise OptionError(f"{key} is not known: each option of this connector begins with {PREFIX}")
        given = {key.removeprefix(PREFIX): value for key, value in extra.items() if key.startswith(PREFIX)}
        for name in given:
            if name not in known:
                allowed = ", ".join(PREFIX + each for each in sorted(known))
                raise OptionError(f"{PREFIX}{name} is not known, allowed={allowed}")
        options = cls(**given)
        options._check()
        return options

    def _check(self) -> None:
        self._one_of("mode", get_args(Mode))
        self._one_of("load", get_args(Way))
        self._one_of("save", get_args(Way))
        self._between("timeout_ms", 1, 86_400_000)
        self._between("copy_threads", 1, 64)
        self._between("async_load_bytes", 0, _MAX_BYTES)
        self._between("async_save_bytes", 0, _MAX_BYTES)
        self._of_type("verify", bool)
        self._of_type("scope", str)
        if self.bootstrap_socket is not None:
            self._of_type("bootstrap_socket", str)

    def _of_type(self, name: str, kind: type) -> None:
        value = getattr(self, name)
        if not isinstance(value, kind):
            raise OptionError(f"{PREFIX}{name}={value!r}, allowed is a {kind.__name__}")

    def _one_of(self, name: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            raise OptionError(f"{PREFIX}{name}={value!r}, allowed={', '.join(allowed)}")

    def _between(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise OptionError(f"{PREFIX}{name}={value!r}, allowed={low}..{high}")

    @property
    def timeout(self) -> float:
        """Bound of every call to the Manager, seconds."""
        return self.timeout_ms / 1000

    def loads_async(self, load_bytes: int) -> bool:
        """Whether so many bytes are restored beside other steps."""
        return self.load == "async" or (self.load == "auto" and load_bytes >= self.async_load_bytes)

    def saves_async(self, save_bytes: int) -> bool:
        """Whether so many bytes of one step are stored beside later steps."""
        return self.save == "async" or (self.save == "auto" and save_bytes >= self.async_save_bytes)


def options_of(transfer_config: Any) -> Options:
    """Options of vLLM's transfer configuration.

    Raises:
        OptionError: When an option breaks its rule, or contradicts the role.
    """
    options = Options.read(cast("Mapping[str, Any]", transfer_config.kv_connector_extra_config))
    does_nothing = (options.mode == "read_only" and not transfer_config.is_kv_consumer) or (
        options.mode == "save_only" and not transfer_config.is_kv_producer
    )
    if does_nothing:
        raise OptionError(f'{PREFIX}mode="{options.mode}" with kv_role="{transfer_config.kv_role}" would do nothing')
    return options
