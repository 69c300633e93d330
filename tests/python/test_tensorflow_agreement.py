"""Ranks that disagree in TensorFlow, and what DistributedOptimizer leaves unchanged."""

from __future__ import annotations

import importlib.util

import pytest
from tensorflow_ranks import Ranks, kept_ports, tensorflow_ranks

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
    ),
]
ranks = tensorflow_ranks

# A disagreement ends the group, so each case uses a new one.
DISAGREEMENTS = """
a, b = tf.Variable(tf.ones([4, 2]), name="a"), tf.Variable(tf.ones([4, 2]), name="b")
first = rank == 0

def slices(of):
    return tf.IndexedSlices(tf.fill([1, 2], float(of)), tf.constant([of]), tf.constant([4, 2]))

def tape(order, none=None):
    with hvt.DistributedGradientTape() as tape:
        loss = sum(tf.reduce_sum(tf.gather(v, [0])) for v in order if v is not none)
    tape.gradient(loss, order)

def optimizer(gradients):
    import keras
    own = hvt.DistributedOptimizer(keras.optimizers.SGD(0.1))
    variables = [keras.Variable(tf.ones([4, 2]), name=name) for name in "ab"]
    own.apply(gradients, variables)

def left_out():
    for step in range(3):
        with tf.GradientTape() as tape:
            hvt.next_step()
            loss = tf.reduce_sum(a * 2.0)
        if not (first and step == 1):  # as where the loss is not finite
            a.assign_sub(hvt.allreduce(tape.gradient(loss, a), name="a"))

def tape_left_out():
    for step in range(3):
        with hvt.DistributedGradientTape() as tape:
            loss = tf.reduce_sum(a * 2.0)
        if not (first and step == 1):
            tape.gradient(loss, a)

CASES = {
    "shape": lambda: hvt.allreduce(tf.ones([2, 3] if first else [3, 2]), name="kernel"),
    "broadcast": lambda: hvt.broadcast(tf.ones([2, 3] if first else [3, 2])),
    "type": lambda: hvt.broadcast(tf.zeros([4], tf.int16 if first else tf.uint16)),
    "gathered": lambda: hvt.allgather(tf.ones([1, 2, 3] if first else [1, 3, 2])),
    "order of slices": lambda: hvt.reduce_gradients(
        [slices(1), slices(2)], names=["a", "b"] if first else ["b", "a"]),
    "order of a tape": lambda: tape([a, b] if first else [b, a]),
    "none in a tape": lambda: tape([a, b], none=b if first else None),
    "none in an optimizer": lambda: optimizer(
        [tf.ones([4, 2]), None if first else tf.ones([4, 2])]),
    "slices for a dense one": lambda: optimizer(
        [slices(1) if first else tf.ones([4, 2]), tf.ones([4, 2])]),
    "step": left_out,
    "step of a tape": tape_left_out,
}
for name, call in CASES.items():
    try:
        call()
        hvt.allreduce(tf.zeros([1]), name="the end")
        say("")
    except tf.errors.OpError as error:
        say(str(error))
    hvt.shutdown()
    hvt.init(Place(rank, world, rendezvous), seconds)
"""


def test_other_shapes_types_orders_and_steps_are_reported(ranks, tmp_path):
    ranks.append(Ranks(tmp_path, DISAGREEMENTS, seconds=60))
    for said in [
        ("'kernel'", "float32[2, 3]", "float32[3, 2]"),
        ("float32[2, 3]", "float32[3, 2]"),
        ("int16[4]", "uint16[4]"),
        ("[2, 2, 3]", "[2, 3, 2]"),
        ("of a'", "of b'"),
        ("of a:0'", "of b:0'"),
        ("'no gradient of b:0'", "of b:0'"),
        ("'no gradient of b'", "'b'"),
        ("of a'", "'a'"),
        ("step 2", "step 3"),  # steps are counted per group
        ("a:0'", "step 2", "step 3"),
    ]:
        replies = [ranks[0].say(rank) for rank in range(2)]
        assert any(all(part in text for part in said) for text in replies), (said, replies)


OVERFLOW = """
if case == "tf_keras":
    import tf_keras as keras
    policies = keras.mixed_precision
else:
    import keras
    policies = keras.config
(policies.set_global_policy if case == "tf_keras" else policies.set_dtype_policy)("mixed_float16")
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
model.build((None, 2))
own = hvt.DistributedOptimizer(keras.optimizers.SGD(0.01))
model.compile(own, "mse")
x = np.full((6, 2), 0.1 * (rank + 1), np.float32)
if rank == 0:
    x[2] = 60000.0  # overflows float16 in the second step, only on this rank
model.fit(x, np.ones((6, 1), np.float32), batch_size=2, shuffle=False, verbose=0)
hvt.allreduce(tf.zeros([1]), name="the end")
if case == "keras":
    assert own.iterations.numpy() == 2, own.iterations
    scale = model.optimizer.dynamic_scale
else:
    scale = model.optimizer.loss_scale
say([model.get_weights()[0].tolist(), float(scale.numpy())])
"""


