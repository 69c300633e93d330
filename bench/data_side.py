"""The driver process of one contender of data.py, which lives for one case.

Its argument is JSON: the contender, the source ("frame": a cached DataFrame; "parquet": files), the
folder of the Parquet files, the shape of the rows, Spark's settings, and the descriptor of the
socket to the bench. It sends "ready", then reads one JSON object per line (the kind of shuffle and
a folder) and replies with the times of one run, or with its error. It ends when the socket is
closed.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import data_ranks

Job = dict[str, Any]
Times = dict[str, float]


class Side:
    """Base of the contenders. run() trains: two ranks, two epochs, until the driver continues."""

    needs_spark = True

    def __init__(self, job: Job):
        self.job = job
        self.is_frame = job["source"] == "frame"
        self.files = sorted(map(str, Path(job["path"]).glob("*.parquet")))
        self.spark: Any = None
        if self.needs_spark or self.is_frame:
            self.spark = start_session(job["settings"])
            self.frame = self.spark.read.parquet(job["path"])
            if self.is_frame:
                self.frame.cache().count()

    def run(self, job: Job) -> Times:
        """Times of the call and of the end of writing."""
        raise NotImplementedError

    def clear(self, job: Job) -> None:
        """Cleans up; not timed."""
        shutil.rmtree(written_folder(job), ignore_errors=True)

    def close(self) -> None:
        if self.spark is not None:
            self.spark.stop()

    def written_files(self, job: Job) -> list[str]:
        """The source as Parquet files; Spark writes a frame's rows here."""
        if not self.is_frame:
            return self.files
        written = written_folder(job)
        self.frame.write.option("compression", "uncompressed").parquet(str(written))
        return sorted(map(str, written.glob("*.parquet")))


def written_folder(job: Job) -> Path:
    return Path(job["folder"], "written")


def ship_programs() -> None:
    """Pickles functions of these modules by value: executors do not have the modules."""
    from pyspark import cloudpickle

    import data_rows
    import rival_models

    for module in (data_ranks, data_rows, rival_models):
        cloudpickle.register_pickle_by_value(module)


