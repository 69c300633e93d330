"""TensorFlow's ops on the core's collective, in processes that are ranks; without Spark."""

from __future__ import annotations

import importlib.util
import time

import numpy as np
import pytest
from tensorflow_ranks import Ranks, kept_ports, tensorflow_ranks

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
    ),
]

ranks = tensorflow_ranks

OPERATIONS = """
MOVED = (tf.int8, tf.int16, tf.uint16, tf.uint32, tf.uint64, tf.complex64, tf.complex128)
everyone = range(world)
for kind in (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64, tf.uint8):
    own = tf.cast(tf.range(5) + rank, kind)
    equal(hvt.allreduce(own, "sum"), tf.cast(tf.range(5) * world + sum(everyone), kind))
    equal(hvt.broadcast(own, 1), tf.cast(tf.range(5) + 1, kind))
equal(hvt.allreduce(tf.constant([rank == 0, False]), "max"), [True, False])
equal(hvt.allreduce(tf.constant([rank + 1.0])), [(world + 1) / 2])
equal(hvt.allreduce(tf.constant(float(rank)), "min"), 0.0)
equal(hvt.allreduce(tf.zeros([0, 3])), np.zeros((0, 3)))
rows = hvt.allgather(tf.fill([rank, 2], float(rank)))
equal(rows, [[float(r)] * 2 for r in everyone for _ in range(r)])
values, indices = tf.constant([[float(rank)]]), tf.constant([rank])
slices = tf.IndexedSlices(values, indices, tf.constant([world, 1]))
equal(tf.convert_to_tensor(hvt.allreduce(slices, "sum")), [[float(r)] for r in everyone])
whole = hvt.allreduce(tf.IndexedSlices(tf.constant([[rank + 5]]), indices))
assert whole.values.dtype == tf.int32
equal(whole.values, [[(r + 5) // world] for r in everyone])
equal(hvt.allgather(tf.constant(float(rank))), [float(r) for r in everyone])
many = [tf.fill([i + 1], float(i + rank)) for i in range(20)]
for i, found in enumerate(hvt.grouped_allreduce(many, "sum")):
    equal(found, [float(i * world + sum(everyone))] * (i + 1))
variable = tf.Variable([float(rank)])
others = [tf.Variable(tf.cast([[rank], [rank + 1]], kind)) for kind in MOVED]
hvt.broadcast_variables([variable, *others], 2)
equal(variable, [2.0])
for other, kind in zip(others, MOVED):
    equal(other, tf.cast([[2], [3]], kind))
    equal(hvt.allgather(tf.cast([rank], kind)), tf.cast(list(everyone), kind))

@tf.function
def compiled(x):
    # Only the order of the program determines which one is first.
    a, b = hvt.allreduce(x, "sum", name="a"), hvt.allgather(x, name="b")
    return a, b, hvt.broadcast(x * 2, 0)

for _ in range(30):
    a, b, c = compiled(tf.fill([1], float(rank)))
    equal(a, [float(sum(everyone))])
    equal(b, [float(r) for r in everyone])
    equal(c, [0.0])

@tf.function
def kept(x):
    # y is used again, so its buffer must not become the result; that of x + 1 may.
    y = x * 3
    return hvt.allreduce(y, "sum"), hvt.broadcast(y, 1), y, hvt.allreduce(x + 1, "sum")

a, b, c, d = kept(tf.fill([100], float(rank)))
equal(a, [3.0 * sum(everyone)] * 100)
equal(b, [3.0] * 100)
equal(c, [3.0 * rank] * 100)
equal(d, [float(sum(everyone) + world)] * 100)

def gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x) * (rank + 1.0))
    return tape.gradient(y, x)

for make in (lambda f: f, tf.function):
    weights = sum(r + 1.0 for r in everyone)
    x = tf.ones([2])
    equal(make(lambda x: gradient(lambda v: hvt.allreduce(v, "sum"), x))(x), [weights] * 2)
    equal(make(lambda x: gradient(lambda v: hvt.allreduce(v, "mean"), x))(x), [weights / world] * 2)
    equal(make(lambda x: gradient(hvt.allgather, x))(x), [weights] * 2)
    shown = make(lambda x: gradient(lambda v: hvt.broadcast(v, 1), x))(x)
    equal(shown, [weights if rank == 1 else 0.0] * 2)

tape = hvt.DistributedGradientTape()
with tape:
    loss = variable * (rank + 1.0)
equal(tape.gradient(loss, variable), [(world + 1) / 2])
assert hvt.rank() == rank and hvt.size() == world
for call in (lambda: hvt.allreduce(x, "product"), lambda: hvt.allreduce(x, wire="int8")):
    try:
        call()
        raise SystemExit("accepted")
    except ValueError as error:
        assert "must be one of" in str(error)
hvt.shutdown()
hvt.shutdown()
try:
    hvt.rank()
    raise SystemExit("accepted")
except RuntimeError as error:
    assert "hearth.tensorflow.init()" in str(error)
say("done")
"""


