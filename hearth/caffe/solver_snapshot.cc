// The part of Solver that writes snapshots and goes on from them.
#include <cstring>
#include <filesystem>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/blob_proto.h"
#include "hearth/caffe/snapshot.h"
#include "hearth/caffe/solver.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;

// Caffe's rule: the solver's file without its extension, inside snapshot_prefix where that is a
// folder.
std::string PrefixOf(const SolverParameter& param, const std::string& solver_file) {
  const fs::path file(solver_file);
  if (!param.has_snapshot_prefix()) return (file.parent_path() / file.stem()).string();
  const std::string prefix = param.snapshot_prefix();
  if (!storage::Scheme(prefix).empty() || !fs::is_directory(prefix)) return prefix;
  return (fs::path(prefix) / file.stem()).string();
}

// The model that a state names: as written, or beside the state when both were moved together.
std::string FindModel(const std::string& named, const std::string& state_uri) {
  Require(!named.empty(), ErrorCode::kInvalidArgument,
          "{} names no model; give the model with -weights", state_uri);
  if (fs::exists(storage::LocalPath(named))) return named;
  const fs::path state = storage::LocalPath(state_uri);
  const fs::path beside = state.parent_path() / fs::path(storage::LocalPath(named)).filename();
  Require(fs::exists(beside), ErrorCode::kNotFound,
          "the model {} of the solver state {} is neither there nor beside the state; give it with "
          "-weights",
          named, state_uri);
  return beside.string();
}

}  // namespace

void Solver::CheckSnapshotPrefix() const {
  if (!options_.is_root || param_.snapshot() == 0) return;
  // Hours of training must not end at a folder that cannot be written.
  storage::AtomicFile probe(PrefixOf(param_, options_.solver_file) + ".probe");
}

std::pair<std::string, std::string> Solver::Snapshot() {
  Require(param_.snapshot_format() == SolverParameter::BINARYPROTO, ErrorCode::kUnimplemented,
          "snapshot_format: HDF5 is not supported yet; use BINARYPROTO");
  const std::string prefix = PrefixOf(param_, options_.solver_file);
  Require(!prefix.empty(), ErrorCode::kInvalidArgument,
          "the solver has no snapshot_prefix; set it, or snapshot_after_train: false");
  const std::string model = SnapshotName(prefix, iteration_, "caffemodel");
  const std::string state = SnapshotName(prefix, iteration_, "solverstate");
  log::Info("Snapshotting to binary proto file {}", model);
  WriteModel(net_->ToProto(param_.snapshot_diff()), model);
  // Second, so that a state always has its model.
  log::Info("Snapshotting solver state to binary proto file {}", state);
  WriteState(MakeState(model), state);
  if (options_.on_snapshot) options_.on_snapshot(model, state);
  return {model, state};
}

void Solver::SnapshotIfDue() {
  const bool due = param_.snapshot() > 0 && iteration_ % param_.snapshot() == 0;
  const bool requested = snapshot_requested_.exchange(false);
  if (options_.is_root && (due || requested)) Snapshot();
}

SolverState Solver::MakeState(const std::string& model) const {
  SolverState state;
  state.set_iter(iteration_);
  state.set_learned_net(model);
  state.set_current_step(learning_rate_.current_step());
  state.set_random_state(random_->SaveState());
  state.set_epoch(epoch_);
  state.set_fetches(fetches_);
  state.mutable_smoothed_loss()->assign(losses_.begin(), losses_.end());
  const NetParams& params = net_->params();
  for (const at::Tensor& group : history_) {
    for (size_t i = 0; i < params.learnable().size(); ++i) {
      const ParamLayout::Slice slice = params.layout().slices[i];
      const float* values = group.data_ptr<float>() + slice.offset;
      BlobProto* blob = state.add_history();
      *blob->mutable_shape()->mutable_dim() = params.learnable()[i].blob->shape();
      blob->mutable_data()->assign(values, values + slice.count);
    }
  }
  return state;
}

void Solver::LoadWeights(const std::string& uris) {
  for (size_t begin = 0; begin <= uris.size();) {
    const size_t end = std::min(uris.find(',', begin), uris.size());
    const std::string uri = uris.substr(begin, end - begin);
    if (options_.is_root) log::Info("Finetuning from {}", uri);
    net_->CopyTrainedLayersFrom(ReadModel(uri));
    begin = end + 1;
  }
}

void Solver::Restore(const std::string& state_uri, const std::string& model) {
  if (options_.is_root) log::Info("Restoring previous solver status from {}", state_uri);
  const SolverState state = ReadState(state_uri);
  RestoreHistory(state, state_uri);
  net_->CopyTrainedLayersFrom(
      ReadModel(model.empty() ? FindModel(state.learned_net(), state_uri) : model));
  iteration_ = state.iter();
  learning_rate_.set_current_step(state.current_step());
  losses_.assign(state.smoothed_loss().begin(), state.smoothed_loss().end());
  SkipToFeedPosition(state.epoch(), state.fetches());
  if (state.has_random_state()) random_->LoadState(state.random_state());
}

void Solver::RestoreHistory(const SolverState& state, const std::string& uri) {
  const NetParams& params = net_->params();
  const size_t count = params.learnable().size();
  Require(state.history().size() == count * history_.size(), ErrorCode::kInvalidArgument,
          "{} holds {} history blobs, solver type {} on this net needs {}; is it of another net or "
          "solver type?",
          uri, state.history().size(), param_.type(), count * history_.size());
  for (size_t i = 0; i < state.history().size(); ++i) {
    const BlobProto& blob = state.history()[i];
    const ParamLayout::Slice slice = params.layout().slices[i % count];
    const Blob& param = *params.learnable()[i % count].blob;
    Require(HasShapeOf(param, blob), ErrorCode::kInvalidArgument,
            "{}: history blob {} has shape {}, the parameter has {}", uri, i, ShapeString(blob),
            param.ShapeString());
    Blob history(param.shape());
    history.BindData(history_[i / count].narrow(0, slice.offset, slice.count));
    ReadBlobData(blob, &history);
  }
}

// Draws the rows of an unbroken run again, so that the next minibatch is the one it would have had.
void Solver::SkipToFeedPosition(int64_t epoch, int64_t fetches) {
  for (; epoch_ < epoch; ++epoch_) net_->NextEpoch();
  for (fetches_ = 0; fetches_ < fetches; ++fetches_) {
    if (!net_->Fetch()) break;  // no layer is fed: the caller places the data
  }
  fetches_ = fetches;
}

}  // namespace hearth::caffe
