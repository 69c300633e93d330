"""The RDMA guest's boot image: Debian's kernel and busybox, downloaded once and unpacked."""

from __future__ import annotations

import fcntl
import gzip
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# rdma_rxe (Soft-RoCE) needs crc32_generic, too, but does not declare the dependency.
_MODULES = ["virtio_pci", "9pnet_virtio", "9p", "crc32_generic", "ib_uverbs", "rdma_rxe", "veth"]
_FETCH_S = 600.0


def image() -> Path:
    """The folder with `vmlinux` and `initramfs`; creates it if missing (70 MB to fetch).

    It is `hearth/rdma-guest` in $XDG_CACHE_HOME (~/.cache).

    Raises:
        RuntimeError: a program is missing, or a package could not be fetched.
    """
    for program, package in (("qemu-system-x86_64", "qemu-system-x86"), ("rdma", "iproute2")):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            raise RuntimeError(
                f"{program} is missing: apt-get install --no-install-recommends {package}"
            )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hearth"
    folder = cache / "rdma-guest"
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "rdma-guest.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            part = folder.with_name("rdma-guest.part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            _make(part)
            part.rename(folder)
    return folder


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_FETCH_S)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def _kernel_package(folder: Path) -> str:
    """The package that linux-image-amd64 depends on; the cloud kernels lack rdma_rxe and 9p."""
    depends = _run("apt-cache", "depends", "linux-image-amd64", cwd=folder)
    found = re.search(r"Depends: (linux-image-\S+)", depends)
    if found is None:
        raise RuntimeError("apt-cache knows no linux-image-amd64: run apt-get update")
    return found[1]


def _make(folder: Path) -> None:
    kernel = _kernel_package(folder)
    print(f"rdma: fetching {kernel} for {folder.parent} (70 MB, once)", file=sys.stderr, flush=True)
    _run("apt-get", "download", "-o", "Acquire::Retries=5", kernel, "busybox-static", cwd=folder)
    unpacked = folder / "packages"
    for package in folder.glob("*.deb"):
        _run("dpkg", "-x", package.name, str(unpacked), cwd=folder)
        package.unlink()
    _write_vmlinux(next(unpacked.glob("boot/vmlinuz-*")), folder / "vmlinux")
    _write_initramfs(unpacked, folder / "initramfs")
    shutil.rmtree(unpacked)


def _write_vmlinux(vmlinuz: Path, vmlinux: Path) -> None:
    """Unpacks the kernel, which would be slow in the emulator; qemu boots it directly (PVH)."""
    data = vmlinuz.read_bytes()
    start = data.index(b"\xfd7zXZ\x00")
    vmlinux.write_bytes(lzma.LZMADecompressor().decompress(data[start:]))


def _in_order(modules: dict[str, Path]) -> list[Path]:
    """The needed modules, each after its dependencies."""
    order: dict[str, Path] = {}

    def add(name: str) -> None:
        if name in order or name not in modules:  # missing modules are built into the kernel
            return
        found = re.search(rb"\0depends=([^\0]*)\0", modules[name].read_bytes())
        for dependency in found[1].decode().split(",") if found else []:
            add(dependency.replace("-", "_"))
        order[name] = modules[name]

    for name in _MODULES:
        add(name)
    return list(order.values())


def _write_initramfs(unpacked: Path, initramfs: Path) -> None:
    modules = {path.stem.replace("-", "_"): path for path in unpacked.rglob("*.ko")}
    order = _in_order(modules)
    entries = [(name, 0o040755, b"") for name in ("bin", "modules", "proc", "sys", "dev", "root")]
    entries.append(("bin/busybox", 0o100755, (unpacked / "bin/busybox").read_bytes()))
    entries.append(("init", 0o100755, Path(__file__).with_name("init.sh").read_bytes()))
    names = "".join(f"{path.name}\n" for path in order)
    entries.append(("modules/order", 0o100644, names.encode()))
    entries += [(f"modules/{path.name}", 0o100644, path.read_bytes()) for path in order]
    initramfs.write_bytes(gzip.compress(_cpio([*entries, ("TRAILER!!!", 0, b"")]), 1))


def _cpio(entries: list[tuple[str, int, bytes]]) -> bytes:
    """An archive in the kernel's "newc" format."""
    archive = bytearray()
    for inode, (name, mode, data) in enumerate(entries, 1):
        fields = (inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        archive += b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        archive += b"\0" * (-len(archive) % 4) + data
        archive += b"\0" * (-len(archive) % 4)
    return bytes(archive)


if __name__ == "__main__":
    try:
        print(image())
    except RuntimeError as error:
        sys.exit(f"rdma: {error}")
