"""Converts a Config to the trainers' job: the settings that all ranks share."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from typing import Any

from hearth.caffe_jobs.predict_task import PredictSpec
from hearth.caffe_jobs.remote_files import remote_plan
from hearth.caffeonspark.config import Config
from hearth.caffeonspark.flag_files import FlagFiles
from hearth.caffeonspark.flags import SETTINGS, FlagError
from hearth.files.uri import local_path
from hearth.spark.token_forwarder import forward_tokens


def train_job(conf: Config, validate: bool, flag_files: FlagFiles) -> dict[str, Any]:
    """The job of a training. Files are local paths, or URIs if they are remote.

    Raises:
        FlagError, HearthError: a required file does not exist or cannot be reached.
    """
    weights = [uri for uri in conf.snapshot_model_file.split(",") if uri]
    return {
        **_net_job(conf),
        "mode": "train",
        "solver": {"path": local_path(conf.proto_file), "text": conf.solver_text},
        "weights": [flag_files.input("-weights", uri) for uri in weights],
        "snapshot": flag_files.input("-snapshot", conf.snapshot_state_file),
        "resume": bool(conf.snapshot_state_file),
        "model": flag_files.output("-model", conf.model_path),
        "validate": validate,
        "seed": max(0, conf.solver.get("random_seed", 0)),
    }


def predict_job(conf: Config, mode: str, flag_files: FlagFiles) -> dict[str, Any]:
    """The job for `mode`: "features" (the blobs of conf) or "test" (the TEST net's outputs).

    Raises like train_job().
    """
    if not conf.model_path:
        raise FlagError(f"{mode} needs -model: the trained .caffemodel")
    model = flag_files.model("-model", conf.model_path)
    state = conf.test_state
    job = {**_net_job(conf), "mode": mode, "weights": [model]}
    job |= {"level": state.get("level", 0), "stages": state.get("stage", [])}
    if mode == "features":
        job["features"] = conf.blobs
    return job


def predict_spec(conf: Config, mode: str, spark: Any, columns: str = "") -> PredictSpec:
    """Like predict_job(), in the form that Spark tasks use. Raises like train_job().

    `columns`: names and types of the net's input columns. Later jobs with equal `columns` and the
    same local files reuse the loaded net. If `columns` is empty, each job loads the net.
    """
    job = predict_job(conf, mode, FlagFiles.of(spark))
    remote = remote_plan(job, spark)
    shared = columns and not remote
    key = _content_key(job, columns) if shared else str(uuid.uuid4())
    return PredictSpec(key, job, remote=remote, tokens=forward_tokens(spark) if remote else None)


def _content_key(job: dict[str, Any], columns: str) -> str:
    """A key of the job that changes if a weights file is replaced."""
    files = [os.stat(path) for path in job["weights"]]
    versions = [(file.st_ino, file.st_size, file.st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps([job, columns, versions]).encode()).hexdigest()


def _net_job(conf: Config) -> dict[str, Any]:
    if not conf.net_file:
        raise FlagError("-conf is missing: the solver prototxt")
    settings = {setting.name: getattr(conf, setting.name) for setting in SETTINGS}
    return {
        **settings,
        "net": {"path": conf.net_file, "text": conf.net_text},
    }
