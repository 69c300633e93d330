#include "hearth/caffe/solver/snapshot_writer.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {

SnapshotWriter::SnapshotWriter(const SolverParameter& param, std::string solver_file)
    : param_(param), solver_file_(std::move(solver_file)) {}

// Caffe's rule: if snapshot_prefix is a folder, the prefix is the solver file's name without
// extension, in that folder.
std::string SnapshotWriter::prefix() const {
  const std::string name = std::filesystem::path(storage::NameOf(solver_file_)).stem();
  if (!param_.has_snapshot_prefix()) return storage::Join(storage::FolderOf(solver_file_), name);
  const std::string& prefix = param_.snapshot_prefix();
  const auto there = prefix.empty() ? std::nullopt : storage::For(prefix).Stat(prefix);
  return there && there->is_folder ? storage::Join(prefix, name) : prefix;
}

// Called when training starts, because an unwritable folder would otherwise stop it hours later, at
// its first snapshot.
void SnapshotWriter::Check() const {
  if (param_.snapshot() == 0) return;
  try {
    storage::AtomicFile probe(prefix() + ".probe");
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("cannot write snapshots to {}_iter_*; create the folder, or set "
                            "another snapshot_prefix",
                            prefix()),
                error);
  }
}

SnapshotFiles SnapshotWriter::Write(Net& net, const std::function<SolverState()>& make_state,
                                    const TrainingPosition& position) const {
  const std::string start = prefix();
  Require(!start.empty(), ErrorCode::kInvalidArgument,
          "the solver has no snapshot_prefix; set it, or snapshot_after_train: false");
  const bool hdf5 = param_.snapshot_format() == SolverParameter::HDF5;
  const char* const format = hdf5 ? "HDF5" : "binary proto";
  const std::string ending = hdf5 ? ".h5" : "";
  const int iteration = position.iteration;
  const SnapshotFiles files{SnapshotName(start, iteration, "caffemodel" + ending),
                            SnapshotName(start, iteration, "solverstate" + ending)};
  std::vector<std::string> written;
  try {
    log::Info("Snapshotting to {} file {}", format, files.model);
    MakeFolderOf(files.model);
    WriteModel(net.ToProto(param_.snapshot_diff()), files.model);
    written.push_back(files.model);
    // The state is written after the model, so that every state has a model; the seal is written
    // last.
    SolverState state = make_state();  // after the model's copy is freed
    state.set_learned_net(files.model);
    log::Info("Snapshotting solver state to {} file {}", format, files.state);
    WriteState(state, files.state);
    written.push_back(files.state);
    SealSnapshot(position, files);
  } catch (...) {
    // A partial snapshot is useless, and if the disk is full, its space is needed.
    for (const std::string& file : written) storage::For(file).DeleteQuietly(file);
    throw;
  }
  return files;
}

}  // namespace hearth::caffe
