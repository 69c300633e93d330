"""Config reads the prototxts, and has CaffeOnSpark's attributes under both spellings."""

from pathlib import Path

import pytest

from hearth import caffeonspark
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource, FlagError

DIGITS = Path(__file__).resolve().parents[2] / "python" / "hearth" / "demo"
SOLVER = str(DIGITS / "lenet_memory_solver.prototxt")
# The Scala class's names, which CaffeOnSpark's Python programs use.
UPSTREAM = (
    "protoFile isTraining isTest isFeature label modelPath outputPath devices isRddPersistent "
    "snapshotStateFile snapshotModelFile resize connection clusterSize transform_thread_per_device "
    "features outputFormat imageRoot labelFile lmdb_partitions captionFile captionLength vocabSize "
    "imageCaptionDFDir vocabDir embeddingDFDir train_data_layer_id test_data_layer_id "
    "solverParameter netParam"
)


def test_names_that_are_loaded_when_asked_for_are_shown_before():
    assert set(caffeonspark.__all__) <= set(dir(caffeonspark))


@pytest.mark.parametrize("name", UPSTREAM.split())
def test_upstreams_names_can_be_read(name):
    getattr(Config(None, {"conf": SOLVER}), name)


def test_both_spellings_are_one_setting():
    conf = Config(None, {"conf": SOLVER, "-clusterSize": "3"})
    conf.modelPath = "file:/m"
    assert (conf.cluster_size, conf.clusterSize, conf.model_path) == (3, 3, "file:/m")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("connection", 2, "-connection is '2'; it must be ethernet or infiniband"),
        ("onNaN", "ignore", "-onNaN is 'ignore'; it must be stop or continue"),
        ("devices", 0, "-devices is 0; it must be at least 1"),
        ("devices", "2", "-devices is '2'; it must be a whole number"),
        ("transform_thread_per_device", 5000, "transform_threads is 5000; it must be at most 1024"),
        ("resize", "no", "-resize is 'no'; it must be True or False"),
        ("clusterSize", 0, "-clusterSize is 0; it must be at least 1"),
        ("max_restarts", True, "-maxRestarts is True; it must be a whole number"),
        ("maxBadRecords", "many", "-maxBadRecords is 'many'"),
    ],
)
def test_an_invalid_value_is_refused_when_it_is_set(name, value, text):
    conf = Config(None, {"conf": SOLVER})
    before = getattr(conf, name)
    with pytest.raises(FlagError, match=text):
        setattr(conf, name, value)
    assert getattr(conf, name) == before


@pytest.mark.parametrize("value, text", [(5, "5"), (0.01, "0.01"), ("5", "5")])
def test_invalid_rows_may_be_limited_by_a_number(value, text):
    conf = Config(None, {"conf": SOLVER})
    conf.maxBadRecords = value
    assert conf.max_bad_records == text


def test_an_unknown_setting_is_refused():
    conf = Config(None, {"conf": SOLVER})
    with pytest.raises(AttributeError, match="modelPaht"):
        conf.modelPaht = "x"
    with pytest.raises(AttributeError, match="modelPaht"):
        _ = conf.modelPaht


def test_read_only_settings_stay():
    with pytest.raises(AttributeError, match="read-only"):
        Config(None, {"conf": SOLVER}).train_data_layer_id = 3


def test_label_defaults_differ_with_and_without_flags():
    assert Config(None).label == "label"
    assert Config(None, {"conf": SOLVER}).label == ""


def test_the_label_blob_is_appended_once():
    given = {"conf": SOLVER, "features": "ip1, ip2", "label": "label"}
    assert Config(None, given).blobs == ["ip1", "ip2", "label"]
    assert Config(None, {**given, "features": "label,ip1"}).blobs == ["label", "ip1"]


def test_data_layers_are_found_by_phase():
    conf = Config(None, {"conf": SOLVER})
    assert (conf.train_data_layer_id, conf.test_data_layer_id) == (0, 1)
    assert conf.data_layer(True)["memory_data_param"]["batch_size"] == 32
    assert conf.data_layer(False)["memory_data_param"]["batch_size"] == 60
    assert conf.interleaves_validation


def test_data_layers_are_found_by_the_solvers_states(tmp_path):
    rules = (
        'include { phase: TRAIN not_stage: "trainval" }',
        'include { phase: TRAIN stage: "trainval" }',
        'include { phase: TEST stage: "on-train" }',
        'include { phase: TEST stage: "on-val" max_level: 1 }',
        'include { phase: TEST } exclude { stage: "on-val" }',
    )
    layers = [f'layer {{ name: "d" type: "MemoryData" source_class: "LMDB" {r} }}' for r in rules]
    (tmp_path / "n.prototxt").write_text("\n".join(layers))
    solver = tmp_path / "s.prototxt"
    found = {}
    for state in ("", 'stage: "on-train"', 'stage: "on-val"', 'stage: "on-val" level: 2'):
        solver.write_text(f'net: "n.prototxt" train_state {{ }} test_state {{ {state} }}')
        conf = Config(None, {"conf": str(solver)})
        assert conf.train_data_layer_id == 0
        found[state] = conf.test_data_layer_id
    assert list(found.values()) == [4, 2, 3, -1]
    solver.write_text('net: "n.prototxt" train_state { stage: "trainval" }')
    assert Config(None, {"conf": str(solver)}).train_data_layer_id == 1


def test_a_net_without_test_data_layer_is_an_error_only_when_it_is_asked_for(tmp_path):
    (tmp_path / "s.prototxt").write_text('net: "n.prototxt"\n')
    (tmp_path / "n.prototxt").write_text(
        'layer { name: "d" type: "MemoryData" source_class: "LMDB" include { phase: TRAIN } }'
    )
    conf = Config(None, {"conf": str(tmp_path / "s.prototxt")})
    with pytest.raises(FlagError, match="no layer with source_class for phase TEST"):
        conf.data_layer(False)


@pytest.mark.parametrize("kind", ["LMDB", "com.yahoo.ml.caffe.SeqImageDataSource"])
def test_a_source_feeds_only_its_type_of_layer(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("hearth.caffeonspark.data_source.as_session", lambda sc: None)
    (tmp_path / "s.prototxt").write_text('net: "n.prototxt"\n')
    (tmp_path / "n.prototxt").write_text(
        f'layer {{ name: "d" type: "CoSData" source_class: "{kind}" }}'
    )
    conf = Config(None, {"conf": str(tmp_path / "s.prototxt")})
    with pytest.raises(FlagError, match=r"has the type CoSData, but \w+ feeds MemoryData layers"):
        DataSource(None).getSource(conf, True)


def test_the_api_has_upstreams_methods():
    for name in ("train", "trainWithValidation", "test", "features"):
        assert callable(getattr(CaffeOnSpark, name))
    assert callable(DataSource.getSource)
