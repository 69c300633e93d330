"""`make test-rdma`, `make soak-rdma`: the collective over Soft-RoCE in an emulated machine, without
KVM or root.

The guest sees this machine's files read-only; its output is returned through a folder.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import guest_image

_CHECKOUT = Path(__file__).resolve().parents[2]
_LIMITS_S = {"short": 900.0, "whole": 3600.0}


def _share(name: str, folder: Path, writable: bool = False) -> list[str]:
    access = "" if writable else ",readonly=on"
    return [
        "-fsdev", f"local,id={name},path={folder},security_model=none,multidevs=remap{access}",
        "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}",
    ]  # fmt: skip


def _command(image: Path, out: Path, build: str, suite: str) -> list[str]:
    return [
        "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
        "-smp", "2", "-m", "2048", "-nodefaults", "-no-user-config", "-display", "none",
        "-no-reboot", "-serial", f"file:{out}/console",
        "-kernel", f"{image}/vmlinux", "-initrd", f"{image}/initramfs",
        "-append", "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off tsc=reliable "
        f"random.trust_cpu=on HEARTH_BUILD={build} HEARTH_SUITE={suite} "
        f"HEARTH_CHECKOUT={_CHECKOUT}",
        *_share("host", Path("/")), *_share("checkout", _CHECKOUT),
        *_share("out", out, writable=True),
    ]  # fmt: skip


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def main(build: str, suite: str = "short") -> int:
    """Boots the guest, prints its log, and returns its exit status. `suite`: a key of _LIMITS_S."""
    try:
        image = guest_image.image()
    except RuntimeError as error:
        print(f"rdma: {error}", file=sys.stderr)
        return 1
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        try:
            subprocess.run(_command(image, out, build, suite), timeout=_LIMITS_S[suite], check=True)
        except subprocess.TimeoutExpired:
            print(f"rdma: the guest did not end within {_LIMITS_S[suite]:.0f} s", file=sys.stderr)
        print(_text(out / "log"), end="")
        status = _text(out / "status").strip()
        if status != "0":
            print(f"rdma: failed; the guest's console:\n{_text(out / 'console')}", file=sys.stderr)
    print(f"rdma: {time.monotonic() - start:.0f} s")
    return 0 if status == "0" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