@pytest.mark.parametrize("shared", [True, False])
def test_every_operation_and_its_gradient(ranks, tmp_path, shared):
    ranks.append(Ranks(tmp_path, OPERATIONS, world=3, shared=shared))
    assert [ranks[0].say(rank) for rank in range(3)] == ["done"] * 3


FIT = """
if case == "tf_keras":
    import tf_keras as keras
else:
    import keras

random = np.random.RandomState(3)
x = random.randn(96, 7).astype(np.float32)
y = x @ random.randn(7, 1).astype(np.float32)

def make(optimizer):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Dense(9, activation="tanh"), keras.layers.Dense(1)])
    model.build((None, 7))
    model.compile(optimizer, "mse")
    return model

def sgd():
    return keras.optimizers.SGD(0.1, momentum=0.9)

alone = make(sgd())
alone.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
own = make(hvt.DistributedOptimizer(sgd()))
mine = np.arange(96).reshape(-1, world, 16 // world)[:, rank].reshape(-1)
options = {} if case == "tf_keras" else {"callbacks": [hvt.MetricAverageCallback()]}
trained = own.fit(x[mine], y[mine], batch_size=16 // world, epochs=2, shuffle=False, verbose=0,
               **options)
for ours, theirs in zip(own.get_weights(), alone.get_weights()):
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
weights = [w.tolist() for w in own.get_weights()]
if case == "keras":
    own.save(f"{folder}/{rank}.keras")
    assert type(keras.models.load_model(f"{folder}/{rank}.keras").optimizer) is keras.optimizers.SGD
say([weights, [] if case == "tf_keras" else trained.history["loss"]])
"""


FITS = [("keras", True), ("keras", False), ("tf_keras", True)]


@pytest.mark.parametrize(("case", "shared"), FITS)
def test_fit_on_two_ranks_is_fit_on_one_at_the_global_batch(ranks, tmp_path, case, shared):
    ranks.append(Ranks(tmp_path, FIT, shared=shared, case=case))
    first, second = (ranks[0].say(rank) for rank in range(2))
    assert first == second


OTHER_BACKEND = """
import keras
keras.backend.backend = lambda: "jax"  # as with KERAS_BACKEND=jax, which is not installed
try:
    hvt.DistributedOptimizer(keras.optimizers.SGD(0.1))
except RuntimeError as error:
    say(str(error))
"""


def test_another_backend_of_keras_is_refused(ranks, tmp_path):
    ranks.append(Ranks(tmp_path, OTHER_BACKEND, world=1))
    assert ranks[0].say(0).startswith("Keras runs on 'jax' here, but")


UNEVEN = """
import keras

def minibatches():
    for number in range(case[rank]):
        ids = 100 * rank + np.arange(4) + 4 * number
        yield {"id": ids, "x": np.ones((4, 1), np.float32)}

seen, steps, share = [], 0, 0.0
for batch, weight in hvt.in_step(minibatches(), patience_s=0.05):
    steps += 1
    if weight:
        seen += batch["id"].tolist()
    assert batch["x"].shape[1:] == (1,)
    found = np.array([weight])
    hvt.allreduce(tf.constant(found))
    share += weight

model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile(hvt.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
hvt.broadcast_variables(model.variables)

def rows():
    for batch, weight in hvt.in_step(minibatches(), patience_s=0.05):
        yield batch["x"], batch["x"], np.full(len(batch["x"]), weight, np.float32)

model.fit(rows(), verbose=0)
say([seen, steps, model.get_weights()[0].tolist()])
"""


def test_ranks_with_uneven_rows_step_together_and_fit_ends(ranks, tmp_path):
    ranks.append(Ranks(tmp_path, UNEVEN, case=[7, 3, 0], world=3))
    replies = [ranks[0].say(rank) for rank in range(3)]
    assert [seen for seen, _, _ in replies] == [list(range(28)), list(range(100, 112)), []]
    assert len({steps for _, steps, _ in replies}) == 1 and replies[0][1] >= 7
    assert replies[0][2] == replies[1][2] == replies[2][2]


