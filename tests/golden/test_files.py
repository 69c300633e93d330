"""Models and solver states: Hearth reads Caffe's files, and writes equal ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from golden import DATA, Case, cases
from hand_fed import fed_solver, set_params

from hearth.native import _caffe

FILES = DATA / "files"


@pytest.fixture
def case() -> Case:
    (case,) = cases("files")
    return case


def solver_at(case: Case, start: int, folder: Path) -> _caffe.Solver:
    """The case's solver; it writes snapshots into `folder`, and its feed continues at `start`."""
    text = case["solver_prototxt"].replace('prefix: "net"', f'prefix: "{folder}/net"')
    return fed_solver(text, case.arrays(), start)


def all_params(net: _caffe.Net) -> dict[str, np.ndarray]:
    return {
        f"{layer}/{i}": blob.data.copy()
        for layer, blobs in net.params.items() for i, blob in enumerate(blobs)
    }  # fmt: skip


def compare(case: Case, net: _caffe.Net, prefix: str) -> None:
    for key, expected in case.arrays().items():
        if key.startswith(prefix):
            layer, index = key.removeprefix(prefix).split("/")
            case.close(net.params[layer][int(index)].data, expected, key)


@pytest.mark.parametrize("name", ["net.caffemodel", "net.caffemodel.h5"])
def test_a_model_of_caffe_has_its_values(case: Case, tmp_path: Path, name: str) -> None:
    solver = solver_at(case, 0, tmp_path)
    solver.net.copy_from(str(FILES / name))
    arrays = case.arrays()
    for key, value in all_params(solver.net).items():
        np.testing.assert_array_equal(value, arrays[f"iter5/param/{key}"])


@pytest.mark.parametrize("name", ["net_with_diff.caffemodel", "net_with_diff.caffemodel.h5"])
def test_diffs_in_a_model_are_read(case: Case, tmp_path: Path, name: str) -> None:
    solver = solver_at(case, 0, tmp_path)
    solver.net.copy_from(str(FILES / name))
    arrays = case.arrays()
    for layer, blobs in solver.net.params.items():
        for i, blob in enumerate(blobs):
            np.testing.assert_array_equal(blob.diff, arrays[f"iter5/paramdiff/{layer}/{i}"])


def content(path: Path) -> dict[str, tuple]:
    """Content of an HDF5 file: kind, type, shape, values and attributes by path."""
    h5py = pytest.importorskip("h5py")
    found: dict[str, tuple] = {}

    def look(name: str, item: h5py.Group | h5py.Dataset) -> None:
        assert not dict(item.attrs)
        if isinstance(item, h5py.Dataset):
            # Not compared, because the path of a state's model contains another folder.
            value = None if name == "learned_net" else item[()].tolist()
            kind = item.dtype.kind if name == "learned_net" else item.dtype.str
            found[name] = ("dataset", kind, item.shape, value)
        else:
            found[name] = ("group",)

    with h5py.File(path) as file:
        file.visititems(look)
    return found


@pytest.mark.parametrize("name", ["net.caffemodel.h5", "net_with_diff.caffemodel.h5"])
def test_a_written_hdf5_model_equals_caffes(case: Case, tmp_path: Path, name: str) -> None:
    solver = solver_at(case, 0, tmp_path)
    solver.net.copy_from(str(FILES / name))
    solver.net.save(str(tmp_path / name), diffs="diff" in name)
    assert content(tmp_path / name) == content(FILES / name)


def test_hdf5_snapshots_equal_caffes(case: Case, tmp_path: Path) -> None:
    text = case["solver_prototxt"].replace('prefix: "net"', f'prefix: "{tmp_path}/net"')
    solver = fed_solver("snapshot_format: HDF5\n" + text, case.arrays(), 5)
    solver.restore(str(FILES / "net_iter_5.solverstate.h5"))
    for path in map(Path, solver.snapshot()):
        assert content(path) == content(FILES / path.name)


@pytest.mark.parametrize("name", ["net.caffemodel", "net_with_diff.caffemodel"])
def test_a_written_model_is_byte_for_byte_that_of_caffe(
    case: Case, tmp_path: Path, name: str
) -> None:
    solver = solver_at(case, 0, tmp_path)
    solver.net.copy_from(str(FILES / name))
    solver.net.save(str(tmp_path / name), diffs="diff" in name)
    assert (tmp_path / name).read_bytes() == (FILES / name).read_bytes()


@pytest.mark.parametrize("name", ["net_iter_5.solverstate", "net_iter_5.solverstate.h5"])
def test_training_resumes_from_a_state_of_caffe(case: Case, tmp_path: Path, name: str) -> None:
    solver = solver_at(case, case["snapshot_iter"], tmp_path)
    solver.restore(str(FILES / name))
    assert solver.iter == case["snapshot_iter"]
    solver.step(case["final_iter"] - solver.iter)
    compare(case, solver.net, f"iter{case['final_iter']}/param/")


def test_training_from_the_start_agrees(case: Case, tmp_path: Path) -> None:
    solver = solver_at(case, 0, tmp_path)
    set_params(solver.net, case.arrays(), "iter0/param/")
    solver.step(case["final_iter"])
    compare(case, solver.net, f"iter{case['final_iter']}/param/")


def test_resuming_equals_an_unbroken_run_bit_for_bit(case: Case, tmp_path: Path) -> None:
    straight = solver_at(case, 0, tmp_path)
    set_params(straight.net, case.arrays(), "iter0/param/")
    straight.step(5)
    model, state = straight.snapshot()
    assert (Path(model).name, Path(state).name) == (
        "net_iter_5.caffemodel",
        "net_iter_5.solverstate",
    )
    straight.step(3)
    resumed = solver_at(case, 5, tmp_path)
    resumed.restore(state)
    resumed.step(3)
    for key, value in all_params(straight.net).items():
        np.testing.assert_array_equal(all_params(resumed.net)[key], value)
    for ours, theirs in zip(resumed.history, straight.history, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_written_state_ends_as_caffe_writes_it(case: Case, tmp_path: Path) -> None:
    solver = solver_at(case, 5, tmp_path)
    solver.restore(str(FILES / "net_iter_5.solverstate"))
    _, state = solver.snapshot()
    original = (FILES / "net_iter_5.solverstate").read_bytes()
    written = Path(state).read_bytes()
    # After iter and learned_net (whose text depends on the folder), only history and current_step
    # follow, as in Caffe's file: Hearth's fields are in the seal next to the state.
    assert written.endswith(original[original.index(b"\x1a") :])


def test_files_of_another_kind_and_missing_files_are_refused(case: Case, tmp_path: Path) -> None:
    solver = solver_at(case, 0, tmp_path)
    with pytest.raises(RuntimeError, match="is not a readable solver state"):
        solver.restore(str(FILES / "net.caffemodel"))
    with pytest.raises(FileNotFoundError, match="is not a readable solver state"):
        solver.restore(str(FILES / "net.caffemodel.h5"))
    with pytest.raises(FileNotFoundError, match=r"missing\.caffemodel"):
        solver.net.copy_from(str(tmp_path / "missing.caffemodel"))


def test_a_truncated_model_names_the_field(case: Case, tmp_path: Path) -> None:
    solver = solver_at(case, 0, tmp_path)
    damaged = tmp_path / "damaged.caffemodel"
    damaged.write_bytes((FILES / "net.caffemodel").read_bytes()[:-200])
    with pytest.raises(RuntimeError, match=r"damaged\.caffemodel: damaged at byte .* in layer"):
        solver.net.copy_from(str(damaged))
