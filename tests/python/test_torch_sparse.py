"""all_reduce of sparse tensors by "hearth": exactly like gloo's, in memory for the rows only."""

from __future__ import annotations

import pytest
from torch_ranks import Ranks, torch_ranks

pytestmark = pytest.mark.torch
ranks = torch_ranks

SUMS = """
import itertools

gloo = dist.new_group(list(range(world)), backend="gloo")
random = torch.Generator().manual_seed(rank)

def drawn(kind, sizes, sparse_dims, rows):
    '''A sparse tensor with duplicate indices.'''
    indices = torch.stack([torch.randint(n, (rows,), generator=random)
                           for n in sizes[:sparse_dims]])
    values = torch.randn(rows, *sizes[sparse_dims:], generator=random) * 100
    return torch.sparse_coo_tensor(indices, values.to(kind), sizes)

def same(found, expected):
    assert found.is_coalesced() and found.dtype == expected.dtype
    expected = expected.coalesce()
    assert torch.equal(found.indices(), expected.indices())
    assert torch.equal(found.values(), expected.values()), (found, expected)

shapes = [((50, 3), 1), ((7,), 1), ((4, 6, 2), 2), ((5, 5), 2), ((3, 2, 2, 2), 1)]
lengths = [7 * (rank + 1), 0 if rank == 0 else 5, 0]
kinds = [torch.float32, torch.int8]
for kind, (sizes, sparse_dims), rows in itertools.product(kinds, shapes, lengths):
    own = drawn(kind, sizes, sparse_dims, rows)
    expected, later = own.clone(), own.clone()
    dist.all_reduce(expected, group=gloo)
    work = dist.all_reduce(later, async_op=True)
    dist.all_reduce(own)
    work.wait()
    same(own, expected)
    same(later, expected)

half = torch.sparse_coo_tensor([[rank, 5]], torch.ones(2, 3), (9, 3)).half()
dist.all_reduce(half)
assert half.to_dense()[:, 2].tolist() == [1, 1, 1, 0, 0, 3, 0, 0, 0]

own = drawn(torch.float32, (9, 4), 1, 20)
mean = own.clone()
dist.all_reduce(own)
dist.all_reduce(mean, dist.ReduceOp.AVG)
assert torch.equal(mean.to_dense(), own.to_dense() / world)
everywhere = [torch.empty(9, 4) for _ in range(world)]
dist.all_gather(everywhere, own.to_dense())
assert all(torch.equal(each, own.to_dense()) for each in everywhere)

def refused(*arguments):
    try:
        dist.all_reduce(*arguments)
    except (ValueError, ConnectionError) as error:
        return str(error)
    raise SystemExit(f"accepted: {arguments}")

eye = torch.eye(2)
assert "by SUM and AVG, not MAX" in refused(eye.to_sparse(), dist.ReduceOp.MAX)
other = refused(eye.to_sparse() if rank else torch.eye(3).to_sparse())
say(other)
"""


@pytest.mark.parametrize("shared", [True, False])
def test_a_sum_of_sparse_tensors_is_that_of_gloo(ranks, shared):
    ranks.append(Ranks(SUMS, world=3, shared=shared))
    refusals = [ranks[0].say(rank) for rank in range(3)]
    # Some ranks may be notified first that another rank has left.
    assert any("all ranks must do the same" in text for text in refusals), refusals
    assert all("sparse(2) float32[" in text for text in refusals), refusals


MEMORY = """
import resource

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

def rows(count):
    indices = (torch.arange(count) * 7919 + rank) % (1 << 40)
    return torch.sparse_coo_tensor(indices[None], torch.ones(count, 64), (1 << 40, 64))

dist.all_reduce(rows(10))
before = peak()
large = rows(5000)
dist.all_reduce(large)
assert large.coalesce().indices().shape == (1, 10_000)
say((peak() - before) >> 20)
"""


def test_memory_is_that_of_the_rows_and_not_of_the_table(ranks):
    # As a dense tensor it would need 256 TiB, but the rows of both ranks have 2.5 MB.
    ranks.append(Ranks(MEMORY))
    assert all(ranks[0].say(rank) < 40 for rank in range(2))


TRAINING = """
import resource
from torch.nn.parallel import DistributedDataParallel

ROWS, WIDTH, BATCH = 1_000_000, 4, 32

def make():
    torch.manual_seed(3)
    table = torch.nn.Embedding(ROWS, WIDTH, sparse=True)
    return torch.nn.Sequential(table, torch.nn.Flatten(), torch.nn.Linear(2 * WIDTH, 1))

def optimizers(model):
    sparse = {"SparseAdam": torch.optim.SparseAdam, "Adagrad": torch.optim.Adagrad,
              "SGD": torch.optim.SGD}[case]
    return sparse(model[0].parameters(), 0.1), torch.optim.SGD(model[2].parameters(), 0.1)

def train(model, plain, part):
    random = torch.Generator().manual_seed(1)
    both = optimizers(plain)
    for step in range(4):
        ids = torch.randint(ROWS, (world * BATCH, 2), generator=random)
        ids[:, 0] %= 50  # rows that both ranks use
        for optimizer in both:
            optimizer.zero_grad()
        model(ids[part]).square().mean().backward()
        assert plain[0].weight.grad.is_sparse
        for optimizer in both:
            optimizer.step()

plain = make()
train(DistributedDataParallel(plain), plain, slice(rank * BATCH, (rank + 1) * BATCH))
first = plain[0].weight.detach().clone()
dist.broadcast(first, 0)
assert torch.equal(first, plain[0].weight)
alone = make()
before = alone[0].weight.detach().clone()
train(alone, alone, slice(None))
assert torch.allclose(plain[0].weight, alone[0].weight, atol=1e-5)
say(int((plain[0].weight != before).any(1).sum()))
"""


@pytest.mark.parametrize("case", ["SparseAdam", "Adagrad"])
def test_a_table_with_sparse_gradients_trains_as_in_one_process(ranks, case):
    ranks.append(Ranks(TRAINING, case=case))
    changed = [ranks[0].say(rank) for rank in range(2)]
    assert changed[0] == changed[1] and 200 < changed[0] <= 50 + 4 * 2 * 32
