"""TorchDistributor: pyspark's constructor and run(), on executors and in local mode."""

from __future__ import annotations

import pytest

from hearth import HearthError
from hearth.spark.profiles import GPUS
from hearth.torch import NodeError, TorchCluster, TorchDistributor


def sums(start, *, scale=1):
    import os

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    value = torch.tensor([start + dist.get_rank()]) * scale
    dist.all_reduce(value)
    local_ranks = torch.tensor([int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])])
    dist.all_reduce(local_ranks)
    dist.destroy_process_group()
    return {"sum": value, "local_ranks": local_ranks.tolist(), "weights": torch.ones(500_000)}


@pytest.mark.parametrize(("local_mode", "local_ranks"), [(False, [0, 2]), (True, [1, 4])])
def test_run_returns_the_value_of_rank_0(spark, local_mode, local_ranks):
    import torch

    distributor = TorchDistributor(num_processes=2, local_mode=local_mode, use_gpu=False)
    found = distributor.run(sums, 10, scale=2)
    assert found["sum"].tolist() == [42]
    assert found["local_ranks"] == local_ranks
    assert found["weights"].equal(torch.ones(500_000))  # two megabytes, sent in chunks


def test_a_value_that_would_run_code_in_the_driver_is_refused(spark):
    def model():
        import torch

        return torch.nn.Linear(2, 1)

    distributor = TorchDistributor(1, local_mode=True, use_gpu=False)
    with pytest.raises(
        NodeError, match=r"returned a Linear, but .* return model.state_dict\(\)"
    ) as found:
        distributor.run(model)
    assert "weights_only" not in str(found.value)  # PyTorch's hint would let the rank run code


def test_a_file_runs_as_a_main_program_and_its_failure_is_the_drivers(spark, tmp_path):
    (tmp_path / "beside.py").write_text("name = 'rank'\n")
    program = tmp_path / "train.py"
    program.write_text(
        "import sys, os, beside, torch.distributed as dist\n"
        "if __name__ == '__main__':\n"
        "    dist.init_process_group('hearth')\n"
        "    folder, how = sys.argv[1:]\n"
        "    open(f'{folder}/{beside.name}{dist.get_rank()}', 'w').close()\n"
        "    dist.barrier()\n"
        "    if how == 'fails' and dist.get_rank() == 1:\n"
        "        raise ValueError('no more')\n"
        "    dist.barrier()\n"
    )
    distributor = TorchDistributor(2, local_mode=False, use_gpu=False)
    assert distributor.run(str(program), tmp_path, "ends") is None
    assert len(list(tmp_path.glob("rank[01]"))) == 2
    with pytest.raises(NodeError, match=r"worker:1 on host \S+ failed: ValueError: no more"):
        distributor.run(str(program), tmp_path, "fails")


def test_a_session_that_another_connection_to_the_jvm_activated_is_found(spark, monkeypatch):
    monkeypatch.setattr(type(spark), "getActiveSession", classmethod(lambda cls: None))
    assert TorchDistributor(1, use_gpu=False).spark is spark


def test_invalid_arguments_are_refused_at_once(spark):
    with pytest.raises(ValueError, match="positive integer"):
        TorchDistributor(0, use_gpu=False)
    with pytest.raises(RuntimeError, match=r"spark.task.resource.gpu.amount.*was unset"):
        TorchDistributor(2, local_mode=False)
    for gpus, words in (("2", f"'{GPUS}' is 2, but each rank"), ("many", f"{GPUS}=many: it must")):
        spark.conf.set(GPUS, gpus)
        try:
            with pytest.raises((RuntimeError, HearthError), match=words):
                TorchDistributor(2, local_mode=False)
        finally:
            spark.conf.unset(GPUS)
    with pytest.raises(ValueError, match="key-word"):
        TorchDistributor(1, use_gpu=False).run("/train.py", epochs=1)


def test_gpus_of_several_hosts_are_refused_where_encryption_is_required(monkeypatch):
    """NCCL does not encrypt: the distributor and the default backend refuse instead of using it."""
    import torch

    from hearth.torch import distributor
    from hearth.torch.context import TorchContext

    def context(*addresses):
        return TorchContext(0, "worker", 0, {"worker": list(addresses)}, "", "")

    def starts(checks, ctx):
        distributor._run_as_rank(started.append, True, checks, None, ctx)

    one, two, started = context("h:1", "h:2"), context("h:1", "g:1"), []
    monkeypatch.setattr(TorchContext, "device", torch.device("cuda", 0))
    monkeypatch.delenv("HEARTH_TLS", raising=False)
    assert two.backend == "cpu:hearth,cuda:nccl"
    starts(True, two)
    monkeypatch.setenv("HEARTH_TLS", "on")
    assert one.backend == "cpu:hearth,cuda:nccl"
    starts(True, one)
    starts(False, two)  # checks are off: use_gpu=False, or pytorch.spark.distributor.ignoreSsl
    for refused in (lambda: two.backend, lambda: starts(True, two)):
        with pytest.raises(HearthError, match="NCCL sends gradients unencrypted"):
            refused()
    assert started == [two, one, two]


@pytest.mark.parametrize(("ignores", "checks"), [("false", True), ("true", False)])
def test_pysparks_setting_allows_unencrypted_gpus(spark, monkeypatch, ignores, checks):
    class Planned(Exception):
        pass

    def of_plan(spark, plan, run_rank, args):
        raise Planned(run_rank.args)

    monkeypatch.setattr(TorchDistributor, "_check_gpus", lambda self: None)
    monkeypatch.setattr(TorchCluster, "of_plan", of_plan)
    spark.conf.set("pytorch.spark.distributor.ignoreSsl", ignores)
    try:
        with pytest.raises(Planned) as found:
            TorchDistributor(2, local_mode=False).run(sums, 1)
    finally:
        spark.conf.unset("pytorch.spark.distributor.ignoreSsl")
    assert found.value.args[0][1:] == (False, checks)
