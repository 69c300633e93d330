"""Which node reads which part of files that lie elsewhere: near their blocks, equal in bytes."""

from __future__ import annotations

import base64
import itertools
import json
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from hearth.files.stored_files import Block, StoredFile

# Parts are at most a block, and so many for each node that shares of equal size can be made of
# them; smaller ones than this cost more to open than they help.
_PARTS_PER_NODE = 16
_LEAST_BYTES = 1 << 20
_LARGEST_SHARE = 900_000  # packed: the rendezvous carries a megabyte


@dataclass(frozen=True)
class Part:
    """Bytes [begin, end) of a file of `size` bytes; `near`: its reader's own host has them.
    `modified_s` is the file's.

    What begins in these bytes (a row group) belongs to the part, whole, wherever it ends.
    """

    uri: str
    size: int
    begin: int
    end: int
    near: bool = False
    modified_s: int = 0

    @property
    def bytes(self) -> int:
        return self.end - self.begin


def shares(
    files: Sequence[StoredFile], nodes: Sequence[frozenset[str]], whole: bool
) -> list[list[Part]]:
    """The parts of each node, in the order of the files; it follows from the arguments alone.

    Each byte of the files is in exactly one part. A node gets bytes of its own host first, as long
    as that is not more than its equal share; the rest goes to whoever has the least.

    Args:
        files: in any order.
        nodes: the names and addresses of each node's host.
        whole: files cannot be read from the middle.
    """
    total = sum(file.size for file in files)
    most = max(_LEAST_BYTES, total // (_PARTS_PER_NODE * len(nodes)))
    pieces = [
        piece
        for file in sorted(files, key=lambda file: file.uri)
        for piece in _pieces(file, nodes, most, whole)
    ]
    taken = dealt([part.bytes for part, _ in pieces], [near for _, near in pieces], len(nodes))
    return [_joined(node, [pieces[i] for i in mine]) for node, mine in enumerate(taken)]


def dealt(sizes: Sequence[int], near: Sequence[frozenset[int]], nodes: int) -> list[list[int]]:
    """Which of the things of these sizes each of `nodes` gets: what it has near, as long as that is
    not more than its equal share; the rest goes to whoever has the least."""
    fair = -(-sum(sizes) // nodes)
    loads = [0] * nodes
    taken: list[list[int]] = [[] for _ in range(nodes)]
    rest = []
    # First what few have near, large before small: what many have near fits in later, too.
    for i in sorted(range(len(sizes)), key=lambda i: (len(near[i]), -sizes[i])):
        able = [node for node in sorted(near[i]) if loads[node] + sizes[i] <= fair]
        if able:
            node = min(able, key=loads.__getitem__)
            loads[node] += sizes[i]
            taken[node].append(i)
        else:
            rest.append(i)
    for i in sorted(rest, key=lambda i: -sizes[i]):
        node = min(range(nodes), key=lambda node: (loads[node], node not in near[i]))
        loads[node] += sizes[i]
        taken[node].append(i)
    return taken


def _pieces(
    file: StoredFile, nodes: Sequence[frozenset[str]], most: int, whole: bool
) -> list[tuple[Part, frozenset[int]]]:
    """A file cut into parts, and the nodes that have them on their hosts."""
    blocks = (Block(0, file.size, _hosts_of_most(file)),) if whole else file.cover
    pieces = []
    for block in blocks:
        near = frozenset(i for i, host in enumerate(nodes) if host & block.hosts)
        count = 1 if whole else max(1, -(-(block.end - block.begin) // most))
        size = block.end - block.begin
        cuts = [block.begin + i * size // count for i in range(count + 1)]
        for begin, end in itertools.pairwise(cuts):
            if begin < end:
                part = Part(file.uri, file.size, begin, end, modified_s=file.modified_ms // 1000)
                pieces.append((part, near))
    return pieces


def _hosts_of_most(file: StoredFile) -> frozenset[str]:
    """The hosts that have at least half of a file's bytes."""
    held: dict[str, int] = {}
    for block in file.blocks:
        for host in block.hosts:
            held[host] = held.get(host, 0) + block.end - block.begin
    return frozenset(host for host, count in held.items() if 2 * count >= file.size)


def _joined(node: int, pieces: Sequence[tuple[Part, frozenset[int]]]) -> list[Part]:
    """A node's parts in order; those that touch and are equally far are one."""
    joined: list[Part] = []
    for part, nodes_near in sorted(pieces, key=lambda piece: (piece[0].uri, piece[0].begin)):
        near = node in nodes_near
        last = joined[-1] if joined else None
        begin = part.begin
        if last and (last.uri, last.end, last.near) == (part.uri, begin, near):
            begin = joined.pop().begin
        joined.append(replace(part, begin=begin, near=near))
    return joined


def packed(uri: str, parts: Sequence[Part], first: Sequence[str]) -> str:
    """A node's share of `uri` as text, with the files that tell the schema of TFRecords.

    Raises:
        ValueError: it is too large for one message.
    """
    content = {"parts": [astuple(part) for part in parts], "first": list(first)}
    text = base64.b64encode(zlib.compress(json.dumps(content).encode())).decode()
    if len(text) > _LARGEST_SHARE:
        raise ValueError(
            f"{uri} has {len(parts)} parts for one node, more than a message holds: use more "
            "nodes, or write fewer and larger files"
        )
    return text


def unpacked(text: str) -> tuple[list[Part], list[str]]:
    """(parts, files that tell the schema) of a packed share."""
    content = json.loads(zlib.decompress(base64.b64decode(text)))
    return [Part(*fields) for fields in content["parts"]], content["first"]
