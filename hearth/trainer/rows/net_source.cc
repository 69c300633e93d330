#include "hearth/trainer/rows/net_source.h"

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/caffe/solver/solver_nets.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"

namespace hearth::trainer {
namespace {

namespace fs = std::filesystem;

// As in CaffeOnSpark, snapshots are written to the model's folder, unless the prefix is an absolute
// path.
std::string SnapshotPrefix(const Job& job, const caffe::SolverParameter& solver) {
  const std::string model = storage::IsLocal(job.model)
                                ? fs::absolute(storage::LocalPath(job.model)).string()
                                : job.model;
  std::string prefix = solver.snapshot_prefix();
  if (prefix.empty()) prefix = fs::path(storage::NameOf(job.solver.path)).stem();
  const bool is_whole = prefix.starts_with('/') || !storage::Scheme(prefix).empty();
  if (!is_whole) prefix = storage::Join(storage::FolderOf(model), prefix);
  const std::string folder = storage::FolderOf(prefix);
  try {
    storage::For(folder).MakeFolders(folder);
  } catch (const Error& error) {
    throw Error(error.code() == ErrorCode::kInternal ? ErrorCode::kInvalidArgument : error.code(),
                fmt::format("-model {}: cannot create the folder of {}", job.model, prefix), error);
  }
  return prefix;
}

// If a mean file is not in the working directory, looks it up in the folder of the net's file, as
// for a layer's `source`.
void FindMeanFile(const std::string& folder, caffe::TransformationParameter* transform) {
  const std::string& mean = transform->mean_file();
  if (mean.empty() || mean.starts_with('/') || !storage::Scheme(mean).empty()) return;
  if (fs::exists(mean)) return;
  const std::string beside = storage::Join(folder, mean);
  if (fs::exists(beside)) transform->set_mean_file(beside);
}

caffe::NetParameter NetOf(const PrototxtFile& file) {
  caffe::NetParameter net = caffe::ParseNet(file.text, file.path);
  const std::string folder = storage::FolderOf(file.path);
  for (caffe::LayerParameter& layer : *net.mutable_layer()) {
    if (layer.has_transform_param()) FindMeanFile(folder, layer.mutable_transform_param());
    if (!layer.has_cos_data_param()) continue;
    for (caffe::CoSDataParameter::TopBlob& top : *layer.mutable_cos_data_param()->mutable_top()) {
      if (top.has_transform_param()) FindMeanFile(folder, top.mutable_transform_param());
    }
  }
  return net;
}

void SetState(const Job& job, caffe::NetState* state) {
  if (job.level != 0) state->set_level(job.level);
  for (const std::string& stage : job.stages) state->add_stage(stage);
}

}  // namespace

caffe::SolverParameter SolverOf(const Job& job) {
  caffe::SolverParameter solver = caffe::ParseSolver(job.solver.text, job.solver.path);
  if (!job.net.text.empty()) {
    solver.clear_net();
    *solver.mutable_net_param() = NetOf(job.net);
  }
  SetState(job, solver.mutable_train_state());
  // Without validation rows, the solver has nothing to test on.
  if (!job.validate && !job.local) {
    solver.clear_test_iter();
    solver.set_test_interval(0);
  }
  if (!job.local) solver.set_test_initialization(false);
  // As in the caffe program, weights from the command line replace the solver's weights.
  if (!job.weights.empty() || !job.snapshot.empty()) solver.clear_weights();
  if (!job.model.empty()) solver.set_snapshot_prefix(SnapshotPrefix(job, solver));
  return solver;
}

caffe::NetParameter TestNetOf(const Job& job) {
  if (!job.solver.text.empty()) return caffe::TestNetsOf(SolverOf(job)).at(0);
  caffe::NetParameter net = NetOf(job.net);
  net.mutable_state()->set_phase(caffe::TEST);
  SetState(job, net.mutable_state());
  return net;
}

const dataset::Minibatch& LastRows(const caffe::Net& net) {
  for (const caffe::NetLayer& layer : net.layers()) {
    if (const dataset::Minibatch* rows = layer.layer->fetched_rows()) return *rows;
  }
  static const dataset::Minibatch kNone;
  return kNone;
}

std::function<std::shared_ptr<dataset::MinibatchSource>(const caffe::LayerParameter&)> OpenOnce(
    std::shared_ptr<dataset::MinibatchSource> source, std::string stream_name) {
  auto user = std::make_shared<std::string>();
  return [source = std::move(source), stream = std::move(stream_name),
          user](const caffe::LayerParameter& layer) {
    Require(source != nullptr, ErrorCode::kInvalidArgument,
            "layer \"{}\" ({}) reads rows, but the job has no \"{}\" stream", layer.name(),
            layer.type(), stream);
    Require(user->empty(), ErrorCode::kInvalidArgument,
            "layers \"{}\" and \"{}\" both read rows; a net can have only one such layer per phase",
            *user, layer.name());
    *user = layer.name();
    return source;
  };
}

}  // namespace hearth::trainer
