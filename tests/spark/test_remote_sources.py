"""Remote ORC and SequenceFiles (fsspec's local:): ranks train as if the rows were in Parquet, bit
for bit, and no row passes through Spark.
"""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from source_nets import SourceNet, digit_rows, weights_of

from hearth import data
from hearth.caffeonspark import CaffeOnSpark, DataSource
from hearth.caffeonspark.tools import sequence_parts
from hearth.caffeonspark.tools.sequence_keys import datum_key

FRAME, SEQUENCE = "ImageDataFrame", "SeqImageDataSource"


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return SourceNet(tmp_path_factory.mktemp("far"))


@pytest.fixture(scope="module")
def rows(digits):
    return digit_rows(digits, 103)


@pytest.fixture(scope="module")
def sources(net, rows):
    """Writes the same rows as two files in each format."""
    table = pa.Table.from_pylist(rows).rename_columns({"image": "data"})
    for i, part in enumerate((table.slice(0, 85), table.slice(85))):
        for kind in ("parquet", "orc", "sequence"):
            (net.folder / kind).mkdir(exist_ok=True)
        pq.write_table(part, net.folder / f"parquet/part-{i}.parquet", row_group_size=20)
        orc.write_table(part, net.folder / f"orc/part-{i}.orc", stripe_size=4096)
        with open(net.folder / f"sequence/part-{i}", "wb") as file:
            sequence_parts.write_records(
                file,
                (
                    (datum_key(row["id"], str(row["label"]), 1, 28, 28, False), row["data"])
                    for row in part.to_pylist()
                ),
            )
    return lambda kind: f"local://{net.folder}/{kind}"


@pytest.fixture(scope="module")
def train(spark, net, sources):
    def train(kind, layer, fields="", **flags):
        fields = f"channels: 1 height: 28 width: 28 {fields}"
        conf = net.config(spark, layer, sources(kind), fields=fields, iterations=12, **flags)
        events = []
        CaffeOnSpark(spark, events.append).train(DataSource(spark).getSource(conf, True))
        lines = [event["text"] for event in events if "for 2 ranks" in event.get("text", "")]
        assert len(lines) == 1 and "in equal numbers of rows" in lines[0], lines
        read = [event["text"] for event in events if "bytes of files" in event.get("text", "")]
        assert len(read) == 1
        weights = weights_of(conf)
        assert [len(blob) for blob in weights] == [7840, 10] and any(weights[1])
        return weights

    return train


ORC = 'dataframe_format: "orc"'


def test_every_format_gives_the_same_model(train):
    parquet = train("parquet", FRAME)
    assert train("orc", FRAME, ORC) == parquet
    assert train("sequence", SEQUENCE) == parquet


def test_streamed_rows_have_the_same_order_again(train):
    assert train("sequence", SEQUENCE, spill="off") == train("sequence", SEQUENCE, spill="off")


@pytest.mark.parametrize(
    ("codec", "kind"),
    [
        (None, "RECORD"),
        ("DefaultCodec", "RECORD"),
        ("BZip2Codec", "RECORD"),
        ("DefaultCodec", "BLOCK"),
        ("GzipCodec", "BLOCK"),
        ("SnappyCodec", "BLOCK"),
    ],
)
def test_files_that_hadoop_wrote_are_read_like_hadoop_reads_them(spark, net, rows, codec, kind):
    path = net.folder / f"written_{codec}_{kind}"
    pairs = [
        (
            bytearray(datum_key(row["id"], str(row["label"]), 1, 28, 28, False)),
            bytearray(row["image"]),
        )
        for row in rows
    ] * 10
    conf = spark._jsc.hadoopConfiguration()
    conf.set("mapreduce.output.fileoutputformat.compress.type", kind)
    conf.set("io.seqfile.compress.blocksize", "100000")
    name = codec and f"org.apache.hadoop.io.compress.{codec}"
    spark.sparkContext.parallelize(pairs, 1).saveAsSequenceFile(f"file:{path}", name)
    for key in ("mapreduce.output.fileoutputformat.compress.type", "io.seqfile.compress.blocksize"):
        conf.unset(key)
    (file,) = path.glob("part-*")
    for uri in (str(file), f"local://{file}"):
        source = data.sequence_file(uri, ["id", "key", "value"]).pin()
        batches = list(itertools.chain.from_iterable(map(source.read, source.splits())))
        found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        assert found == [
            (row["id"], bytes(key), bytes(value))
            for row, (key, value) in zip(rows * 10, pairs, strict=True)
        ]


def test_codecs_that_only_hadoop_has_are_read_by_spark(spark, net, rows, caplog, sources):
    path = net.folder / "sequence" / "part-0"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"SEQ\6", b"SEQ\5", 1))
    conf = net.config(spark, SEQUENCE, sources("sequence"), spill="off")
    source = DataSource(spark).getSource(conf, True)
    assert source.file_rows() is None
    assert "Spark reads " in caplog.text and "version 5" in caplog.text
    path.write_bytes(content)
