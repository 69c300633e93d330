"""hearth.horovod.tensorflow and .keras: operations against NumPy, tapes, optimizers, callbacks."""

from __future__ import annotations

import importlib.util

import pytest
from horovod_ranks import Ranks, horovod_ranks

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
    ),
]
ranks = horovod_ranks

START = """
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
import hearth.horovod.tensorflow as hvd
hvd.init()
"""

# On two ranks, the layer must normalize, train and count like the plain one on all their rows.
SYNC = """
rows = np.random.RandomState(0).rand(8, 3).astype("float32") * [1, 10, 0.1] + [0, 100, -5]
rows = rows.astype("float32")
mine, whole = tf.constant(rows[rank::world]), tf.constant(rows)
sync, alone = hvd.SyncBatchNormalization(momentum=0.5), tf.keras.layers.BatchNormalization(
    momentum=0.5)
scale = tf.constant([1.0, 2.0, 3.0])

def trained(layer, x, graph):
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
            loss = tf.reduce_sum(y ** 3 * scale)
        return y, tape.gradient(loss, x)
    return (tf.function(step) if graph else step)(x)

for graph in (0, 1):
    for found, expected in zip(trained(sync, mine, graph), trained(alone, whole, graph)):
        expected = expected.numpy()[rank::world]
        assert np.allclose(found, expected, rtol=1e-2, atol=1e-2), (graph, found, expected)
for one, other in zip(sync.get_weights(), alone.get_weights()):
    assert np.allclose(one, other, rtol=1e-3), (one, other)
assert np.allclose(sync(mine, training=False), alone(mine, training=False), atol=1e-3)
again = type(sync).from_config(sync.get_config())
assert again.momentum == 0.5
raised(ValueError, hvd.SyncBatchNormalization, fused=True)
say("keras" if "tf_keras" not in sys.modules else "tf_keras")
"""


@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_sync_batch_normalization_is_over_the_rows_of_all_ranks(ranks, tmp_path, keras):
    legacy = f"os.environ['TF_USE_LEGACY_KERAS'] = '{int(keras == 'tf_keras')}'\n"
    ranks.append(Ranks("tensorflow", tmp_path, SYNC, start=legacy + START))
    assert [ranks[0].say(rank) for rank in range(2)] == [keras, keras]


