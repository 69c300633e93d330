#!/usr/bin/env python3
"""Makes a module's references to Python's symbols weak, so that it can be loaded without Python.

    weak_python.py build/native/_caffe.abi3.so

In an interpreter, the symbols are resolved as before. The linker has no option for this.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, ...
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_DYNSYM, _WEAK = 11, 2


def weaken(image: bytearray) -> int:
    """Makes Python's symbols in a 64-bit little-endian ELF file weak. Returns their number."""
    if image[:6] != b"\x7fELF\x02\x01":
        sys.exit("weak_python: no 64-bit little-endian ELF file")
    (first,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [_SECTION.unpack_from(image, first + size * i) for i in range(count)]
    (symbols,) = (section for section in sections if section[1] == _DYNSYM)
    names = sections[symbols[6]][4]
    changed = 0
    for offset in range(symbols[4], symbols[4] + symbols[5], _SYMBOL.size):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(image, offset)
        if section == 0 and image.startswith((b"Py", b"_Py"), names + name):
            image[offset + 4] = _WEAK << 4 | info & 15
            changed += 1
    return changed


def main(path: Path) -> None:
    image = bytearray(path.read_bytes())
    if weaken(image) == 0:
        sys.exit(f"weak_python: {path} refers to no symbol of Python")
    path.write_bytes(image)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
