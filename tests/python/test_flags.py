"""The command line keeps CaffeOnSpark's flags and defaults; errors are one sentence."""

import pytest

from hearth.caffeonspark import command_line
from hearth.caffeonspark.flags import (
    ALL,
    FlagError,
    dict_to_arguments,
    parse_flags,
    refuse_tool_flags,
)
from hearth.native import _core
from hearth.spark.executors import executor_count

DEFAULTS = {
    "proto_file": "", "is_training": False, "is_test": False, "features": "", "label": "",
    "output_format": "json", "model_path": "", "output_path": "output", "devices": 1,
    "is_rdd_persistent": False, "snapshot_state_file": "", "snapshot_model_file": "",
    "connection": "infiniband", "resize": False, "cluster_size": ALL, "image_root": "",
    "label_file": "", "caption_file": "", "caption_length": 20, "vocab_size": -1,
    "image_caption_df_dir": "", "vocab_dir": "", "embedding_df_dir": "",
}  # fmt: skip
TOOL_FLAGS = (
    "imageRoot labelFile captionFile captionLength vocabSize imageCaptionDFDir vocabDir "
    "embeddingDFDir"
)
FLAGS_WITH_VALUE = (
    "conf features label outputFormat model output devices snapshot weights connection clusterSize "
    f"lmdb_partitions {TOOL_FLAGS}"
)


def test_defaults_are_caffeonsparks():
    flags = vars(parse_flags([]))
    assert {name: flags[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("flag", FLAGS_WITH_VALUE.split())
def test_every_flag_takes_a_value(flag):
    value = {"connection": "ethernet"}.get(flag, "3")
    arguments = [f"-{flag}", value]
    if flag == "snapshot":
        arguments += ["-weights", "w"]
    assert value in map(str, vars(parse_flags(arguments)).values())


def test_switches_take_no_value():
    flags = parse_flags(["-train", "-test", "-persistent", "-resize"])
    assert flags.is_training and flags.is_test and flags.is_rdd_persistent and flags.resize


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("-trian", "-trian"),
        ("-conf", "expected one argument"),
        ("-devices many", "invalid int value: 'many'"),
        ("-devices 0", "-devices is 0"),
        ("-clusterSize 0", "-clusterSize is 0"),
        ("-maxRestarts -1", "-maxRestarts is -1"),
        ("-onNaN perhaps", "stop or continue"),
        ("-onOtherRows ignore", "restartEpoch or fail"),
        ("-precision half", "float32 or bf16 or int8"),
        ("-maxBadRecords some", "-maxBadRecords is 'some'"),
        ("-maxBadRecords 1.5", "a fraction of them"),
        ("-maxBadRecords -1", "-maxBadRecords is '-1'"),
        ("-connection token-ring", "ethernet or infiniband"),
        ("-syncEvery 0", "-syncEvery is 0; it must be at least 1"),
        ("-logHistograms=-1", "-logHistograms is -1; it must be at least 0"),
        ("-snapshot a.solverstate", "-weights"),
    ],
)
def test_a_wrong_flag_is_named(arguments, said):
    with pytest.raises(FlagError, match=said):
        parse_flags(arguments.split())


@pytest.mark.parametrize("flag", TOOL_FLAGS.split())
def test_a_run_refuses_flags_of_conversion_tools(flag):
    refuse_tool_flags(parse_flags(["-train", "-conf", "c"]))
    with pytest.raises(FlagError, match=f"-{flag} is for CaffeOnSpark's conversion tools"):
        command_line.run(["-train", "-conf", "c", f"-{flag}", "3"], lambda session: None)


@pytest.mark.parametrize(
    ("master", "settings", "executors"),
    [
        ("local[8]", {}, 1),
        ("local-cluster[3, 2, 1024]", {}, 3),
        ("yarn", {"spark.executor.instances": "5"}, 5),
        ("yarn", {}, 2),
        ("spark://host", {"spark.cores.max": "12", "spark.executor.cores": "4"}, 3),
        ("spark://host", {}, 1),
    ],
)
def test_all_executors_train_by_default(master, settings, executors):
    class Conf:
        def get(self, key, default=None):
            return {"spark.master": master, **settings}.get(key, default)

    class Session:
        conf = Conf()

    assert executor_count(Session()) == executors


def test_dict_keys_may_have_a_dash_and_switches_follow_their_truth():
    given = {"conf": "a", "-model": "b", "train": "", "resize": "false", "test": True}
    assert dict_to_arguments(given) == ["-conf=a", "-model=b", "-train", "-test"]


def test_an_invalid_value_of_a_switch_is_refused():
    with pytest.raises(FlagError, match="-train is a switch"):
        dict_to_arguments({"train": "yes please"})


def test_a_negative_value_in_a_dict_is_a_value():
    assert parse_flags(dict_to_arguments({"vocabSize": "-1"})).vocab_size == -1


@pytest.mark.parametrize(
    ("text", "rows", "fraction"),
    [("", -1, -1), ("0", 0, -1), ("10", 10, -1), ("0.25", -1, 0.25), ("1e-3", -1, 0.001)],
)
def test_the_limit_of_invalid_rows_is_a_number_or_a_fraction(text, rows, fraction):
    assert _core.invalid_row_limit(text) == (rows, fraction)


@pytest.mark.parametrize("flag", ["-ui", "-logDir=runs"])
def test_flags_of_a_training_are_refused_without_one(flag):
    with pytest.raises(FlagError, match="set -train"):
        command_line.run(["-test", "-conf", "solver.prototxt", flag], started=None)
    assert parse_flags(["-train", flag]).is_training


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("-trian", "there is no flag -trian; did you mean -train?"),
        ("-nonsense", "there is no flag -nonsense"),
        ("extra", "unexpected argument 'extra': flags begin with '-'"),
    ],
)
def test_unknown_arguments_are_named_with_the_nearest_flag(argument, said):
    with pytest.raises(FlagError) as failed:
        parse_flags(["-train", "-conf", "c", argument])
    assert str(failed.value) == said
