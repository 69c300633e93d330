"""Streams as feeds: DStreams, and Structured Streaming by foreachBatch."""

import threading

from pyspark.streaming import StreamingContext

from tensorflowonspark import TFCluster, reservation

SPARK = TFCluster.InputMode.SPARK


def take_all(notes, ctx):
    feed = ctx.get_data_feed()
    rows = []
    while not feed.should_stop():
        rows += feed.next_batch(7)
    notes.write(ctx, rows)


def test_a_dstream_feeds_until_a_client_asks_to_stop(sc, notes):
    cluster = TFCluster.run(sc, take_all, notes, 2, 0, input_mode=SPARK)
    stream_context = StreamingContext(sc, 1)
    rdds = [sc.parallelize(range(start, start + 10), 2) for start in (0, 10, 20)]
    stream = stream_context.queueStream(rdds)
    cluster.train(stream)
    seen, all_seen = [], threading.Event()

    def count(rdd):
        seen.append(rdd.count())
        if sum(seen) == 30:
            all_seen.set()

    stream.foreachRDD(count)
    stream_context.start()
    assert all_seen.wait(120)
    client = reservation.Client(cluster.cluster_meta["server_addr"])
    client.request_stop()
    client.close()
    cluster.shutdown(stream_context)
    assert sorted(row for rows in notes.read().values() for row in rows) == list(range(30))


def test_foreach_batch_feeds_a_structured_stream(spark, notes, tmp_path):
    source = str(tmp_path / "rows")
    spark.range(0, 40, 1, 2).write.parquet(source)
    cluster = TFCluster.run(spark, take_all, notes, 2, 0, input_mode=SPARK)
    query = (
        spark.readStream.schema("id bigint")
        .parquet(source)
        .writeStream.foreachBatch(lambda rows, _: cluster.train(rows, num_epochs=1))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    cluster.shutdown()
    assert sorted(row[0] for rows in notes.read().values() for row in rows) == list(range(40))
