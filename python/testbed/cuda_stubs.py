"""Makes the CUDA libraries that torch links but never calls on a machine without a GPU.

Every symbol that torch misses is one function that returns 999 (`cudaErrorUnknown`). The libraries carry the names and
symbol versions that the linker asks for, and lie in `nvidia/cu13/lib`, where torch looks for them.

Usage: cuda_stubs.py SITE_PACKAGES
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# Library and the start of its symbols' names; the first that fits takes a symbol without a version.
LIBRARIES = (
    ("libcusparseLt.so.0", "cusparseLt"),
    ("libcusparse.so.12", "cusparse"),
    ("libcufft.so.12", "cufft"),
    ("libcurand.so.10", "curand"),
    ("libcublasLt.so.13", "cublasLt"),
    ("libcublas.so.13", "cublas"),
    ("libcudnn.so.9", "cudnn"),
    ("libnvrtc.so.13", "nvrtc"),
    ("libnccl.so.2", "p?nccl"),
    ("libnvshmem_host.so.3", "nvshmem"),
    ("libcusolver.so.12", "cusolver"),
)
USERS = ("libtorch_cuda.so", "libtorch_python.so", "libtorch_nvshmem.so", "libtorch_cuda_linalg.so")


def missing_symbols(torch_lib: Path) -> dict[str, dict[str, set[str]]]:
    """Finds what torch expects from each library: library name to symbol version to symbols."""
    missing: dict[str, dict[str, set[str]]] = {library: defaultdict(set) for library, _ in LIBRARIES}
    for user in USERS:
        table = subprocess.run(
            ["nm", "-D", "--undefined-only", str(torch_lib / user)], check=True, capture_output=True, text=True
        ).stdout
        for line in table.splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            version = version.lstrip("@")
            for library, prefix in LIBRARIES:
                named = version == library
                unnamed = not version.startswith("lib") and re.match(prefix, symbol)
                if named or unnamed:
                    missing[library][version].add(symbol)
                    break
    return missing


def build(library: str, versions: dict[str, set[str]], folder: Path) -> None:
    """Compiles one library."""
    with tempfile.TemporaryDirectory() as work:
        source = Path(work, "stub.c")
        script = Path(work, "stub.map")
        symbols = sorted({symbol for names in versions.values() for symbol in names})
        source.write_text(
            "static int stub(void) { return 999; }\n"
            + "".join(f'int {symbol}(void) __attribute__((alias("stub")));\n' for symbol in symbols)
        )
        command = [
            "cc",
            "-shared",
            "-fPIC",
            "-nostdlib",
            "-o",
            str(folder / library),
            str(source),
            f"-Wl,-soname,{library}",
        ]
        named = {version: names for version, names in versions.items() if version}
        if named:
            script.write_text(
                "".join(f"{version} {{ global: {'; '.join(sorted(names))}; }};\n" for version, names in named.items())
            )
            command.append(f"-Wl,--version-script={script}")
        subprocess.run(command, check=True)


def main() -> None:
    """Makes all libraries."""
    site_packages = Path(sys.argv[1])
    folder = site_packages / "nvidia/cu13/lib"
    folder.mkdir(parents=True, exist_ok=True)
    for library, versions in missing_symbols(site_packages / "torch/lib").items():
        build(library, versions, folder)


if __name__ == "__main__":
    main()