# Each case varies: function, type, number of dimensions, name, process set, eager or graph.
OPERATIONS = """
KINDS = [tf.uint8, tf.int32, tf.int64, tf.float16, tf.bfloat16, tf.float32, tf.float64]
only = hvd.add_process_set([1])
FOLDS = {hvd.Sum: sum, hvd.Min: lambda v: np.minimum.reduce(v),
         hvd.Max: lambda v: np.maximum.reduce(v), hvd.Product: lambda v: np.multiply.reduce(v)}

def values(of, kind, shape):
    return tf.constant(np.random.RandomState(of).randint(0, 4, shape), kind)

def numbers(tensor):
    return np.asarray(tensor).astype(np.float64)

every_case = itertools.product(KINDS, (1, 3), [hvd.global_process_set, only], (0, 1))
for number, (kind, dims, of, in_graph) in enumerate(every_case):
    if not of.included():
        continue
    members, index = of.ranks, of.rank()
    shape = (5, 3, 2)[:dims]
    own = values(rank, kind, shape)
    uneven = values(rank, kind, (rank + 1, *shape[1:]))
    splits = [rank + r for r in members]
    rows = values(rank, kind, (sum(splits), *shape[1:]))
    more = {"process_set": of}

    def run():
        name = f"case {number}" if number % 2 else None
        found = {str(op): hvd.allreduce(own, op=op, name=name, **more) for op in FOLDS}
        found["scaled"] = hvd.allreduce(
            own, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5, **more)
        found["mean"] = hvd.allreduce(own * 0 + 4, **more)
        found["grouped"] = hvd.grouped_allreduce([own, own + 1], op=hvd.Sum, **more)[1]
        found["allgather"] = hvd.allgather(uneven, name=name, **more)
        found["grouped allgather"] = hvd.grouped_allgather([uneven, own], **more)[1]
        found["broadcast"] = hvd.broadcast(own, members[-1], name=name, **more)
        found["alltoall"], found["received"] = hvd.alltoall(rows, splits, name=name, **more)
        found["reducescatter"] = hvd.reducescatter(own, op=hvd.Sum, name=name, **more)
        return found

    found = (tf.function(run) if in_graph else run)()
    every = [numbers(values(r, kind, shape)) for r in members]
    for op, fold in FOLDS.items():
        assert found[str(op)].dtype == kind
        equal(numbers(found[str(op)]), fold(every), (op, kind))
    equal(numbers(found["scaled"]), sum(every))
    equal(numbers(found["mean"]), np.full(shape, 4))
    equal(numbers(found["grouped"]), sum(every) + len(members))
    equal(numbers(found["allgather"]), np.concatenate(
        [numbers(values(r, kind, (r + 1, *shape[1:]))) for r in members]))
    equal(numbers(found["grouped allgather"]), np.concatenate(every))
    equal(numbers(found["broadcast"]), every[-1])
    parts = [np.split(numbers(values(r, kind, (sum(r + m for m in members), *shape[1:]))),
                      np.cumsum([r + m for m in members])[:-1])[index] for r in members]
    equal(numbers(found["alltoall"]), np.concatenate(parts))
    equal(found["received"], [r + rank for r in members])
    equal(numbers(found["reducescatter"]), np.array_split(sum(every), len(members))[index])

slices = tf.IndexedSlices(tf.constant([[rank + 1.0]]), tf.constant([rank]), tf.constant([2, 1]))
equal(tf.convert_to_tensor(hvd.allreduce(slices, op=hvd.Sum)), [[1.0], [2.0]])
raised(NotImplementedError, hvd.allreduce, slices, op=hvd.Max)
half = hvd.allreduce(tf.constant([0.1]), compression=hvd.Compression.fp16)
assert half.dtype == tf.float32 and abs(float(half[0]) - 0.1) < 1e-3
variables = [tf.Variable([float(rank)]), tf.Variable(rank)]
hvd.broadcast_variables(variables, 1)
equal(variables[0], [1.0])
equal(variables[1], 1)
equal(hvd.size_op(), world)
equal(hvd.rank_op(), rank)
equal(hvd.process_set_included_op(only.process_set_id), rank)
raised(RuntimeError, hvd.broadcast_global_variables, 0)

failed = tf.errors.FailedPreconditionError
said = raised(failed, hvd.allreduce, tf.ones(2 + rank), name="grows")
assert "[2]" in said and "[3]" in said, said
raised(hvd.HorovodInternalError, hvd.allreduce, tf.cast([1], [tf.int32, tf.float32][rank]))
raised(failed, hvd.broadcast, tf.ones(2), rank)
raised(failed, hvd.allgather, tf.ones([2, 1 + rank]))
raised(tf.errors.OpError, tf.function(lambda: hvd.allreduce(tf.ones(2 + rank))))
raised(ValueError, hvd.broadcast, tf.ones(2), 7)
raised(ValueError, hvd.alltoall, tf.ones(3))
raised(ValueError, hvd.alltoall, tf.ones(4), [1, 2])
raised(tf.errors.InvalidArgumentError, hvd.alltoall, tf.ones(4), [1, 2])
raised(ValueError, hvd.allreduce, tf.ones(3), average=True, op=hvd.Sum)
if rank == 0:
    raised(ValueError, hvd.allreduce, tf.ones(3), process_set=only)
    equal(hvd.allreduce(tf.ones(2), op=hvd.Sum), [1, 1])  # rank 1 adds zeros
assert hvd.join() in (0, 1)
say("ok")

def gradient(function, own):
    with tf.GradientTape() as tape:
        tape.watch(own)
        found = function(own)
        loss = tf.reduce_sum(found * (rank + 1.0))
    return tape.gradient(loss, own)

for wrap in (lambda f: f, tf.function):
    find = wrap(gradient)
    ones = tf.ones([4, 2])
    equal(find(lambda x: hvd.allreduce(x, op=hvd.Sum), ones), np.full((4, 2), 3))
    equal(find(lambda x: hvd.allreduce(x), ones), np.full((4, 2), 1.5))
    equal(find(lambda x: hvd.broadcast(x, 1), ones), np.full((4, 2), 1.5 * rank))
    equal(find(hvd.allgather, tf.ones([rank + 1, 2])), np.full((rank + 1, 2), 1.5))
    equal(find(lambda x: hvd.alltoall(x, [1, 2])[0], tf.ones(3)), [1, 2, 2])
    equal(find(lambda x: hvd.reducescatter(x, op=hvd.Sum), tf.ones(2)), [2, 4])
say("ok")
"""


