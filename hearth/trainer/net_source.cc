#include "hearth/trainer/net_source.h"

#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/caffe/solver/solver_nets.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"

namespace hearth::trainer {
namespace {

namespace fs = std::filesystem;

// CaffeOnSpark puts snapshots beside the model; a prefix that is an absolute path stays.
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
                fmt::format("-model {}: the folder of {} cannot be made", job.model, prefix),
                error);
  }
  return prefix;
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
    *solver.mutable_net_param() = caffe::ParseNet(job.net.text, job.net.path);
  }
  SetState(job, solver.mutable_train_state());
  if (!job.validate && !job.local) {
    solver.clear_test_iter();
    solver.set_test_interval(0);
  }
  if (!job.local) solver.set_test_initialization(false);
  // As in the caffe program, weights given from outside replace the solver's own.
  if (!job.weights.empty() || !job.snapshot.empty()) solver.clear_weights();
  if (!job.model.empty()) solver.set_snapshot_prefix(SnapshotPrefix(job, solver));
  return solver;
}

caffe::NetParameter TestNetOf(const Job& job) {
  if (!job.solver.text.empty()) return caffe::TestNetsOf(SolverOf(job)).at(0);
  caffe::NetParameter net = caffe::ParseNet(job.net.text, job.net.path);
  net.mutable_state()->set_phase(caffe::TEST);
  SetState(job, net.mutable_state());
  return net;
}

std::function<std::shared_ptr<feed::MinibatchSource>(const caffe::LayerParameter&)> OpenOnce(
    std::shared_ptr<feed::MinibatchSource> source, std::string stream_name) {
  auto user = std::make_shared<std::string>();
  return [source = std::move(source), stream = std::move(stream_name),
          user](const caffe::LayerParameter& layer) {
    Require(source != nullptr, ErrorCode::kInvalidArgument,
            "layer \"{}\" ({}) is fed by rows, but the job has no \"{}\" stream", layer.name(),
            layer.type(), stream);
    Require(
        user->empty(), ErrorCode::kInvalidArgument,
        "layers \"{}\" and \"{}\" are both fed by rows; a net can have one such layer per phase",
        *user, layer.name());
    *user = layer.name();
    return source;
  };
}

}  // namespace hearth::trainer
