"""Reads the reference arrays of tests/data/golden and runs nets against them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hearth.native import _caffe

DATA = Path(__file__).parent.parent / "data" / "golden"


@dataclass(frozen=True)
class Case:
    """One case of index.json, whose keys the README describes."""

    fields: dict[str, Any]

    @property
    def name(self) -> str:
        return self.fields["name"]

    @property
    def kind(self) -> str:
        return self.fields["kind"]

    def __getitem__(self, key: str) -> Any:
        return self.fields[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.fields.get(key, default)

    @property
    def types(self) -> set[str]:
        """Types of all layers in the case's net, including data and split layers."""
        layers = {layer["type"] for layer in self.get("net_layers") or []}
        return layers | set(self.get("layer_types") or [])

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays of the case, float32 or uint8, by key."""
        with np.load(DATA / self["file"]) as stored:
            return {key: stored[key] for key in stored.files}

    def close(self, got: np.ndarray, expected: np.ndarray, what: str) -> None:
        """Fails if shapes differ, or if an error exceeds the case's tolerance."""
        got, expected = np.asarray(got), np.asarray(expected)
        assert got.shape == expected.shape, f"{what}: shape {got.shape}, not {expected.shape}"
        tolerance = self["tolerance"]
        np.testing.assert_allclose(
            got, expected, rtol=tolerance["rtol"], atol=tolerance["atol"], err_msg=what
        )


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, in the order of index.json."""
    index = json.loads((DATA / "index.json").read_text())
    return tuple(Case(fields) for fields in index["cases"])


def cases(*kinds: str) -> list[Case]:
    """The cases of the given kinds."""
    return [case for case in all_cases() if case.kind in kinds]


@pytest.fixture(params=["cpu", "gpu"])
def computed_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs a test on the CPU and as on a GPU: with ATen's kernels and separate device memory."""
    if request.param == "gpu" and _caffe.count_gpus() == 0:
        monkeypatch.setenv("HEARTH_SIMULATED_GPUS", "1")
    if request.param == "gpu":
        _caffe.use_gpu(0)
    yield
    _caffe.use_cpu()