def test_operations_return_the_results_of_numpy(ranks, tmp_path):
    ranks.append(Ranks("tensorflow", tmp_path, OPERATIONS, start=START))
    for _ in range(2):
        assert [ranks[0].say(rank) for rank in range(2)] == ["ok", "ok"]


TRAINING = """
import keras
import hearth.horovod.keras as hk
from hearth.horovod.keras.callbacks import MetricAverageCallback
from hearth.horovod.tensorflow.elastic import TensorFlowKerasState
from hearth.horovod.tensorflow.keras.callbacks import LearningRateWarmupCallback
from hearth.horovod.tensorflow.mpi_ops import Average, broadcast, rank_op
import hearth.horovod.tensorflow.keras as htk
assert broadcast is hvd.broadcast and htk.rank is hk.rank and Average == hk.Average
assert MetricAverageCallback is hk.callbacks.MetricAverageCallback
data = np.random.RandomState(0).rand(16, 3).astype("float32")
labels = data.sum(1, keepdims=True)
mine = data[rank::world], labels[rank::world]

def model(scale=1.0):
    keras.utils.set_random_seed(4)
    made = keras.Sequential([keras.layers.Input([3]), keras.layers.Dense(4, activation="tanh"),
                             keras.layers.Dense(1)])
    made.set_weights([weight * scale for weight in made.get_weights()])
    return made

def same(one, other):
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        assert np.allclose(a, b, atol=1e-5), (a, b)

def trained_alone(steps=3):
    alone = model()
    alone.compile(keras.optimizers.SGD(0.1), "mse")
    alone.fit(data, labels, batch_size=16, epochs=steps, verbose=0, shuffle=False)
    return alone

expected = trained_alone()

# A loop of TensorFlow 2.
net, optimizer = model(1.0 + rank), keras.optimizers.SGD(0.1)
hvd.broadcast_variables(net.variables, root_rank=0)

@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((y - net(x, training=True)) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss

for _ in range(3):
    step(*mine)
same(net, expected)

# model.fit, with the callbacks.
seen = []
class See(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        seen.append(logs["loss"])
net = model()
optimizer = hk.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=hk.Compression.none)
net.compile(optimizer, "mse")
net.fit(*mine, batch_size=8, epochs=3, verbose=0, shuffle=False, callbacks=[
    hk.callbacks.BroadcastGlobalVariablesCallback(0), hk.callbacks.MetricAverageCallback(), See()])
same(net, expected)
assert len({tuple(losses) for losses in hk.allgather_object(seen)}) == 1
path = f"{folder}/of {rank}.keras"
net.save(path)
loaded = hk.load_model(path)
for each in (net, loaded):
    each.fit(*mine, batch_size=8, verbose=0, shuffle=False)
same(net, loaded)
same(net, trained_alone(4))

# Two minibatches add up to one step.
net = model()
sgd = keras.optimizers.SGD(0.1)
net.compile(hk.DistributedOptimizer(
    sgd, backward_passes_per_step=2, average_aggregated_gradients=True), "mse")
net.fit(*mine, batch_size=4, epochs=3, verbose=0, shuffle=False)
same(net, expected)

# The last layer is each rank's own.
net = model()
net.compile(hk.PartialDistributedOptimizer(
    keras.optimizers.SGD(0.1), local_layers=net.layers[-1], scale_local_gradients=False), "mse")
net.fit(*mine, batch_size=8, verbose=0, shuffle=False)
first, *_, last = zip(*hk.allgather_object([w.tolist() for w in net.get_weights()]))
assert first[0] == first[1] and last[0] != last[1], (first, last)
net = model()
with tf.GradientTape() as tape:
    loss = tf.reduce_mean((mine[1] - net(mine[0])) ** 2)
tape = hvd.PartialDistributedGradientTape(tape, local_layers=[net.layers[0]])
found = tape.gradient(loss, net.trainable_variables)
first, *_, last = zip(*hvd.allgather_object([g.numpy().tolist() for g in found]))
assert first[0] != first[1] and last[0] == last[1], (first, last)

# The learning rate, and commits.
rates = []
class Rates(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        rates.append(round(float(net.optimizer.learning_rate), 6))
warm = hk.callbacks.LearningRateWarmupCallback(0.4, warmup_epochs=2, steps_per_epoch=2)
later = hk.callbacks.LearningRateScheduleCallback(0.4, lambda epoch: 0.1, start_epoch=3)
net.compile(hk.DistributedOptimizer(keras.optimizers.SGD(0.2, momentum=0.5)), "mse")
state = hk.elastic.KerasState(net, batch=0, epoch=0)
net.fit(*mine, batch_size=4, epochs=4, verbose=0, callbacks=[
    warm, later, Rates(), hk.elastic.UpdateBatchStateCallback(state),
    hk.elastic.UpdateEpochStateCallback(state), hk.elastic.CommitStateCallback(state, 2)])
equal(rates, [0.25, 0.3, 0.35, 0.4, 0.4, 0.4, 0.04, 0.04])
assert (state.epoch, state.batch) == (4, 0)
kept = net.get_weights()
net.set_weights([weight * 0 for weight in kept])
state.restore()
equal(net.get_weights()[0], kept[0])
equal(hk.allreduce(np.ones(2), op=hvd.Sum), [2, 2])
say("ok")
"""


