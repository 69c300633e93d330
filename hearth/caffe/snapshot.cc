#include "hearth/caffe/snapshot.h"

#include <fmt/format.h>

#include <string_view>

#include "hearth/base/error.h"
#include "hearth/caffe/net_file.h"
#include "hearth/caffe/proto/wire_reader.h"
#include "hearth/caffe/proto/wire_writer.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

void RefuseHdf5(const std::string& uri) {
  Require(!uri.ends_with(".h5"), ErrorCode::kUnimplemented,
          "{} is an HDF5 file, which is not supported yet; use snapshot_format: BINARYPROTO", uri);
}

void Write(const Message& message, const std::string& uri) {
  RefuseHdf5(uri);
  storage::AtomicFile file(uri);
  WriteWire(message, [&](std::string_view bytes) { file.Append(bytes); });
  file.Commit();
}

}  // namespace

std::string SnapshotName(const std::string& prefix, int iteration, const std::string& extension) {
  return fmt::format("{}_iter_{}.{}", prefix, iteration, extension);
}

void WriteModel(const NetParameter& model, const std::string& uri) { Write(model, uri); }

NetParameter ReadModel(const std::string& uri) {
  RefuseHdf5(uri);
  NetParameter model;
  ParseWire(storage::ReadFile(uri), uri, &model);
  UpgradeNet(&model, uri);
  return model;
}

void WriteState(const SolverState& state, const std::string& uri) { Write(state, uri); }

SolverState ReadState(const std::string& uri) {
  RefuseHdf5(uri);
  SolverState state;
  const std::string bytes = storage::ReadFile(uri);
  try {
    ParseWire(bytes, uri, &state);
    Require(state.has_iter(), ErrorCode::kDataLoss, "it has no iteration");
  } catch (const Error& error) {
    // The two files of a snapshot are easily mixed up.
    throw Error(error.code(),
                fmt::format("{} is not a solver state that can be read (a .caffemodel "
                            "is none)",
                            uri),
                error);
  }
  return state;
}

}  // namespace hearth::caffe
