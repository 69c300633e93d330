// The part of Solver that writes snapshots and resumes from them.
#include <cstring>
#include <filesystem>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/batch/row_hash.h"
#include "hearth/caffe/net/blob_proto.h"
#include "hearth/caffe/net/device_ops.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/caffe/snapshot/trained_weights.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;

// Caffe's rule: the solver's file without its extension, inside snapshot_prefix if that is a
// folder.
std::string PrefixOf(const SolverParameter& param, const std::string& solver_file) {
  const std::string name = fs::path(storage::NameOf(solver_file)).stem();
  if (!param.has_snapshot_prefix()) return storage::Join(storage::FolderOf(solver_file), name);
  const std::string& prefix = param.snapshot_prefix();
  const auto there = prefix.empty() ? std::nullopt : storage::For(prefix).Stat(prefix);
  return there && there->is_folder ? storage::Join(prefix, name) : prefix;
}

// The model of a state: at its recorded path, or beside the state if both were moved together.
std::string FindModel(const std::string& named, const std::string& state_uri) {
  Require(!named.empty(), ErrorCode::kInvalidArgument,
          "{} has no learned_net; give the model with -weights", state_uri);
  if (storage::Exists(named)) return named;
  const std::string beside = storage::Join(storage::FolderOf(state_uri), storage::NameOf(named));
  Require(storage::Exists(beside), ErrorCode::kNotFound,
          "the model {} of the solver state {} exists neither at its path nor beside the state; "
          "give it with "
          "-weights",
          named, state_uri);
  return beside;
}

}  // namespace

void Solver::CheckSnapshotPrefix() const {
  if (!options_.is_root || param_.snapshot() == 0) return;
  // An unwritable folder must not be found only after hours of training.
  try {
    storage::AtomicFile probe(snapshot_prefix() + ".probe");
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("cannot write snapshots to {}_iter_*; create the folder, or set "
                            "another snapshot_prefix",
                            snapshot_prefix()),
                error);
  }
}

std::string Solver::snapshot_prefix() const { return PrefixOf(param_, options_.solver_file); }

std::pair<std::string, std::string> Solver::Snapshot() {
  const std::string prefix = snapshot_prefix();
  Require(!prefix.empty(), ErrorCode::kInvalidArgument,
          "the solver has no snapshot_prefix; set it, or snapshot_after_train: false");
  const bool hdf5 = param_.snapshot_format() == SolverParameter::HDF5;
  const char* const format = hdf5 ? "HDF5" : "binary proto";
  const std::string ending = hdf5 ? ".h5" : "";
  const std::string model = SnapshotName(prefix, iteration_, "caffemodel" + ending);
  const std::string state = SnapshotName(prefix, iteration_, "solverstate" + ending);
  std::vector<std::string> written;
  try {
    log::Info("Snapshotting to {} file {}", format, model);
    MakeFolderOf(model);
    WriteModel(net_->ToProto(param_.snapshot_diff()), model);
    written.push_back(model);
    // Written second, so that a state always has its model; the seal last.
    log::Info("Snapshotting solver state to {} file {}", format, state);
    WriteState(MakeState(model), state);
    written.push_back(state);
    SealSnapshot(Position(), {model, state});
  } catch (...) {
    // A partial snapshot is useless, and a full disk needs its space.
    for (const std::string& file : written) storage::RemoveQuietly(file);
    throw;
  }
  if (options_.on_snapshot) options_.on_snapshot(model, state);
  return {model, state};
}

void Solver::SnapshotIfDue() {
  const bool due = param_.snapshot() > 0 && iteration_ % param_.snapshot() == 0;
  const bool requested = snapshot_requested_.exchange(false);
  if (!due && !requested) return;
  try {
    SnapshotOnRoot();
  } catch (const Error& error) {
    // The disk may no longer be full at the next snapshot; the previous one still exists.
    if (error.code() != ErrorCode::kResourceExhausted) throw;
    log::Warning("No snapshot after iteration {}, training continues without it: {}", iteration_,
                 error.message());
  }
}

// Every solver participates: the root writes what all of them have read.
void Solver::SnapshotOnRoot() {
  if (options_.gather_rows) rows_ = options_.gather_rows(epoch_);
  if (options_.is_root) Snapshot();
}

TrainingPosition Solver::Position() const {
  TrainingPosition position;
  position.run = options_.run;
  position.iteration = iteration_;
  position.current_step = learning_rate_.current_step();
  position.seed = seed_;
  position.ranks = options_.ranks;
  position.epoch = epoch_;
  position.fetches = fetches_;
  position.losses.assign(losses_.begin(), losses_.end());
  position.rows = rows_;
  position.row_hash = batch::kRowHashVersion;
  position.batch_size = net_->batch_size();
  if (options_.complete_position) options_.complete_position(&position);
  return position;
}