def test_training_is_that_of_one_process(ranks, tmp_path):
    ranks.append(Ranks("tensorflow", tmp_path, TRAINING, start=START))
    assert [ranks[0].say(rank) for rank in range(2)] == ["ok", "ok"]


OVERFLOW = """
if case == "tf_keras":
    import tf_keras as keras
    policies = keras.mixed_precision
    hk = hvd
else:
    import keras
    import hearth.horovod.keras as hk
    policies = keras.config
(policies.set_global_policy if case == "tf_keras" else policies.set_dtype_policy)("mixed_float16")

def model(optimizer):
    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    made.build((None, 2))
    made.compile(optimizer, "mse")
    return made

def values(of):
    scale = getattr(of.optimizer, "dynamic_scale", None)
    return of.get_weights()[0], (of.optimizer.loss_scale if scale is None else scale).numpy()

def fit(of, data, rows):
    of.fit(data, np.ones((len(data), 1), np.float32), batch_size=rows, shuffle=False, verbose=0)

parts = [np.full((8, 2), 0.1 * (r + 1), np.float32) for r in range(world)]
parts[0][2] = 60000.0  # overflows float16 in the second of four steps, only on rank 0
together = np.concatenate([part[i:i + 2] for i in (0, 2, 4, 6) for part in parts])
alone = model(keras.optimizers.SGD(0.01))
fit(alone, together, 4)
weights, scale = values(alone)
assert scale == 2.0 ** 14, scale

for options in [{}, {"backward_passes_per_step": 2}][:1 if case == "tf_keras" else 2]:
    net = model(hk.DistributedOptimizer(keras.optimizers.SGD(0.01), **options))
    fit(net, parts[rank], 2)
    found = values(net)
    every = hvd.allgather_object([found[0].tolist(), float(found[1])])
    assert every[0] == every[1] and every[0][1] == 2.0 ** 14, every
    if not options:
        assert np.allclose(found[0], weights, atol=1e-4), (found, weights)
say("ok")
"""


@pytest.mark.parametrize("case", ["keras", "tf_keras"])
def test_ranks_leave_out_the_same_steps_of_mixed_precision(ranks, tmp_path, case):
    ranks.append(Ranks("tensorflow", tmp_path, OVERFLOW, start=START, case=case))
    assert [ranks[0].say(rank) for rank in range(2)] == ["ok", "ok"]
