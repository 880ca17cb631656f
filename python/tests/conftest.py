"""Managers and engines of the tests. Archives come from the checkout unless `ORBITKV_JARS` names others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import support
from support import ROOT, ManagerProcess


def pytest_configure() -> None:
    app = ROOT / "app"
    os.environ.setdefault(
        "ORBITKV_JARS",
        os.pathsep.join(str(app / part) for part in ("target", "target/lib", "src/main/launcher")),
    )


@pytest.fixture(autouse=True)
def _scope(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Namespaces of its own for each test, so that most can share a Manager."""
    monkeypatch.setattr(support, "SCOPE", request.node.nodeid)


@pytest.fixture(scope="session")
def shared_manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagerProcess]:
    with ManagerProcess(tmp_path_factory.mktemp("manager")) as process:
        yield process


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[ManagerProcess]:
    with ManagerProcess(tmp_path) as process:
        yield process
