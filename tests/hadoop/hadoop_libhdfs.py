"""Hadoop's C client for the tests, built from the source code that a Rust crate contains."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

_CRATE = "hdfs-sys"
_VERSION = "0.3.1"
_LIMIT_S = 300.0


def libhdfs(java_home: Path) -> Path | None:
    """The library, built once in the user's cache; None if cargo, a JDK or the crate is missing."""
    headers = java_home / "include"
    if shutil.which("cargo") is None or not (headers / "jni.h").exists():
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hearth"
    cache.mkdir(parents=True, exist_ok=True)
    library = cache / f"libhdfs-{_VERSION}" / "libhdfs.so"
    with open(cache / "libhdfs.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if library.exists() or _build(library, java_home):
            return library
    return None


def _build(library: Path, java_home: Path) -> bool:
    """Builds the library; False if the crate cannot be downloaded."""
    folder = library.parent
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src" / "lib.rs").touch()
    (folder / "Cargo.toml").write_text(
        '[package]\nname = "fetch"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\n{_CRATE} = "={_VERSION}"\n',
        encoding="utf-8",
    )
    try:
        if _status(["cargo", "vendor", "vendor"], folder)[0] != 0:
            return False
    except subprocess.TimeoutExpired:
        return False
    source = folder / "vendor" / _CRATE / "libhdfs" / "hdfs_3_3"
    files = [str(file) for part in (".", "os/posix") for file in (source / part).glob("*.c")]
    include = [source, source / "include", source / "include/hdfs", source.parent]
    include += [source / "os/posix", java_home / "include", java_home / "include/linux"]
    status, said = _status(
        ["gcc", "-shared", "-fPIC", "-O2", "-w", *(f"-I{path}" for path in include), *files,
         f"-L{java_home}/lib/server", "-ljvm", "-ldl", "-lpthread", "-o", f"{library}.part"],
        folder,
    )  # fmt: skip
    assert status == 0, said
    Path(f"{library}.part").rename(library)
    return True


def _status(command: list[str], folder: Path) -> tuple[int, str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_LIMIT_S)
    return done.returncode, done.stdout + done.stderr
