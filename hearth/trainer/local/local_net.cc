#include "hearth/trainer/local/local_net.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/snapshot/trained_weights.h"
#include "hearth/caffe/tensor/parallel.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/dataset/spool/spool_source.h"
#include "hearth/trainer/rows/net_source.h"
#include "hearth/trainer/step/compute_devices.h"

namespace hearth::trainer {
namespace {

std::shared_ptr<dataset::MinibatchSource> OpenRows(const caffe::NetParameter& net,
                                                   LocalRows* rows) {
  auto end = rows->Open(net);
  if (!end) return nullptr;
  dataset::SpoolOptions spool;
  spool.directory = TemporaryFolder();
  return std::make_shared<dataset::SpoolSource>(
      std::make_shared<dataset::Spool>(std::move(*end), spool), dataset::ReplayOptions{false, 0});
}

}  // namespace

int ComputeThreads(const LocalOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::string TemporaryFolder() {
  const char* folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

LocalNet::LocalNet(const LocalOptions& options, caffe::Phase phase, bool runs_backward)
    : invalid_rows_({}, [](const nlohmann::json&) {}) {
  caffe::NetParameter param = caffe::ReadNet(options.model);
  param.mutable_state()->set_phase(phase);
  if (options.level != 0) param.mutable_state()->set_level(options.level);
  for (const std::string& stage : options.stages) param.mutable_state()->add_stage(stage);

  caffe::SetThreadCount(ComputeThreads(options));
  caffe::NetContext context;
  context.phase = phase;
  context.device = FindDevice(options.gpu);
  if (options.settings.algorithms == "fastest") caffe::UseFastestAlgorithms();
  log::Info("Use {}.", NameOf(context.device));
  context.precision = caffe::ParsePrecision(options.settings.precision);
  context.share_diffs = runs_backward;
  context.share_data = !runs_backward;
  context.random = std::make_shared<caffe::Random>(0);
  context.open_source = OpenOnce(OpenRows(param, &rows_), phase == caffe::TEST ? "test" : "train");
  context.on_invalid_row = [this](const std::string& id, const std::string& reason) {
    invalid_rows_.Report(id, reason);
  };
  net_ = std::make_unique<caffe::Net>(param, context);
  for (const std::string& path : options.weights) {
    caffe::LoadTrainedWeights(path, net_.get());
  }
}

// If Fetch returns no rows, the epoch has ended; if it does so twice in a row, the source is empty.
// A net that is not fed by rows counts as one row per batch.
int64_t LocalNet::Fetch() {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto rows = net_->Fetch();
    if (!rows) return 1;
    if (*rows > 0) return *rows;
    net_->NextEpoch();
  }
  Throw(ErrorCode::kInvalidArgument, "the source of net '{}' has no rows", net_->name());
}

}  // namespace hearth::trainer
