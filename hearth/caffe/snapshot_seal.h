// The third file of a snapshot, <prefix>_iter_<N>.hearth.json: written last, it holds the checksums
// of Caffe's two files and what these have no place for. docs/format_snapshot.md has its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::caffe {

// Where a run stood after an iteration, weights and history apart. Random streams need no state of
// their own: they follow from seed, rank and iteration.
struct TrainingPosition {
  std::string run;  // tells the snapshots of one run from those of others under the same prefix
  int iteration = 0;
  int current_step = 0;  // of a multistep learning rate
  uint64_t seed = 0;
  int ranks = 1;
  int64_t epoch = 0, fetches = 0;  // of the feed; -1: not known, Caffe wrote the snapshot
  std::vector<float> losses;       // behind the displayed average
  std::string notes;               // what who trains wants to know when it goes on

  bool has_feed_position() const { return epoch >= 0; }
};

// Caffe's files of a snapshot, and what their seal says; nothing where they have none.
struct SnapshotFiles {
  std::string model, state;
  std::optional<TrainingPosition> position = {};
};

// As JSON text, to file and to other ranks. PositionFromText throws kDataLoss.
std::string PositionToText(const TrainingPosition& position);
TrainingPosition PositionFromText(const std::string& text);

// Writes the seal of files that are complete.
void SealSnapshot(const TrainingPosition& position, const SnapshotFiles& files);

// Checks the files against the seal beside the state, if there is one, and sets the position. An
// empty `model` stands for the sealed one. Throws kDataLoss, naming the file and what is wrong.
SnapshotFiles CheckSnapshot(SnapshotFiles files);

// The newest whole snapshot "<prefix>_iter_<N>" with N < `below`, of `run` (empty: of any). Logs a
// line for each that is damaged and passed over.
std::optional<SnapshotFiles> FindSnapshot(const std::string& prefix, const std::string& run,
                                          int64_t below = INT64_MAX);

// The snapshot itself if it is whole or was never sealed, else the one before it; one line tells.
SnapshotFiles WholeSnapshot(const SnapshotFiles& files);

}  // namespace hearth::caffe