OUT_OF_STEP = """
@tf.function
def step(x):
    return hvt.allreduce(x, name="conv1")

step(tf.ones([4]))
hvt.allreduce(tf.ones([1]))
say("ready")
try:
    if case == "killed":
        if rank == world - 1:
            time.sleep(600)
        step(tf.ones([4]))
        hvt.allreduce(tf.ones([1 << 20]))
    elif case == "sizes":
        hvt.allreduce(tf.ones([4 + rank]), name="conv1")
    elif rank == 0:
        step(tf.ones([4]))
    else:
        time.sleep(600)
except Exception as error:
    say([type(error).__name__, str(error)])
"""


@pytest.mark.parametrize("shared", [True, False])
def test_a_killed_rank_fails_the_operations_of_the_others(ranks, tmp_path, shared):
    ranks.append(Ranks(tmp_path, OUT_OF_STEP, world=3, shared=shared, case="killed"))
    assert [ranks[0].say(rank) for rank in range(3)] == ["ready"] * 3
    ranks[0].processes[-1].kill()
    start = time.monotonic()
    replies = [ranks[0].say(rank) for rank in range(2)]
    assert time.monotonic() - start < 60  # half of an operation's time limit
    assert {kind for kind, _ in replies} == {"AbortedError"}, replies
    assert any("rank 2" in text for _, text in replies), replies


@pytest.mark.parametrize(
    ("case", "kind", "words"),
    [
        ("sizes", "InvalidArgumentError", ["16 bytes", "20 bytes", "'conv1'", "rank"]),
        ("late", "DeadlineExceededError", ["rank 1", "'conv1'"]),
    ],
)
def test_ranks_that_are_out_of_step_are_named(ranks, tmp_path, case, kind, words):
    seconds = 10 if case == "late" else 120
    ranks.append(Ranks(tmp_path, OUT_OF_STEP, case=case, seconds=seconds))
    assert ranks[0].say(0) == "ready"
    replies = ranks[0].say(0)
    assert replies[0] == kind and all(word in replies[1] for word in words), replies


STRATEGY = """
os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": case[1]},
                                      "task": {"type": "worker", "index": rank}})
taken = []
if case[0] == "hearth":
    hvt.use_for_collectives()
    hvt.use_for_collectives()
    from hearth.tensorflow import group
    ops = group.ops()
    class Counted:
        def __getattr__(self, name):
            taken.append(name)
            return getattr(ops, name)
    group._ops = Counted()

strategy = tf.distribute.MultiWorkerMirroredStrategy()
random = np.random.RandomState(3)
x, y = random.randn(64, 7).astype(np.float32), random.randn(64, 1).astype(np.float32)
with strategy.scope():
    weights = tf.Variable(tf.ones([7, 1]))
    table = tf.Variable(tf.ones([5, 1]))

@tf.function
def step(x, y, ids):
    def replica(x, y, ids):
        with tf.GradientTape() as tape:
            rows = tf.gather(table, ids)  # its gradient is of tf.IndexedSlices
            loss = tf.reduce_mean((tf.matmul(x, weights) + rows - y) ** 2) / world
        found = tape.gradient(loss, [weights, table])
        context = tf.distribute.get_replica_context()
        found = context.all_reduce(tf.distribute.ReduceOp.SUM, found)
        weights.assign_sub(0.1 * found[0])
        table.assign_sub(0.1 * tf.convert_to_tensor(found[1]))
        return context.all_gather(tf.reshape(loss, [1]), axis=0)
    return strategy.run(replica, args=(x, y, ids))

losses = []
for number in range(4):
    rows = slice(16 * number + 8 * rank, 16 * number + 8 * rank + 8)
    losses.append(step(x[rows], y[rows], np.arange(8) % 5).numpy().tolist())
say([weights.numpy().tolist(), table.numpy().tolist(), losses, sorted(set(taken))])
step(x[:8], y[:8], np.arange(8) % 5)  # no rank leaves before the other is done, too
"""


def test_a_strategys_reductions_by_the_collective_are_those_by_grpc(ranks, tmp_path):
    replies = {}
    for wire in ("hearth", "grpc"):
        folder = tmp_path / wire
        folder.mkdir()
        with kept_ports(2) as ports:
            ranks.append(Ranks(folder, STRATEGY, case=[wire, ports]))
            replies[wire] = [ranks[-1].say(rank) for rank in range(2)]
        assert replies[wire][0] == replies[wire][1]
    *ours, taken = replies["hearth"][0]
    *theirs, none = replies["grpc"][0]
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6)
    assert "hearth_all_reduce" in taken and "hearth_all_gather" in taken and not none