def start_session(settings: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("bench-data")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Hearth(Side):
    spool = True

    def run(self, job: Job) -> Times:
        from hearth.torch import TorchCluster

        ship_programs()
        called = time.time()
        source = self.frame
        if not self.is_frame:
            from hearth import data

            source = data.parquet(job["path"], spool=self.spool)
        TorchCluster.run(
            self.spark,
            data_ranks.hearth,
            job,
            workers=data_ranks.WORLD,
            feeds=(),
            datasets={"train": source},
        ).shutdown()
        return {"called": called, "written": called}


class Unspooled(Hearth):
    """Reads the files again in each epoch."""

    spool = False


class Look(Side):
    """A mapInArrow that only reads the batches: Spark's part of the first epoch."""

    def run(self, job: Job) -> Times:
        from pyspark import cloudpickle

        import tf_rows

        cloudpickle.register_pickle_by_value(tf_rows)
        called = time.time()
        self.frame.mapInArrow(tf_rows.look, "id bigint").count()
        return {"called": called, "written": called, "ended": time.time()}


class Ray(Side):
    """Ray Data in Ray Train. It reads Parquet files, to which a frame is written first."""

    needs_spark = False

    def __init__(self, job: Job):
        super().__init__(job)
        import ray

        # Logical CPUs: each rank reserves one, and readers use the others.
        ray.init(
            num_cpus=2 * data_ranks.WORLD,
            include_dashboard=False,
            logging_level="error",
            log_to_driver=False,
            object_store_memory=3 << 30,
            _temp_dir=str(Path(job["path"]).parent / "ray"),
        )
        ray.data.DataContext.get_current().enable_progress_bars = False

    def run(self, job: Job) -> Times:
        import ray
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        called = time.time()
        files = self.written_files(job)
        written = time.time()
        rows = ray.data.read_parquet(files)
        if job["mode"] == "full":
            rows = rows.random_shuffle()
        trainer = TorchTrainer(
            data_ranks.ray,
            train_loop_config=job,
            scaling_config=ScalingConfig(num_workers=data_ranks.WORLD),
            datasets={"train": rows},
            run_config=RunConfig(storage_path=str(written_folder(job))),
        )
        trainer.fit()
        return {"called": called, "written": written}

    def close(self) -> None:
        import ray

        ray.shutdown()
        super().close()


class OwnRanks(Side):
    """Ranks as plain processes of this Python: less work than any launcher does."""

    needs_spark = False

    def run(self, job: Job) -> Times:
        called = time.time()
        job = {**job, **self.prepare(job)}
        written = time.time()
        program = Path(job["folder"], "job.json")
        program.write_text(json.dumps(job))
        ranks = []
        for rank in range(data_ranks.WORLD):
            environment = {
                **os.environ,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(data_ranks.WORLD),
                "LOCAL_WORLD_SIZE": str(data_ranks.WORLD),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(job["port"]),
                "GLOO_SOCKET_IFNAME": "lo",
            }
            command = [sys.executable, data_ranks.__file__, program]
            ranks.append(subprocess.Popen(command, env=environment))
        statuses = [process.wait() for process in ranks]
        if any(statuses):
            raise RuntimeError(f"the ranks ended with {statuses}")
        return {"called": called, "written": written}

    def prepare(self, job: Job) -> Job:
        """Writes the rows; returns their location."""
        return {"files": self.written_files(job)}


class InMemory(OwnRanks):
    """Reads the rows' files itself, independently of the other contenders' source."""

    def __init__(self, job: Job):
        super().__init__({**job, "source": "parquet"})


class Petastorm(OwnRanks):
    """Its converter writes a frame as Parquet."""

    def prepare(self, job: Job) -> Job:
        if not self.is_frame:
            return {"urls": [f"file://{file}" for file in self.files]}
        import pickle

        from petastorm.spark import SparkDatasetConverter, make_spark_converter

        folder = written_folder(job)
        folder.mkdir()
        key = SparkDatasetConverter.PARENT_CACHE_DIR_URL_CONF
        self.spark.conf.set(key, f"file://{folder}")
        # If a rank has three row groups or fewer, as with the default of 32 MB, its reader
        # sometimes ends without a row.
        size = job["rows"] * job["width"] * 64 // job["step"]
        group = min(8 << 20, size // 16)
        self._converter = make_spark_converter(self.frame, parquet_row_group_size_bytes=group)
        return {"converter": pickle.dumps(self._converter).hex()}

    def clear(self, job: Job) -> None:
        if self.is_frame:
            self._converter.delete()
        super().clear(job)


class Mds(OwnRanks):
    """Rows are always written as MDS, from the cached frame or from one that Spark reads."""

    needs_spark = True

    def prepare(self, job: Job) -> Job:
        from streaming.base.converters import dataframe_to_mds

        array = "float32" if job["kind"] == "float" else "int64"
        x = "bytes" if job["kind"] == "image" else f"ndarray:{array}:{job['width']}"
        folder = str(written_folder(job))
        columns = {"x": x, "id": "int64"}
        dataframe_to_mds(
            self.frame, mds_kwargs={"out": folder, "columns": columns, "compression": None}
        )
        return {"written": folder}


class Distributor(OwnRanks):
    """pyspark's own launcher; torch DataLoaders read the files that Spark wrote."""

    needs_spark = True

    def run(self, job: Job) -> Times:
        from pyspark.ml.torch.distributor import TorchDistributor

        ship_programs()
        called = time.time()
        job = {**job, **self.prepare(job)}
        written = time.time()
        launcher = TorchDistributor(data_ranks.WORLD, local_mode=False, use_gpu=False)
        launcher.run(data_ranks.distributor, job)
        return {"called": called, "written": written}


SIDES = {
    "hearth": Hearth,
    "unspooled": Unspooled,
    "look": Look,
    "ray": Ray,
    "petastorm": Petastorm,
    "mds": Mds,
    "loader": OwnRanks,
    "loop": OwnRanks,
    "memory": InMemory,
    "bare": InMemory,
    "distributor": Distributor,
}


def main() -> None:
    job = json.loads(sys.argv[1])
    with socket.socket(fileno=job["socket"]) as bench, bench.makefile("rw") as lines:
        side = SIDES[job["contender"]](job)
        print("ready", file=lines, flush=True)
        for line in lines:
            run = {**job, **json.loads(line)}
            try:
                answer: dict[str, Any] = {"ended": 0.0, **side.run(run)}
                answer["ended"] = answer["ended"] or time.time()
                side.clear(run)
            except Exception as error:
                traceback.print_exc()
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=lines, flush=True)
    side.close()


if __name__ == "__main__":
    main()
