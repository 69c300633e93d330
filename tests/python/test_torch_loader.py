"""A dataset's loader in PyTorch's own tools: DataLoader, its workers, distributed checkpoints."""

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
    checkpoint.save({"data": begun}, checkpoint_id=tmp_path, no_dist=True)
    checkpoint.load({"data": resumed}, checkpoint_id=tmp_path, no_dist=True)
    assert resumed.state_dict() == begun.state_dict()
    assert ids(resumed) == ids(whole)[3:]
