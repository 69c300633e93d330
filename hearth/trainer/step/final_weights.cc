#include "hearth/trainer/step/final_weights.h"

#include <cstdint>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/sha256.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/trainer/job/step_timeout.h"

namespace hearth::trainer {

std::string CheckEqualWeights(collective::Group& group, caffe::Solver& solver) {
  const caffe::Tensor& data = solver.net().params().data();
  const std::string_view bytes(reinterpret_cast<const char*>(data.data_ptr()),
                               static_cast<size_t>(data.nbytes()));
  const std::string sha256 = Sha256Hex(bytes);
  // Uses 60 bits, so that the number is not negative. The smallest hash has the largest complement,
  // so one kMax operation finds both the largest and the smallest hash.
  const auto hash = static_cast<int64_t>(std::stoull(sha256.substr(0, 15), nullptr, 16));
  // All ranks get their own values back only if all hashes are equal.
  int64_t largest[] = {hash, ~hash};
  group.AllReduce(largest, 2, collective::DataType::kInt64, collective::Op::kMax,
                  Deadline::After(kStepTimeoutSeconds));
  Require(largest[0] == hash && largest[1] == ~hash, ErrorCode::kInternal,
          "after iteration {} rank {}'s weights differ from those of other ranks",
          solver.iteration(), group.rank());
  return sha256;
}

std::string WriteFinalModel(const std::string& uri, caffe::Solver& solver) {
  constexpr std::string_view kEnding = ".h5";
  const bool hdf5 = solver.param().snapshot_format() == caffe::SolverParameter::HDF5;
  std::string model = uri;
  // The extension must match the format, because readers and writers choose the format by the
  // extension.
  if (model.ends_with(kEnding)) model.resize(uri.size() - kEnding.size());
  if (hdf5) model += kEnding;
  caffe::MakeFolderOf(model);
  caffe::WriteModel(solver.net().ToProto(), model);
  log::Info("Model written to {}", model);
  return model;
}

}  // namespace hearth::trainer
