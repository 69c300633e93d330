"""Each function of torch.distributed with "hearth" and with gloo, by type, layout and group."""

from __future__ import annotations

import pytest
from torch_ranks import Ranks, torch_ranks

pytestmark = pytest.mark.torch
ranks = torch_ranks

PROGRAM = """
import itertools
from torch.distributed import distributed_c10d as c10d

everyone = list(range(world))
# The functions that exchange nothing, or make groups for those that do.
OTHERS = {
    "destroy_process_group", "init_process_group", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration", "split_group", "shrink_group", "set_timeout", "record_comm",
    "supports_complex",
}
OTHERS |= {name for name in c10d.__all__ if name.startswith(("get_", "is_"))}
# Functions that only gloo has, and those that neither gloo nor a Python backend gets.
GLOO = {"monitored_barrier"}
NEITHER = {"gather_single", "gather_into_tensor"}

class Case:
    '''The arguments of one call: tensors of a type, in a layout, in a group.'''

    def __init__(self, group, members, kind, whole, later):
        self.group, self.members, self.kind = group, members, kind
        self.whole, self.later = whole, later
        self.size, self.own = len(members), members.index(rank)
        self.root = members[-1]
        self.options = {"group": group, "async_op": later}

    def laid(self, tensor):
        return tensor if self.whole else torch.stack([tensor, tensor], -1)[..., 0]

    def given(self, *shape, of=0):
        numbers = torch.arange(torch.Size(shape).numel()) % 5 + self.own + of
        return self.laid((numbers % 2 if self.kind == torch.bool else numbers).to(self.kind)
                         .reshape(shape))

    def empty(self, *shape):
        return self.laid(torch.zeros(shape, dtype=self.kind))

    def each(self, *shape):
        return [self.empty(*shape) for _ in self.members]

    def at_root(self, value):
        return value if rank == self.root else None

    def over(self, work):
        if self.later and work is not None:
            work.wait()

def moves(function):
    '''For those that change the tensors that they get.'''
    def run(case):
        tensors = [case.given(3, 2), case.given(4, of=1)]
        case.over(function(case, tensors))
        return tensors
    return run

def reduction(op):
    def run(case):
        tensor = case.given(3, 2)
        case.over(dist.all_reduce(tensor, op, **case.options))
        return [tensor]
    return run

def sparse_reduction(case):
    tensor = case.given(3, 2).to_sparse(1)
    case.over(dist.all_reduce(tensor, **case.options))
    return [tensor.to_dense()]

def reduce(case):
    tensor = case.given(3, 2)
    case.over(dist.reduce(tensor, case.root, **case.options))
    return [tensor] if rank == case.root else []

def all_gather(case):
    parts = case.each(3, 2)
    case.over(dist.all_gather(parts, case.given(3, 2), **case.options))
    return parts

def all_gather_coalesced(case):
    outputs = [[case.empty(3, 2), case.empty(4)] for _ in case.members]
    case.over(dist.all_gather_coalesced(outputs, [case.given(3, 2), case.given(4, of=1)],
                                        **case.options))
    return [tensor for tensors in outputs for tensor in tensors]

def all_gather_whole(function, stacked):
    def run(case):
        output = case.empty(case.size, 3, 2) if stacked else case.empty(case.size * 3, 2)
        case.over(function(output, case.given(3, 2), **case.options))
        return [output]
    return run

def gather(case):
    parts = case.at_root(case.each(3, 2))
    case.over(dist.gather(case.given(3, 2), parts, dst=case.root, **case.options))
    return parts or []

def scatter(case):
    output = case.empty(3, 2)
    parts = case.at_root([case.given(3, 2, of=r) for r in case.members])
    case.over(dist.scatter(output, parts, src=case.root, **case.options))
    return [output]

def reduce_scatter(case):
    output = case.empty(3, 2)
    parts = [case.given(3, 2, of=r) for r in case.members]
    case.over(dist.reduce_scatter(output, parts, **case.options))
    return [output]

def reduce_scatter_whole(function):
    def run(case):
        output = case.empty(3, 2)
        case.over(function(output, case.given(case.size * 3, 2), **case.options))
        return [output]
    return run

def all_to_all(case):
    outputs = [case.empty(case.own + 1, r + 1) for r in range(case.size)]
    inputs = [case.given(r + 1, case.own + 1, of=r) for r in range(case.size)]
    case.over(dist.all_to_all(outputs, inputs, **case.options))
    return outputs

def all_to_all_single(case):
    output = case.empty(case.size * 2, 3)
    case.over(dist.all_to_all_single(output, case.given(case.size * 2, 3), **case.options))
    uneven = case.empty((case.own + 1) * case.size, 2)
    case.over(dist.all_to_all_single(
        uneven, case.given(sum(range(1, case.size + 1)), 2), [case.own + 1] * case.size,
        list(range(1, case.size + 1)), **case.options))
    return [output, uneven]

def barrier(case):
    case.over(dist.barrier(**case.options))
    return []

def between(send, receive):
    def run(case):
        got = case.empty(3, 2)
        if case.own == 0:
            work = send(case.given(3, 2), case.members[1], group=case.group)
        elif case.own == 1:
            work = receive(got, case.members[0], group=case.group)
        if case.own < 2 and hasattr(work, "wait"):
            work.wait()
        return [got] if case.own == 1 else []
    return run

def batch_isend_irecv(case):
    got = case.empty(3, 2)
    after, before = case.members[(case.own + 1) % case.size], case.members[case.own - 1]
    for work in dist.batch_isend_irecv([
        dist.P2POp(dist.isend, case.given(3, 2), after, case.group),
        dist.P2POp(dist.irecv, got, before, case.group),
    ]):
        work.wait()
    return [got]

def objects(function):
    '''Objects know neither type nor layout.'''
    def run(case):
        return function(case, {"rank": rank, "text": "x" * rank})
    return run

def all_gather_object(case, own):
    found = [None] * case.size
    dist.all_gather_object(found, own, group=case.group)
    return found

def gather_object(case, own):
    found = case.at_root([None] * case.size)
    dist.gather_object(own, found, dst=case.root, group=case.group)
    return found

def broadcast_object_list(case, own):
    found = [own, rank]
    dist.broadcast_object_list(found, src=case.root, group=case.group)
    return found

def scatter_object_list(case, own):
    found = [None]
    dist.scatter_object_list(found, case.at_root(case.members), src=case.root, group=case.group)
    return found

def object_list(case, own):
    found = [own, rank]
    if case.own == 0:
        dist.send_object_list(found, case.members[1], group=case.group)
    elif case.own == 1:
        dist.recv_object_list(found, case.members[0], group=case.group)
    return found

Op = dist.ReduceOp
TABLE = {
    "all_reduce": {op: reduction(getattr(Op, op)) for op in
                   ("SUM", "AVG", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR")}
                  | {"sparse": sparse_reduction},
    "all_reduce_coalesced": moves(lambda c, t: dist.all_reduce_coalesced(t, **c.options)),
    "reduce": reduce,
    "broadcast": moves(lambda c, t: dist.broadcast(t[0], c.root, **c.options)),
    "all_gather": all_gather,
    "all_gather_coalesced": all_gather_coalesced,
    "gather": gather,
    "scatter": scatter,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
    "all_to_all_single": all_to_all_single,
    "barrier": barrier,
    "send": between(dist.send, dist.recv),
    "recv": between(dist.isend, dist.recv),
    "isend": between(dist.isend, dist.irecv),
    "irecv": between(dist.send, dist.irecv),
    "batch_isend_irecv": batch_isend_irecv,
    "all_gather_object": objects(all_gather_object),
    "gather_object": objects(gather_object),
    "broadcast_object_list": objects(broadcast_object_list),
    "scatter_object_list": objects(scatter_object_list),
    "send_object_list": objects(object_list),
    "recv_object_list": objects(object_list),
}
for name in ("all_gather_single", "all_gather_into_tensor"):
    if hasattr(dist, name):
        function = getattr(dist, name)
        TABLE[name] = {s: all_gather_whole(function, s == "stacked") for s in ("stacked", "joined")}
for name in ("reduce_scatter_single", "reduce_scatter_tensor"):
    if hasattr(dist, name):
        TABLE[name] = reduce_scatter_whole(getattr(dist, name))
def joined_all_to_all(case):
    inputs = [case.given(r + 1, case.own + 1, of=r).reshape(-1) for r in range(case.size)]
    sizes = [(case.own + 1) * (r + 1) for r in range(case.size)]
    output = case.empty(sum(sizes))
    dist.all_to_all_single(output, torch.cat(inputs), sizes, sizes, group=case.group)
    return [part.view(case.own + 1, -1) for part in output.split(sizes)]

# Replacements with the same result for functions that gloo lacks.
INSTEAD = {"all_to_all": joined_all_to_all}

functions = {name for name in c10d.__all__ if name.islower() and callable(getattr(c10d, name))}
functions -= {"group", "reduce_op"}  # classes
known = OTHERS | GLOO | NEITHER
assert functions - known == set(TABLE), (functions - known) ^ set(TABLE)

KINDS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64]
part = [0, world - 1]
groups = {
    "hearth": [(None, everyone), (dist.new_group(part), part)],
    "gloo": [(dist.new_group(everyone, backend="gloo"), everyone),
             (dist.new_group(part, backend="gloo"), part)],
}

def outcome(run, *case):
    try:
        return run(Case(*case)), None
    except (RuntimeError, ValueError) as error:
        return None, f"{type(error).__name__}: {error}".splitlines()[0][:200]

compared, wrong, refused = set(), [], set()
total = 0
rows = [(name, how, run) for name, each in TABLE.items()
        for how, run in (each if isinstance(each, dict) else {"": each}).items()]
for (name, how, run), which, kind in itertools.product(rows, range(2), KINDS):
    (ours, members), (theirs, _) = groups["hearth"][which], groups["gloo"][which]
    if rank not in members or ("object" in name and kind != KINDS[0]):
        continue
    expected, not_there = outcome(INSTEAD.get(name, run), theirs, members, kind, True, False)
    if not_there:
        continue  # gloo does not do it
    for whole, later in itertools.product([True, False], [False, True]):
        found, error = outcome(run, ours, members, kind, whole, later)
        if error:
            refused.add(f"{name} {how} {kind}: {error}")
            continue
        total += 1
        compared.add(name)
        alike = all(
            torch.equal(f, e) and f.dtype == e.dtype if isinstance(f, torch.Tensor) else f == e
            for f, e in zip(found or [], expected or [], strict=True)
        )
        if not alike:
            wrong.append(f"{name} {how} {kind} {members} {whole} {later}: {found} for {expected}")
say([total, sorted(set(TABLE) - compared), wrong, sorted(refused)])
dist.barrier()
"""


def test_every_function_returns_the_results_of_gloo(ranks):
    from torch import __version__ as version

    ranks.append(Ranks(PROGRAM, world=3))
    for rank in range(3):
        total, without, wrong, refused = ranks[0].say(rank)
        print(rank, total)
        assert not wrong, wrong[:5]
        assert not refused, refused
        older = ["reduce_scatter"] if version < (2, 7) else []
        assert without == older, "gloo does not do them with any type"
