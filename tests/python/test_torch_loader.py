"""A dataset's loader with PyTorch's tools: DataLoader, its workers, distributed checkpoints."""

from __future__ import annotations

import multiprocessing
import pickle

import pytest
from dataset_ranks import partitions_of, rank_dataset

from hearth.data.options import LoaderOptions

torch = pytest.importorskip("torch")


def loader(**options):
    from hearth.torch.loader import TensorLoader

    return TensorLoader(rank_dataset(partitions_of(30, 20), 0, 1), LoaderOptions(8, **options))


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


def test_a_data_loader_around_it_gives_its_batches_and_its_position():
    from torch.utils.data import DataLoader

    plain, inner = loader(), loader()
    wrapped = DataLoader(inner, batch_size=None)
    assert len(wrapped) == len(plain) == 7
    for _ in range(2):
        assert ids(wrapped) == ids(plain)
    for taken, _ in enumerate(zip(wrapped, plain, strict=True), 1):
        if taken == 3:
            break
    assert inner.state_dict() == plain.state_dict()
    assert inner.state_dict()["passes"][0]["taken"] == 24


def test_a_data_loader_that_would_stack_batches_is_refused():
    from torch.utils.data import DataLoader

    for size in ({}, {"batch_size": 32}):
        with pytest.raises(RuntimeError, match=r"DataLoader\(loader, batch_size=None\)"):
            next(iter(DataLoader(loader(), **size)))
    first = DataLoader(loader(), collate_fn=lambda batches: batches[0])
    assert ids(first) == ids(loader())


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_worker_processes_are_refused(how):
    from torch.utils.data import DataLoader

    workers = DataLoader(loader(), None, num_workers=1, multiprocessing_context=how)
    with pytest.raises(RuntimeError, match="num_workers=0"):
        list(workers)


def test_processes_that_a_program_forks_are_refused():
    own, (receiver, sender) = loader(), multiprocessing.Pipe()

    def take():
        try:
            next(iter(own))
        except RuntimeError as error:
            sender.send(str(error))

    child = multiprocessing.get_context("fork").Process(target=take)
    child.start()
    assert "num_workers=0" in receiver.recv()
    child.join()
    with pytest.raises(RuntimeError, match="num_workers=0"):
        pickle.dumps(own)


def test_torch_distributed_checkpoint_saves_and_loads_its_position(tmp_path):
    from torch.distributed import checkpoint

    whole, begun, resumed = loader(), loader(), loader()
    for _ in zip(range(3), begun, strict=False):
        pass
    checkpoint.save({"data": begun}, checkpoint_id=tmp_path)
    checkpoint.load({"data": resumed}, checkpoint_id=tmp_path)
    assert resumed.state_dict() == begun.state_dict()
    assert ids(resumed) == ids(whole)[3:]


def test_collate_fn_and_map_make_tensors_in_processes():
    from hearth.torch.loader import TensorLoader

    def collate(rows):
        numbers = torch.stack([row["id"] for row in rows])
        kinds = (torch.bfloat16, torch.bool, torch.complex64)
        return [numbers, *(numbers.to(kind) for kind in kinds)]

    def spread(batch):
        numbers = batch[0]
        turned = numbers[None].expand(3, -1).T  # not contiguous, and in shared memory
        return {"as": batch, "turned": turned, "one": numbers[0], "conj": batch[3].conj()}

    rows = rank_dataset(partitions_of(20), 0, 1)
    options = LoaderOptions(8, map=spread, workers=2, map_in="processes", shuffle=False)
    for step, made in enumerate(TensorLoader(rows, options, collate_fn=collate)):
        numbers = torch.arange(step * 8, min(20, step * 8 + 8))
        for tensor, kind in zip(
            made["as"], (torch.int64, torch.bfloat16, torch.bool, torch.complex64), strict=True
        ):
            assert tensor.dtype == kind and torch.equal(tensor, numbers.to(kind))
        assert torch.equal(made["turned"], torch.stack([numbers] * 3, 1))
        assert made["one"] == numbers[0] and torch.equal(made["conj"], numbers.to(torch.complex64))
        made["turned"][:] = -1
    assert step == 2


def test_pinned_batches_keep_their_structure(monkeypatch):
    from collections import namedtuple

    from hearth.torch import loader as module

    Pair = namedtuple("Pair", "x y")
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + 1)
    one = torch.ones(1)
    made = module._pinned({"a": one, "b": [one, Pair(one, "text")], "c": (one, 3)})
    assert made["a"] == 2 and made["b"][0] == 2 and made["b"][1].x == 2 and made["c"][0] == 2
    assert type(made["b"][1]) is Pair and made["b"][1].y == "text" and made["c"][1] == 3
