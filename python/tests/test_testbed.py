"""The test bed notices when something of it is missing or changed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

SETUP = ROOT / "python/testbed/setup"
PACKAGE = "venv/lib/python3.12/site-packages/engine/core.py"
WEIGHTS = "model/model.safetensors"


def load() -> Any:
    loader = SourceFileLoader("testbed_setup", str(SETUP))
    spec = importlib.util.spec_from_loader("testbed_setup", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


setup = load()


@pytest.fixture
def bed(tmp_path: Path) -> Path:
    """A bed in miniature, whole."""
    bed = tmp_path / "bed"
    for name in ("venv/bin/python", PACKAGE, WEIGHTS, "model/tokenizer.json"):
        path = bed / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"content of {name}")
    (bed / setup.MANIFEST).write_text("".join(setup.manifest(bed)))
    return bed


def test_finds_nothing_wrong_with_a_whole_bed(bed: Path) -> None:
    assert setup.find_problem(bed) is None
    cache = bed / Path(PACKAGE).parent / "__pycache__"
    cache.mkdir()
    (cache / "core.cpython-312.pyc").write_text("byte code")
    assert setup.find_problem(bed) is None


@pytest.mark.parametrize("name", ["venv/bin/python", PACKAGE, WEIGHTS, "model/tokenizer.json"])
def test_names_a_file_that_is_missing(bed: Path, name: str) -> None:
    (bed / name).unlink()
    assert setup.find_problem(bed) == f"is damaged at {name}"


def test_names_a_file_that_was_cut(bed: Path) -> None:
    with (bed / PACKAGE).open("r+") as file:
        file.truncate(3)
    assert setup.find_problem(bed) == f"is damaged at {PACKAGE}"


def test_names_weights_with_another_byte(bed: Path) -> None:
    content = bytearray((bed / WEIGHTS).read_bytes())
    content[0] ^= 1
    (bed / WEIGHTS).write_bytes(content)
    assert setup.find_problem(bed) == f"is damaged at {WEIGHTS}"


def test_names_a_file_that_does_not_belong_there(bed: Path) -> None:
    added = Path(PACKAGE).with_name("added.py")
    (bed / added).touch()
    assert setup.find_problem(bed) == f"is damaged at {added}"


def test_takes_a_bed_without_its_manifest_for_unfinished(bed: Path) -> None:
    (bed / setup.MANIFEST).unlink()
    assert setup.find_problem(bed).startswith("is not whole")


def test_makes_a_damaged_bed_again_and_explains_why_it_can_not(tmp_path: Path) -> None:
    """The set-up begins anew; here it can not, since the machine has no compiler for it."""
    bed = tmp_path / "orbitkv" / f"testbed-{setup.ingredients()}"
    bed.mkdir(parents=True)
    (bed / setup.MANIFEST).write_text(f"1 {PACKAGE}\n")
    result = subprocess.run(
        [sys.executable, str(SETUP)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert f"{bed}: is damaged at {PACKAGE}; making it" in result.stderr
    assert result.stderr.endswith("`cc` was not found; install a C compiler (gcc and binutils)\n")
    assert result.stdout == ""
