"""A LevelDB as the source of a fed layer: read in place by key ranges, like an LMDB."""

import subprocess

import numpy as np
import pytest
from source_nets import SourceNet, check_content, digit_rows, weights_of

from hearth import data, native
from hearth.caffeonspark import CaffeOnSpark, DataSource, FlagError
from hearth.sources.rank_rows import RankRows

KIND = "LevelDB"
ROWS = 103


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return SourceNet(tmp_path_factory.mktemp("leveldb"))


@pytest.fixture(scope="module")
def rows(digits):
    return [{**row, "id": f"{i:08d}"} for i, row in enumerate(digit_rows(digits, ROWS))]


@pytest.fixture(scope="module")
def databases(net, rows):
    """The digits as an LMDB and a LevelDB, written by Caffe's converter."""
    sizes = np.array([0x803, len(rows), 28, 28], ">u4").tobytes()
    (net.folder / "images").write_bytes(sizes + b"".join(row["image"] for row in rows))
    counts = np.array([0x801, len(rows)], ">u4").tobytes()
    (net.folder / "labels").write_bytes(counts + bytes(row["label"] for row in rows))
    for kind in ("leveldb", "lmdb"):
        command = [str(native.program()), "convert_mnist_data", "images", "labels", kind]
        done = subprocess.run(
            [*command, "--backend", kind], cwd=net.folder, env=native.environment(), timeout=60
        )
        assert done.returncode == 0
    return {kind: f"file:{net.folder}/{kind}" for kind in ("leveldb", "lmdb")}


@pytest.fixture(scope="module")
def trained(spark, net, databases):
    conf = net.config(spark, KIND, databases["leveldb"])
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    return conf


def test_a17_a_leveldb_trains_as_an_lmdb_of_the_same_records_does(spark, net, databases, trained):
    conf = net.config(spark, "LMDB", databases["lmdb"])
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    assert weights_of(trained) == weights_of(conf)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a10_each_record_is_read_once_in_any_number_of_partitions(spark, rows, trained, partitions):
    trained.lmdb_partitions = partitions
    features = CaffeOnSpark(spark).features(DataSource(spark).getSource(trained, False))
    assert features.rdd.getNumPartitions() == partitions
    check_content(features, rows)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("LMDB", "leveldb", "leveldb is not an LMDB: it is a LevelDB"),
        (KIND, "lmdb", "lmdb is not a LevelDB: it has no CURRENT"),
        (KIND, "gone", "gone does not exist on this host"),
        (KIND, "broken", "cannot open the LevelDB"),
    ],
)
def test_another_database_is_a_one_line_error(spark, net, databases, kind, name, said):
    if name == "broken":
        (net.folder / name).mkdir()
        (net.folder / name / "CURRENT").write_text("no manifest")
    source = DataSource(spark).getSource(net.config(spark, kind, f"file:{net.folder}/{name}"), True)
    with pytest.raises(FlagError, match=said) as caught:
        CaffeOnSpark(spark).train(source)
    assert "\n" not in str(caught.value)


def test_a_leveldb_that_changes_is_an_error(net, databases):
    rows = RankRows(data.leveldb(databases["leveldb"])).pin()
    assert sum(split.rows for split in rows.source.splits()) == ROWS
    log = next((net.folder / "leveldb").glob("*.log"))
    with log.open("ab") as file:
        file.write(b"more")
    try:
        with pytest.raises(ValueError, match=r"leveldb/\S+ has \d+ bytes instead of \d+ "):
            list(rows.read(0, 2))
    finally:
        with log.open("rb+") as file:
            file.truncate(log.stat().st_size - 4)
