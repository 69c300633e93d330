#!/usr/bin/env python3
"""Tags a wheel manylinux_2_28 if auditwheel accepts it; fails otherwise.

    tag_wheel.py dist/hearth_spark-0.2.0-cp311-cp311-linux_x86_64.whl

Prints the wheel's new path. Libraries in OTHERS come from other packages. A wheel that needs
another library, or newer symbols of glibc or libstdc++, is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PLATFORM = "manylinux_2_28_x86_64"
# The extra [caffe] installs oneDNN, and [torch] what the device library needs. GCC's OpenMP is the
# system's: oneDNN's package needs it, too, and a process should have only one.
OTHERS = {"libdnnl.so.3", "libtorch_cpu.so", "libc10.so", "libgomp.so.1"}


def verdict(wheel: Path) -> dict:
    """The verdict of `auditwheel show`, without access to this machine's libraries, whose symbols
    it would count as the wheel's."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", "--ldpaths", "/nonexistent"]
    done = subprocess.run([*command, str(wheel)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tag_wheel: auditwheel cannot read {wheel}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def objections(found: dict) -> list[str]:
    """Why a wheel with this verdict cannot run on every system of PLATFORM."""
    upgrade = found["policy_upgrades"].get(PLATFORM, {})
    libraries = {*found["external_libs"], *upgrade.get("libs_to_eliminate", [])} - OTHERS
    said = [f"needs {library}" for library in sorted(libraries)]
    if _glibc(found["sym_tag"]) > _glibc(PLATFORM):
        said.append(f"has symbols of {found['sym_tag']}")
    said += [f"has {kind}: {names}" for kind, names in upgrade.items() if "libs_" not in kind]
    return said


def _glibc(tag: str) -> tuple[int, ...]:
    """(2, 28) for manylinux_2_28_x86_64; larger than any version if a tag promises nothing."""
    numbers = tuple(int(part) for part in tag.split("_")[1:3] if part.isdigit())
    return numbers if len(numbers) == 2 else (sys.maxsize,)


def main(wheel: Path) -> None:
    if said := objections(verdict(wheel)):
        sys.exit(f"tag_wheel: {wheel.name} cannot be {PLATFORM}: it {', '.join(said)}")
    command = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", PLATFORM]
    done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=True)
    print(wheel.with_name(done.stdout.strip().splitlines()[-1]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