@pytest.mark.parametrize("case", ["keras", "tf_keras"])
def test_ranks_leave_out_the_same_steps_of_mixed_precision(ranks, tmp_path, case):
    ranks.append(Ranks(tmp_path, OVERFLOW, case=case))
    first, second = (ranks[0].say(rank) for rank in range(2))
    assert first == second and first[1] == 2.0**14


SETTINGS = """
import keras

class Halved(keras.optimizers.SGD):
    # An attribute that no config has.
    share = 1.0

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient * self.share, variable, learning_rate)

def step(optimizer, variable):
    optimizer.apply([tf.fill([2], rank + 1.0)], [variable])

halved = Halved(lambda: 0.5)  # a schedule that no config can have
halved.share = 0.5
variable = keras.Variable(tf.ones([2]), name="w")
assert hvt.DistributedOptimizer(halved) is halved
step(halved, variable)
equal(variable, [1 - 0.5 * 0.5 * 1.5] * 2)

adam = keras.optimizers.AdamW(0.1)
adam.exclude_from_weight_decay(var_names=["w"])
for _ in range(8):
    adam.apply([tf.ones([2])], [variable])
excluded, momenta = adam._exclude_from_weight_decay_pattern, [v.numpy() for v in adam.variables]
hvt.DistributedOptimizer(adam)
assert adam.iterations.numpy() == 8 and adam._exclude_from_weight_decay_pattern == excluded
for before, now in zip(momenta, adam.variables):
    equal(now, before)
assert type(adam) is keras.optimizers.AdamW
for again in (adam, keras.optimizers.LossScaleOptimizer(adam)):
    try:
        hvt.DistributedOptimizer(again, "sum")
        raise SystemExit("accepted")
    except ValueError as error:
        assert "already" in str(error)

# Training resumes with Adam's state, as documented.
def fit(model):
    model.fit(np.ones((8, 3), np.float32), np.ones((8, 1), np.float32), batch_size=4, verbose=0)

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile(hvt.DistributedOptimizer(keras.optimizers.Adam(0.1)), "mse")
fit(model)
model.save(f"{folder}/{rank}.keras")
fit(model)
loaded = keras.models.load_model(f"{folder}/{rank}.keras")
assert type(loaded.optimizer) is keras.optimizers.Adam
loaded.compile(hvt.DistributedOptimizer(loaded.optimizer), "mse")
fit(loaded)
for ours, theirs in zip(loaded.get_weights(), model.get_weights()):
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
assert loaded.optimizer.iterations.numpy() == 4
say("done")
"""


def test_an_optimizer_keeps_its_settings_and_state(ranks, tmp_path):
    ranks.append(Ranks(tmp_path, SETTINGS))
    assert [ranks[0].say(rank) for rank in range(2)] == ["done"] * 2


UNEQUAL = """
import keras

batches = 3 if rank == 0 else 5
x = np.ones((4 * batches, 1), np.float32)

def fit(*callbacks):
    hvt.allreduce(tf.ones([1]))
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(hvt.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
    model.fit(x, x, batch_size=4, epochs=2, verbose=0, callbacks=callbacks)

def late():
    fit()
    if rank == 0:
        time.sleep(600)  # separate work after the training

def loop(left_out=-1):
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": case[1]},
                                          "task": {"type": "worker", "index": rank}})
    hvt.use_for_collectives()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        weight = tf.Variable(1.0)

    @tf.function
    def step():
        def replica():
            context = tf.distribute.get_replica_context()
            weight.assign_sub(context.all_reduce(tf.distribute.ReduceOp.MEAN, weight * 1.0))
        strategy.run(replica)

    for number in range(batches):
        strategy.run(lambda: None) if number == left_out else step()

try:
    {"fit": fit, "late": late, "loop": loop, "left out": lambda: loop(1 if rank == 0 else -1),
     "metrics": lambda: fit(hvt.MetricAverageCallback())}[case[0]]()
    say("")
except tf.errors.OpError as error:
    say(str(error))
"""


@pytest.mark.parametrize("case", ["fit", "late", "left out", "loop", "metrics"])
def test_ranks_with_different_numbers_of_batches_get_an_error(ranks, tmp_path, case):
    with kept_ports(2) as ports:
        seconds = 10 if case == "late" else 60
        ranks.append(Ranks(tmp_path, UNEQUAL, case=[case, ports], seconds=seconds))
        replies = ranks[0].say(1)
    said = {
        "fit": "rank 0 has ended before the others: unless it failed, give all ranks the same",
        "late": "had not arrived before the deadline; all ranks must take the same number of steps",
        "loop": "rank 0 has ended before the others: unless it failed, give all ranks the same",
        "left out": "meanwhile; all ranks must do the same in the same order",
        "metrics": "meanwhile; all ranks must do the same in the same order",
    }
    assert said[case] in replies and "in_step()" in replies, replies
