#include "hearth/caffe/snapshot/snapshot.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/caffe/snapshot/snapshot_hdf5.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/storage/file.h"
#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

// Writes to a temporary name until the file is complete, so no reader and no restart finds half a
// file.
void Write(const Message& message, const std::string& uri) {
  storage::AtomicFile file(uri);
  WriteWire(message, [&](std::string_view bytes) { file.Append(bytes); });
  file.Commit();
}

}  // namespace

std::string SnapshotName(const std::string& prefix, int iteration, const std::string& extension) {
  return fmt::format("{}_iter_{}.{}", prefix, iteration, extension);
}

void MakeFolderOf(const std::string& uri) {
  const std::string folder = storage::FolderOf(uri);
  if (!folder.empty()) storage::For(folder).MakeFolders(folder);
}

void WriteModel(const NetParameter& model, const std::string& uri) {
  IsHdf5Name(uri) ? WriteModelHdf5(model, uri) : Write(model, uri);
}

NetParameter ReadModel(const std::string& uri) {
  if (IsHdf5Name(uri)) return ReadModelHdf5(uri);
  const std::string bytes = storage::ReadFile(uri);
  Require(!bytes.empty(), ErrorCode::kDataLoss, "{} is empty; give a file of trained weights", uri);
  // HDF5 files are recognized even if their name does not end in .h5.
  if (bytes.starts_with("\x89HDF\r\n\x1a\n")) return ReadModelHdf5(uri);
  NetParameter model;
  ParseWire(bytes, uri, &model);
  UpgradeNet(&model, uri);
  return model;
}

void WriteState(const SolverState& state, const std::string& uri) {
  IsHdf5Name(uri) ? WriteStateHdf5(state, uri) : Write(state, uri);
}

SolverState ReadState(const std::string& uri) {
  // ReadFile is called outside the try block, because a file that cannot be reached is not a
  // damaged one.
  const std::string bytes = IsHdf5Name(uri) ? "" : storage::ReadFile(uri);
  try {
    SolverState state;
    if (IsHdf5Name(uri)) {
      state = ReadStateHdf5(uri);
    } else {
      ParseWire(bytes, uri, &state);
    }
    Require(state.has_iter(), ErrorCode::kDataLoss, "the solver state has no iteration");
    Require(state.iter() >= 0, ErrorCode::kDataLoss, "field iter is {}, below 0", state.iter());
    Require(state.current_step() >= 0, ErrorCode::kDataLoss, "field current_step is {}, below 0",
            state.current_step());
    return state;
  } catch (const Error& error) {
    // The hint helps because the two files of a snapshot are easily confused.
    throw Error(
        error.code(),
        fmt::format("{} is not a readable solver state (a .caffemodel is not a solver state)", uri),
        error);
  }
}

}  // namespace hearth::caffe
