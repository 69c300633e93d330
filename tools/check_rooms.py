#!/usr/bin/env python3
"""Includes between the core's rooms may only point up the list of ARCHITECTURE.md.

Prints one line per arrow that points the wrong way and exits with 1 if there is any.
"""

import re
import sys
from pathlib import Path

# Each room and the rooms it may include.
MAY_USE = {
    "base": set(),
    "rendezvous": {"base"},
    "feed": {"base"},
    "collective": {"base", "rendezvous"},
    "storage": {"base"},
    "caffe": {"base", "feed", "storage"},
    "trainer": {"base", "rendezvous", "feed", "collective", "storage", "caffe"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"hearth/([a-z_]+)/', re.MULTILINE)


def wrong_arrows(root: Path) -> list[str]:
    """Returns 'FILE includes ROOM' for each include that the list does not allow."""
    wrong = []
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".h", ".cc")):
        room = path.relative_to(root).parts[0]
        if room not in MAY_USE:
            wrong.append(f"{path}: {room} is not a room")
            continue
        for used in INCLUDE.findall(path.read_text()):
            if used != room and used not in MAY_USE[room]:
                wrong.append(f"{path} includes {used}, which {room} may not use")
    return wrong


def main() -> int:
    wrong = wrong_arrows(Path(__file__).resolve().parents[1] / "hearth")
    print("\n".join(wrong) if wrong else "rooms: every include points the right way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