SolverState Solver::MakeState(const std::string& model) {
  SolverState state;
  state.set_iter(iteration_);
  state.set_learned_net(model);
  state.set_current_step(learning_rate_.current_step());
  const NetParams& params = net_->params();
  for (const Tensor& group : history()) {
    for (size_t i = 0; i < params.learnable().size(); ++i) {
      const ParamLayout::Slice slice = params.layout().slices[i];
      const float* values = group.data_ptr() + slice.offset;
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
    LoadTrainedWeights(uri, net_.get());
    begin = end + 1;
  }
}

void Solver::Restore(const std::string& state, const std::string& model) {
  const TrainingPosition position = LoadSnapshot(state, model);
  WarnIfShort(position, ResumeAt(position).minibatches);
}

TrainingPosition Solver::LoadSnapshot(const std::string& state_uri, const std::string& model) {
  SnapshotFiles files = WholeSnapshot({model, state_uri});
  if (options_.is_root) log::Info("Restoring previous solver status from {}", files.state);
  const SolverState state = ReadState(files.state);
  if (files.model.empty()) files.model = FindModel(state.learned_net(), files.state);
  RestoreHistory(state, files.state);
  net_->CopyTrainedLayersFrom(ReadModel(files.model));
  if (files.position) return *files.position;
  log::Info("{} has no seal, as Caffe writes it: the feed begins an epoch", files.state);
  TrainingPosition position = Position();
  position.iteration = state.iter();
  position.current_step = state.current_step();
  position.epoch = position.fetches = -1;
  position.counts.reset();
  return position;
}

Skipped Solver::ResumeAt(const TrainingPosition& position) {
  iteration_ = position.iteration;
  learning_rate_.set_current_step(position.current_step);
  losses_.assign(position.losses.begin(), position.losses.end());
  if (!position.has_feed_position()) return {};
  // Spooled rows are read in stored order first, in later epochs in an order drawn from the seed.
  const bool as_stored = position.epoch == 0 && !options_.shuffles_first_epoch;
  const bool same_order = position.seed == seed_ || as_stored;
  if (options_.is_root && position.seed != seed_) {
    log::Warning(
        "The snapshot was made with seed {}, this run has {}: rows and random numbers "
        "have another order{}",
        position.seed, seed_, same_order ? "" : ", and its epoch begins again");
  }
  const bool same_ranks = position.ranks == options_.ranks;
  if (options_.is_root && !same_ranks) {
    log::Warning("The snapshot was made by {} ranks, this run has {}: its epoch begins again",
                 position.ranks, options_.ranks);
  }
  if (param_.max_iter() > 0 && iteration_ > param_.max_iter()) {
    log::Info("Iteration {} is past max_iter {}: the feed stays at its beginning", iteration_,
              param_.max_iter());
    return {};
  }
  return SkipToFeedPosition(position.epoch, same_ranks && same_order ? position.fetches : 0);
}

void Solver::RestoreHistory(const SolverState& state, const std::string& uri) {
  const NetParams& params = net_->params();
  const size_t count = params.learnable().size();
  Require(
      state.history().size() == count * history_.size(), ErrorCode::kInvalidArgument,
      "{} holds {} history blobs, solver type {} on this net needs {}; it may be of another net "
      "or solver type",
      uri, state.history().size(), param_.type(), count * history_.size());
  for (size_t i = 0; i < state.history().size(); ++i) {
    const BlobProto& blob = state.history()[i];
    const ParamLayout::Slice slice = params.layout().slices[i % count];
    const Blob& param = *params.learnable()[i % count].blob;
    Require(HasShapeOf(param, blob), ErrorCode::kInvalidArgument,
            "{}: history blob {} has shape {}, the parameter has {}", uri, i, ShapeString(blob),
            param.ShapeString());
    Blob history(param.shape());
    history.BindData(history_[i / count].data().narrow(0, slice.offset, slice.count));
    ReadBlobData(blob, &history);
  }
}

// Replays the rows of an uninterrupted run, so that the next minibatch is the one it would have
// had. A rank may run out of rows before the others; it then stops reading.
Skipped Solver::SkipToFeedPosition(int64_t epoch, int64_t fetches) {
  Skipped skipped;
  for (; epoch_ < epoch; ++epoch_) net_->NextEpoch();
  for (fetches_ = 0; fetches_ < fetches; ++fetches_) {
    const std::optional<int64_t> rows = net_->Fetch();
    // Files have no end, but no iteration took more minibatches than this.
    const bool over = rows ? *rows == 0 : fetches_ >= int64_t{iteration_} * param_.iter_size();
    if (over) break;
    skipped.rows += rows.value_or(0);
    ++skipped.minibatches;
  }
  fetches_ = fetches;
  return skipped;
}

void Solver::WarnIfShort(const TrainingPosition& position, int64_t minibatches) const {
  const bool went_there = position.has_feed_position() && position.ranks == options_.ranks &&
                          position.epoch == epoch_ && position.fetches == fetches_;
  // In the last iteration before the position some rank had rows, though not in all of its passes.
  if (!options_.is_root || !went_there) return;
  if (position.fetches - minibatches < param_.iter_size()) return;
  log::Warning(
      "{}: its field \"fetches\" is {}, but the epoch has rows for {} minibatches: are these "
      "different "
      "rows, or another batch_size or iter_size? The next epoch begins",
      position.seal, position.fetches, minibatches);
}

}  // namespace hearth::caffe
