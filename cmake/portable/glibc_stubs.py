#!/usr/bin/env python3
"""Makes stub libraries for linking, with the symbols that glibc had in an older version.

    glibc_stubs.py VERSION FOLDER        glibc_stubs.py 2.28 build/glibc

For each library of this machine's glibc, FOLDER gets a library with the same name but without code
and without symbols newer than VERSION. A symbol that has changed since then has its older version.
Binaries linked against these libraries run with glibc VERSION or newer. If they need a function
that VERSION lacks, the linker reports an error.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# Since glibc 2.34, libc contains most functions of the other libraries. On older systems, programs
# still need the other libraries.
_LIBRARIES = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1")
_SYMBOL = re.compile(
    r"^ *\d+: (?P<address>[0-9a-f]+) +(?P<size>\w+) +(?P<kind>FUNC|OBJECT|IFUNC) +(?:GLOBAL|WEAK) +"
    r"\w+ +\w+ +(?P<name>[\w.]+)@@?GLIBC_(?P<version>[\d.]+)$"
)

Version = tuple[int, ...]


class Symbol(NamedTuple):
    version: Version
    is_data: bool
    address: int
    size: int


Symbols = dict[str, Symbol]


def symbols_of(library: Path, newest: Version) -> Symbols:
    """Returns each symbol in its latest version that is not newer than `newest`."""
    command = ["readelf", "-W", "--dyn-syms", str(library)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: Symbols = {}
    for line in listing.splitlines():
        match = _SYMBOL.match(line)
        if match is None:
            continue
        version = tuple(int(part) for part in match["version"].split("."))
        symbol = Symbol(
            version, match["kind"] == "OBJECT", int(match["address"], 16), int(match["size"], 0)
        )
        if version <= newest and (match["name"] not in found or found[match["name"]] < symbol):
            found[match["name"]] = symbol
    return found


def assembler(symbols: Symbols) -> str:
    """The definitions. Programs copy data symbols, so sizes and aliases must match glibc."""
    lines = ['.section .note.GNU-stack,"",@progbits', ".text"]
    for name, symbol in symbols.items():
        if not symbol.is_data:
            lines += [f".globl {name}", f".type {name}, @function", f"{name}: ret"]
    lines.append(".data")
    of_address: dict[int, Symbols] = {}
    for name, symbol in symbols.items():
        if symbol.is_data:
            of_address.setdefault(symbol.address, {})[name] = symbol
    for names in of_address.values():
        lines.append(".balign 32")
        for name, symbol in names.items():
            lines += [f".globl {name}", f".type {name}, @object", f".size {name}, {symbol.size}"]
            lines.append(f"{name}:")
        lines.append(f".zero {max(symbol.size for symbol in names.values()) or 1}")
    return "\n".join(lines) + "\n"


def version_script(symbols: Symbols) -> str:
    """Returns the linker script that assigns each symbol its version."""
    nodes: dict[Version, list[str]] = {}
    for name, symbol in symbols.items():
        nodes.setdefault(symbol.version, []).append(name)
    script, before = "", ""
    for version in sorted(nodes):
        node = "GLIBC_" + ".".join(map(str, version))
        script += f"{node} {{ global: {' '.join(f'{name};' for name in nodes[version])}"
        script += f" }} {before};\n" if before else " local: *; };\n"
        before = node
    return script


def printed(compiler: str, name: str) -> Path:
    """Returns the path at which the compiler finds a library."""
    command = [compiler, f"-print-file-name={name}"]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(path).is_absolute():
        sys.exit(f"glibc_stubs: {compiler} finds no {name}")
    return Path(path).resolve()


def main(newest: str, folder: Path, compiler: str = "cc") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    limit = tuple(int(part) for part in newest.split("."))
    for name in _LIBRARIES:
        symbols = symbols_of(printed(compiler, name), limit)
        source, script = folder / f"{name}.s", folder / f"{name}.map"
        source.write_text(assembler(symbols))
        script.write_text(version_script(symbols))
        command = [compiler, "-shared", "-nostdlib", f"-Wl,-soname,{name}"]
        command += ["-o", str(folder / name)]
        if symbols:
            command.append(f"-Wl,--version-script={script}")
        subprocess.run([*command, str(source)], check=True)
        base = name.partition(".so")[0]
        if base != "libc":
            (folder / f"{base}.so").unlink(missing_ok=True)
            (folder / f"{base}.so").symlink_to(name)
    # Like glibc's own linker script, adds glibc's small static library and the loader's symbols.
    static = printed(compiler, "libc_nonshared.a")
    loader = printed(compiler, "ld-linux-x86-64.so.2")
    group = f"GROUP ( {folder / 'libc.so.6'} {static} AS_NEEDED ( {loader} ) )\n"
    (folder / "libc.so").write_text(group)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).absolute(), *sys.argv[3:])
