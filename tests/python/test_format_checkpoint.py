"""The examples of docs/format_checkpoint.md equal the code's output."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from pathlib import Path
from types import SimpleNamespace

from hearth.checkpoints.seal import Part, Seal, SealedFile
from hearth.cluster.driver.datasets.stored_plan import StoredPlan
from hearth.data.options import LoaderOptions
from hearth.data.position import Pass, Position
from hearth.data.state import check_state, state_of

PAGE = (Path(__file__).parents[2] / "docs/format_checkpoint.md").read_text()
SEAL, POSITION, PLAN = (part.split("\n```")[0] for part in PAGE.split("```json\n")[1:])


def test_a_seal():
    file = SealedFile(7, hashlib.sha256(b"weights").hexdigest())
    seal = Seal(7, 1200, 2, {"model": Part(1200, ("model.pt",))}, {"model.pt": file})
    assert seal.text() == SEAL
    assert Seal.read(SEAL.encode()) == seal


def test_the_position_of_a_loader():
    dataset = SimpleNamespace(
        name="train",
        plan=SimpleNamespace(identity="5c1e", owners=(0, 1)),
        known_partitions=lambda: [[100, "9f86d081884c7d65"], None],
        totals=lambda: ([100, 50], ["9f86d081884c7d65", "60303ae22b998861"]),
    )
    options = LoaderOptions(batch_size=8, seed=7)
    state = json.loads(POSITION)
    assert state_of(dataset, options, Position(1, [Pass((0, 1), 40)])) == state
    check_state(dataset, options, state)


def unpacked(plan):
    files = {
        name: [uri, json.loads(zlib.decompress(base64.b64decode(packed)))]
        for name, (uri, packed) in plan.pop("files").items()
    }
    return plan, files


def test_a_plan_of_datasets(tmp_path):
    files = [["/rows/part-0.parquet", 1042, 1764321000123]]
    plan = StoredPlan(str(tmp_path), ("application_1", "1"))
    plan.note_files("train", "/rows", files)
    plan._note_table("valid", {"uri": "/table", "version": "5"})
    plan.owners("train", 2, 2, lambda: [0, 1])
    written = tmp_path / "datasets.json"
    assert unpacked(json.loads(written.read_text())) == unpacked(json.loads(PLAN))
    written.write_text(PLAN)
    restarted = StoredPlan(str(tmp_path), ("application_1", "2"))
    assert restarted.files("train", "/rows") == files
    assert restarted.owners("train", 2, 2, lambda: [1, 0]) == [0, 1]
