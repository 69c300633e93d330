"""CaffeOnSpark: trains, tests and extracts features on the executors of a Spark session."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.caffe_jobs import launch
from hearth.caffe_jobs.memory_need import STREAMED_MB, memory_warnings
from hearth.caffe_jobs.predict_task import MEANS_SCHEMA, features_task, means_task
from hearth.caffe_jobs.remote_files import remote_plan
from hearth.caffeonspark.config import Config
from hearth.caffeonspark.described import described, described_by_seal, described_solver
from hearth.caffeonspark.flag_files import FlagFiles
from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.history import SCHEMA, History, Row
from hearth.caffeonspark.jobs import predict_spec, train_job
from hearth.caffeonspark.source import Source
from hearth.errors import HearthError
from hearth.files.uri import local_path, scheme
from hearth.monitoring.mlflow_run import log_model
from hearth.monitoring.watch import watched
from hearth.native import _core
from hearth.rows.invalid_rows import POSITION, InvalidRows, Report, add_up
from hearth.sources.tables.frames import pinned_frame
from hearth.spark.progress import Progress
from hearth.spark.session import as_session
from hearth.spark.token_forwarder import forward_tokens

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_LOG = "see the executors' logs"


class CaffeOnSpark:
    """Runs Caffe nets in Spark. Each call is self-contained: nothing is left running."""

    def __init__(self, sc: Any = None, on_event: Callable[[dict[str, Any]], None] | None = None):
        """`sc`: SparkSession (classic or Connect) or SparkContext; None means the active one.

        `on_event` is called with each event of a training (progress, validation, log, ...; see
        hearth.spark.progress) in the thread that called train(). By default, events are displayed.
        """
        self._spark = as_session(sc)
        self._on_event = on_event
        self._history = History()

    @property
    def history(self) -> DataFrame:
        """The log of the last training: iteration, phase, output, value, seconds, images_per_s.

        It has one row per value: loss and learning rate (TRAIN, at most several times a second),
        and each validation's outputs (TEST). `seconds` is the time since the start.
        """
        return self._spark.createDataFrame(self._history.rows, SCHEMA)

    @property
    def history_rows(self) -> list[Row]:
        """The rows of `history` as a local list."""
        return list(self._history.rows)

    def train(self, train_source: Source) -> DataFrame:
        """Trains on `clusterSize` executors and writes the model to `modelPath`.

        Returns:
            `history`.

        Raises:
            FlagError: the configuration is invalid.
            HearthError: a rank failed; the message names it and the reason.
        """
        self._launch(train_source.conf, {"train": train_source}, validate=False)
        return self.history

    def trainWithValidation(self, train_source: Source, validation_source: Source) -> DataFrame:
        """Trains, and validates every `test_interval` iterations.

        Returns:
            One row per validation and one column (array<float>) per output blob of the TEST net.
            Unlike upstream, it validates the final model, too, if `test_interval` divides
            `max_iter`. `history` contains these values and the losses.
        """
        conf = train_source.conf
        if not conf.interleaves_validation:
            raise FlagError(
                f"{conf.proto_file}: validation needs test_iter, and a test_interval of at most "
                "max_iter"
            )
        sources = {"train": train_source, "test": validation_source}
        done = self._launch(conf, sources, validate=True)
        return self._validation_frame(conf, done["validations"])

    def test(self, source: Source) -> dict[str, list[float]]:
        """The mean of each output blob of the TEST net over all rows of `source`, by name.

        Raises:
            FlagError: the configuration is invalid, or there are no rows.
            HearthError: a rank failed, or there are more invalid rows than `maxBadRecords` allows.
        """
        spec = predict_spec(source.conf, "test", self._spark)
        means_of_tasks = _rows_of(source).mapInArrow(partial(means_task, spec), MEANS_SCHEMA)
        with launch.rank_errors():
            rows = means_of_tasks.collect()
        parts = [InvalidRows(row.rows, 0, tuple(row.names)) for row in rows if row.blob is None]
        given = sum(part.given for part in parts)
        if not given:
            raise FlagError(f"{source.uri or 'the DataFrame'} has no rows to test")
        sums = sorted((row for row in rows if row.blob is not None), key=lambda row: row.position)
        used = sum(row.rows for row in sums if not row.position)
        self._check_invalid_rows(source.conf, replace(add_up(parts), count=given - used))
        means: dict[str, list[float]] = {}
        for name in dict.fromkeys(row.blob for row in sums):
            found = [row for row in sums if row.blob == name]
            total = sum(row.rows for row in found)
            columns = zip(*(row.sums for row in found), strict=True)
            means[name] = [sum(column) / total for column in columns]
        return means

    def features(self, source: Source) -> DataFrame:
        """Extracts blobs: a DataFrame of `SampleID` (string) and conf's blobs (array<float>) for
        each row.

        It is evaluated lazily, and again on each use, so cache() or write it if it is used more
        than once. Invalid rows are dropped; after the evaluation, a warning reports how many, with
        examples (on_event() is then called in another thread). With `maxBadRecords` it is evaluated
        immediately, because the limit applies to all rows, and persisted on the executors' disks
        until unpersist().

        Raises:
            FlagError: the configuration is invalid.
            HearthError: a rank failed, or there are more invalid rows than `maxBadRecords` allows.
        """
        from pyspark import StorageLevel

        spec = predict_spec(source.conf, "features", self._spark)
        blobs = spec.job["features"]
        if not blobs:
            raise FlagError("features needs -features: the names of the blobs to extract")
        columns = [f"`{blob}` array<float> not null" for blob in blobs]
        schema = ", ".join(["SampleID string not null", *columns])
        report = Report(self._spark, self._report)
        if report.parts is None:
            schema += f", {POSITION} bigint"
        limited = bool(source.conf.max_bad_records)
        if limited and not report.counts:
            raise FlagError(
                "-features with -maxBadRecords needs Spark 4.0 or later on Spark Connect"
            )
        spec = replace(spec, parts=report.parts, once=limited)
        rows = _rows_of(source, blobs)
        features = rows.mapInArrow(partial(features_task, spec), schema)
        features = report.attach(features, ["SampleID", *blobs])
        if limited:
            features = features.persist(StorageLevel.DISK_ONLY)
            try:
                with launch.rank_errors():
                    features.count()
                self._check_invalid_rows(source.conf, report.mute())
            except BaseException:
                features.unpersist()
                raise
        return features

    train_with_validation = trainWithValidation

    def _launch(self, conf: Config, sources: dict[str, Source], validate: bool) -> dict[str, Any]:
        if conf.log_histograms and not conf.log_dir:
            raise FlagError("-logHistograms writes to -logDir's file: also set -logDir")
        job = train_job(conf, validate, FlagFiles.of(self._spark))
        files, frames = {}, {}
        for name, source in sources.items():
            streamed = name == "train" and conf.spill == "off"
            rows = source.file_rows(job["seed"] if streamed else None)
            if rows is None:
                frames[name], _ = pinned_frame(source.frame())
            else:
                files[name] = rows
        prefix = conf.solver.get("snapshot_prefix", "")
        if not (conf.model_path or scheme(prefix) or Path(prefix).is_absolute()):
            logger.warning(
                "-model is not set and snapshot_prefix is relative: the weights stay in working "
                "directories of executors, which Spark may remove: set -model"
            )
        remote = remote_plan(job, self._spark, prefix)
        forward_tokens(self._spark)  # in case this process writes to -logDir
        kept = _persisted(frames if conf.is_rdd_persistent else {})
        title = Path(conf.proto_file).name
        with (
            kept,
            self._listener() as shown,
            watched(self._record(shown), title, conf.log_dir, conf.ui) as on_event,
        ):
            on_event.params({**described_solver(conf.solver), "workers": conf.cluster_size})
            versions: list[str] = []
            known: dict[str, Any] = {}
            for name, each in sources.items():
                uri = each.uri if each.given is None else ""
                found = described(name, uri, files.get(name) or frames[name])
                versions.append(f"{name}: {found[f'dataset.{name}.version']}")
                on_event.params(found)
                known |= found
                read: Any = files[name].source if name in files else None
                if getattr(read, "version", ""):
                    text = f"{name} reads {found[f'dataset.{name}.version']} of {each.uri}"
                    on_event({"event": "log", "level": "I", "text": text})
            plan = launch.Plan(conf.cluster_size, job, files, frames, "; ".join(versions), remote)
            more_mb = STREAMED_MB if conf.spill == "off" else 0
            for text in memory_warnings(self._spark, job, conf.solver.get("type", ""), more_mb):
                on_event({"event": "log", "level": "W", "text": text})
            done = launch.run(self._spark, plan, on_event, conf.max_restarts)
            on_event.end(done)
            sealed = described_by_seal("train", done["snapshot"])
            on_event.params({key: sealed[key] for key in sealed.keys() - known.keys()})
            if remote is not None:
                on_event({"event": "log", "level": "I", "text": f"The model is {done['model']}"})
            if done["model"]:
                on_event.params({"model": done["model"]})
        if (model := Path(local_path(done["model"]) or "")).is_file():
            log_model(lambda: {model.name: model.read_bytes()})
        return done

    def _record(self, shown: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
        """Returns a listener that records events in a new history and passes them to `shown`."""
        history = self._history = History()

        def on_event(event: dict[str, Any]) -> None:
            history.take(event)
            shown(event)

        return on_event

    @contextmanager
    def _listener(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """The listener of events: the caller's function, or by default the display."""
        if self._on_event is not None:
            yield self._on_event
            return
        with Progress() as progress:
            yield progress.show

    def _check_invalid_rows(self, conf: Config, found: InvalidRows) -> None:
        """Warns of a job's invalid rows; raises HearthError if `maxBadRecords` is exceeded."""
        bad = found.count
        if not bad:
            return
        rows, fraction = _core.invalid_row_limit(conf.max_bad_records)
        if 0 <= rows < bad or 0 <= fraction < bad / found.given:
            allowed = f"a fraction of {fraction:g}" if fraction >= 0 else f"{rows}"
            raise HearthError(
                f"{found.said}, but -maxBadRecords allows {allowed}; fix or drop the rows, "
                f"or allow more: {found.named}; {_LOG}"
            )
        self._report(found)

    def _report(self, found: InvalidRows) -> None:
        text = f"{found.said} and were dropped: {found.named}; {_LOG}"
        with self._listener() as on_event:
            on_event({"event": "log", "level": "W", "text": text})

    def _validation_frame(self, conf: Config, validations: list[dict[str, Any]]) -> DataFrame:
        outputs = [validation["outputs"] for validation in validations]
        if not outputs:
            raise FlagError(
                f"{conf.proto_file}: no validation is due between the snapshot and max_iter"
            )
        names = list(outputs[0])
        rows = [tuple(output[name] for name in names) for output in outputs]
        schema = ", ".join(f"`{name}` array<float> not null" for name in names)
        return self._spark.createDataFrame(rows, schema)


@contextmanager
def _persisted(frames: dict[str, DataFrame]) -> Iterator[None]:
    """Persists the frames on the executors' disks, for restarts."""
    from pyspark import StorageLevel

    try:
        for name, frame in frames.items():
            frames[name] = frame.persist(StorageLevel.DISK_ONLY)
        yield
    finally:
        for frame in frames.values():
            frame.unpersist()


def _rows_of(source: Source, blobs: list[str] | None = None) -> DataFrame:
    """The rows with an `id` column: the source's, or otherwise numbers unique in the DataFrame.

    `blobs`: the blobs that will be computed; None: all.
    """
    from pyspark.sql import functions

    frame = source.frame(blobs)
    if "id" in frame.columns or "SampleID" in frame.columns:
        return frame
    number = functions.format_string("%08d", functions.monotonically_increasing_id())
    return frame.withColumn("id", number)
