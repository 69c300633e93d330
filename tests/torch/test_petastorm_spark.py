"""make_spark_converter() in the driver, and its batches on the ranks of a TorchDistributor."""

from __future__ import annotations

import pytest

from hearth.petastorm.spark import SparkDatasetConverter, make_spark_converter
from hearth.torch import TorchDistributor


def counted(converter):
    """How often each id came in two epochs, summed over the ranks, and the columns' types."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("hearth")
    counts = torch.zeros(len(converter), dtype=torch.int64)
    shard = {"cur_shard": dist.get_rank(), "shard_count": dist.get_world_size()}
    with converter.make_torch_dataloader(batch_size=16, num_epochs=2, **shard) as loader:
        for batch in loader:
            counts += torch.bincount(batch["id"], minlength=len(counts))
            assert torch.equal(batch["features"][:, 0], batch["value"])
    dist.all_reduce(counts)
    kinds = {name: str(values.dtype) for name, values in batch.items()}
    return {"counts": counts, "kinds": kinds}


def test_ranks_take_each_row_once_per_epoch(spark, tmp_path):
    from pyspark.ml.feature import VectorAssembler

    frame = spark.range(0, 250, 1, 3).selectExpr("id", "id / 2 value")
    frame = VectorAssembler(inputCols=["value", "id"], outputCol="features").transform(frame)
    spark.conf.unset(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF)  # a docs test sets it
    with pytest.raises(ValueError, match="parentCacheDirUrl"):
        make_spark_converter(frame)
    spark.conf.set(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF, f"file://{tmp_path}")
    try:
        converter = make_spark_converter(frame)
        assert make_spark_converter(frame) is converter and len(converter) == 250
    finally:
        spark.conf.unset(SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF)
    found = TorchDistributor(2, local_mode=False, use_gpu=False).run(counted, converter)
    assert found["counts"].tolist() == [2] * 250
    floats = dict.fromkeys(("value", "features"), "torch.float32")
    assert found["kinds"] == {"id": "torch.int64", **floats}
    converter.delete()
    assert not list(tmp_path.iterdir())
