// The part of Solver that writes snapshots and resumes from them.
#include <algorithm>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/batch/row_hash.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/caffe/snapshot/trained_weights.h"
#include "hearth/caffe/solver/solver.h"
#include "hearth/storage/file.h"
#include "hearth/storage/uri.h"

namespace hearth::caffe {
namespace {

// Finds the model that a .solverstate names, at the recorded path or else in the state's folder.
std::string FindModel(const std::string& named, const std::string& state_uri) {
  Require(!named.empty(), ErrorCode::kInvalidArgument,
          "{} has no learned_net; give the model with -weights", state_uri);
  if (storage::Exists(named)) return named;
  const std::string beside = storage::Join(storage::FolderOf(state_uri), storage::NameOf(named));
  Require(storage::Exists(beside), ErrorCode::kNotFound,
          "the model {} of the solver state {} exists neither at its path nor beside the state; "
          "give it with -weights",
          named, state_uri);
  return beside;
}

}  // namespace

std::pair<std::string, std::string> Solver::Snapshot() {
  const auto make_state = [this] {
    SolverState state;
    state.set_iter(iteration_);
    state.set_current_step(learning_rate_.current_step());
    update_.WriteHistory(&state);
    return state;
  };
  const SnapshotFiles files = snapshots_.Write(*net_, make_state, Position());
  options_.observer->OnSnapshot(files.model, files.state);
  return {files.model, files.state};
}

void Solver::SnapshotIfDue() {
  const bool due = param_.snapshot() > 0 && iteration_ % param_.snapshot() == 0;
  const bool requested = snapshot_requested_.exchange(false);
  if (!due && !requested) return;
  try {
    SnapshotOnRoot();
  } catch (const Error& error) {
    // Training continues, because the disk may have space again at the next snapshot, and the
    // previous snapshot still exists.
    if (error.code() != ErrorCode::kResourceExhausted) throw;
    log::Warning("No snapshot after iteration {}, training continues without it: {}", iteration_,
                 error.message());
  }
}

// Called on every solver, because the root writes how many rows each of them has read.
void Solver::SnapshotOnRoot() {
  rows_ = options_.observer->GatherRows(feed_.epoch());
  if (options_.is_root) Snapshot();
}

TrainingPosition Solver::Position() const {
  TrainingPosition position;
  position.run = options_.run;
  position.iteration = iteration_;
  position.current_step = learning_rate_.current_step();
  position.seed = seed_;
  position.ranks = options_.ranks;
  position.epoch = feed_.epoch();
  position.fetches = feed_.fetches();
  position.losses.assign(display_.losses().begin(), display_.losses().end());
  position.rows = rows_;
  position.row_hash = batch::kRowHashVersion;
  position.batch_size = net_->batch_size();
  options_.observer->CompletePosition(&position);
  return position;
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
  // Reads the history first, because it is checked against the net: the state of another net then
  // fails before any weight has changed.
  update_.ReadHistory(state, files.state);
  net_->CopyTrainedLayersFrom(ReadModel(files.model));
  if (files.position) return *files.position;
  log::Info("{} has no seal (Caffe writes none): the feed starts at the beginning of an epoch",
            files.state);
  TrainingPosition position = Position();
  position.iteration = state.iter();
  position.current_step = state.current_step();
  // Epoch and fetches are unknown (-1), because Caffe's state does not contain the feed's position.
  position.epoch = position.fetches = -1;
  position.counts.reset();
  return position;
}

Skipped Solver::ResumeAt(const TrainingPosition& position) {
  iteration_ = position.iteration;
  learning_rate_.set_current_step(position.current_step);
  display_.set_losses({position.losses.begin(), position.losses.end()});
  if (!position.has_feed_position()) return {};
  // Spooled rows are read in stored order in the first epoch, and in a random order from the seed
  // in later epochs.
  const bool as_stored = position.epoch == 0 && !options_.shuffles_first_epoch;
  const bool same_order = position.seed == seed_ || as_stored;
  if (options_.is_root && position.seed != seed_) {
    log::Warning(
        "The snapshot was made with seed {}, but this run has {}: rows and random numbers come in "
        "another order{}",
        position.seed, seed_, same_order ? "" : ", and its epoch begins again");
  }
  const bool same_ranks = position.ranks == options_.ranks;
  if (options_.is_root && !same_ranks) {
    log::Warning("The snapshot was made by {} ranks, but this run has {}: its epoch begins again",
                 position.ranks, options_.ranks);
  }
  if (param_.max_iter() > 0 && iteration_ > param_.max_iter()) {
    log::Info("Iteration {} is past max_iter {}: the feed stays at its beginning", iteration_,
              param_.max_iter());
    return {};
  }
  // `most` bounds the number of minibatches read so far: iter_size per iteration.
  const int64_t most = int64_t{iteration_} * param_.iter_size();
  return feed_.SkipTo(position.epoch, same_ranks && same_order ? position.fetches : 0, most);
}

void Solver::WarnIfShort(const TrainingPosition& position, int64_t minibatches) const {
  const bool went_there = position.has_feed_position() && position.ranks == options_.ranks &&
                          position.epoch == feed_.epoch() && position.fetches == feed_.fetches();
  // In the last iteration before the position, only some passes may have had rows, so fewer than
  // iter_size minibatches may be missing.
  if (!options_.is_root || !went_there) return;
  if (position.fetches - minibatches < param_.iter_size()) return;
  log::Warning(
      "{}: field \"fetches\" is {}, but the epoch has rows for {} minibatches, so the next epoch "
      "begins; resume with the same rows, batch_size and iter_size",
      position.seal, position.fetches, minibatches);
}

}  // namespace hearth::caffe
