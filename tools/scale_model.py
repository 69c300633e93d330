"""A model of collective operations: steps, bytes and messages times their measured costs.

The algorithms are those of docs/collective_reference.md, with the limits of hearth/collective. A
step is one exchange of all ranks: each sends some messages and receives as many. Its time is the
latency of a message plus the time of the busier resource: the link, which carries the bytes of all
ranks of its host, or the cores, which those ranks share.

    work = messages * per_message + bytes * per_byte (+ a switch, if ranks share cores)
    step = latency + max(bytes / link, ranks * work / cores)

Sources: the cost of messages by latency and bandwidth is Hockney's model (1994); the numbers of
steps and bytes are those of Thakur, Rabenseifner and Gropp (2005) and of Patarasu and Yuan (2009).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

CHUNK = 256 << 10  # bytes, for the ring and the tree
# The limits of hearth/collective/algorithms/message_backend.cc.
DIRECT_BYTES = 32 << 10
DIRECT_RANKS = 8
HALVING_BYTES = 1 << 20
HALVING_PART = 32 << 10


@dataclass(frozen=True)
class Constants:
    """Measured costs of one machine and one network.

    Attributes:
        latency_s: from sending a small message until it is received.
        link_bytes_s: of a host's link, in each direction at the same time.
        message_s: processor time of a message, both ends together.
        switch_s: a step's additional processor time for a rank that waits for a shared core.
        byte_s: processor time to send, receive and add a byte.
        memory_bytes_s: bytes per second that the ranks of one host reduce in shared memory.
        barrier_s: a barrier of two ranks on one host.
        join_s: the rendezvous, per rank.
        peer_s: connecting to one more rank, with the authentication of both.
        cores: number of cores of the host that all ranks share; 0: a dedicated core per rank.
    """

    latency_s: float
    link_bytes_s: float
    message_s: float
    switch_s: float
    byte_s: float
    memory_bytes_s: float
    barrier_s: float
    join_s: float
    peer_s: float
    cores: int = 0

    def step(self, ranks: int, messages: float, sent: float, shared: int = 1) -> float:
        """Seconds of one step: `sent` bytes in `messages` from each of `ranks`; `shared` ranks
        use one link."""
        return self.latency_s + self.busy(ranks, messages, sent, shared)

    def busy(self, ranks: int, messages: float, sent: float, shared: int = 1) -> float:
        """The same without the first message's latency."""
        work = messages * self.message_s + sent * self.byte_s
        on_a_core = ranks / min(self.cores, ranks) if self.cores else 1
        if on_a_core > 1:
            work += self.switch_s
        return max(sent * shared / self.link_bytes_s, work * on_a_core)


def direct(of: Constants, ranks: int, count: float, shared: int = 1) -> float:
    """Seconds of an all-reduce of `count` bytes where each rank sends all to each other rank."""
    if ranks == 1:
        return 0.0
    return of.step(ranks * shared, ranks - 1, (ranks - 1) * count, shared)


def halving_doubling(of: Constants, ranks: int, count: float, shared: int = 1) -> float:
    """Recursive halving and doubling.

    Each step sends half of the data to a partner at half the distance, then back. Ranks beyond a
    power of two first send their data to a partner, and receive the result last.
    """
    steps = int(math.log2(ranks))
    beyond = ranks - 2**steps
    total = 2 * of.step(ranks * shared, 1, count, shared) if beyond else 0.0
    for step in range(1, steps + 1):
        total += 2 * of.step(ranks * shared, 1, count / 2**step, shared)
    return total


def ring(of: Constants, ranks: int, count: float, shared: int = 1) -> float:
    """The ring: segments travel around it twice, in chunks.

    A chunk is in flight while the next one is sent, so latency counts only in steps of a single
    chunk, and for the last chunk.
    """
    if ranks == 1:
        return 0.0
    part = count / ranks
    chunks = max(1, math.ceil(part / CHUNK))
    chunk = part / chunks
    alone = of.step(ranks * shared, 1, chunk, shared)
    step = max(alone, chunks * of.busy(ranks * shared, 1, chunk, shared))
    return 2 * (ranks - 1) * step + (alone if chunks > 1 else 0.0)


def tree(of: Constants, ranks: int, count: float, shared: int = 1) -> float:
    """Reduces to a root over a binomial tree, then broadcasts.

    The root's links carry all bytes at each level.
    """
    levels = math.ceil(math.log2(ranks))
    chunks = max(1, math.ceil(count / CHUNK))
    return 2 * levels * of.step(ranks * shared, chunks, count, shared) if levels else 0.0


def chosen(of: Constants, ranks: int, count: float, shared: int = 1) -> float:
    """The algorithm that hearth/collective chooses between hosts."""
    if ranks <= DIRECT_RANKS and count * (ranks - 1) <= DIRECT_BYTES:
        return direct(of, ranks, count, shared)
    if count <= max(HALVING_BYTES, HALVING_PART * ranks):
        return halving_doubling(of, ranks, count, shared)
    return ring(of, ranks, count, shared)


def hierarchical(of: Constants, hosts: int, per_host: int, count: float) -> float:
    """The hierarchical all-reduce.

    `per_host` ranks of each host reduce in shared memory, ranks of equal index reduce between the
    hosts, and all copy the result: two barriers and two passes over the memory.
    """
    if per_host == 1:
        return chosen(of, hosts, count)
    within = 2 * (of.barrier_s + count / of.memory_bytes_s)
    if hosts == 1:
        return within
    return within + chosen(of, hosts, count / per_host, shared=per_host)


ALGORITHMS = {
    "direct": direct,
    "halving-doubling": halving_doubling,
    "ring": ring,
    "tree": tree,
    "chosen": chosen,
}


def connect(of: Constants, ranks: int) -> float:
    """Seconds from the first rank's reservation until all ranks are connected.

    The rendezvous serves one rank after the other, and the last rank connects to all others.
    """
    work = ranks / of.cores if of.cores else 1
    return ranks * of.join_s + (ranks - 1) * of.peer_s * work


@dataclass(frozen=True)
class Step:
    """A training step of one rank.

    Attributes:
        gradient_bytes: bytes of all parameters' gradients.
        compute_s: seconds of forward and backward.
        feed_s: seconds to receive a minibatch, which overlap with the previous step.
        bucket_bytes: bytes that are reduced at once.
    """

    gradient_bytes: float
    compute_s: float
    feed_s: float = 0.0
    bucket_bytes: float = 4 << 20

    # Backward's share of the work: it computes two products for each product of forward.
    BACKWARD = 2 / 3

    def seconds(self, of: Constants, hosts: int, per_host: int = 1) -> float:
        """Seconds of a step whose buckets are reduced during backward.

        The last bucket is ready at the end of backward, and each waits for the previous one.
        """
        buckets = max(1, math.ceil(self.gradient_bytes / self.bucket_bytes))
        each = hierarchical(of, hosts, per_host, self.gradient_bytes / buckets)
        if hosts * per_host == 1:
            each = 0.0
        backward = self.compute_s * self.BACKWARD
        ready = free = 0.0
        for _ in range(buckets):
            ready += backward / buckets
            free = max(ready, free) + each
        return max(self.feed_s, self.compute_s - backward + free)


def on_own_cores(of: Constants, link_gbit_s: float, latency_s: float) -> Constants:
    """The constants of the same software on another network, with a dedicated core per rank."""
    return replace(of, cores=0, link_bytes_s=link_gbit_s * 1e9 / 8, latency_s=latency_s)
