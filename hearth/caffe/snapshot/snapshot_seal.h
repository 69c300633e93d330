// The third file of a snapshot, <prefix>_iter_<N>.hearth.json: written last, it holds the checksums
// of Caffe's two files and what these have no place for. docs/format_snapshot.md has its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::caffe {

// Rows of all ranks that were drawn from the feed, unusable ones among them.
struct RowCounts {
  int64_t rows = 0, bad = 0;  // in this epoch
  int64_t whole_epoch = 0;    // rows of a whole epoch; 0: none has ended yet
  int64_t all_bad = 0;        // in the run so far, those of validations too
};

// Rows that a rank has read, and the rolling hash of their content.
struct SealedRows {
  int64_t count = 0;
  uint64_t hash = 0;
  bool operator==(const SealedRows&) const = default;
};

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
  // For each rank, the first `count` rows of its stream, which it had taken; all of them if it was
  // past the first epoch. Empty: not known.
  std::vector<SealedRows> rows;
  int row_hash = 0;                 // the version of their hash: batch::kRowHashVersion or older
  int64_t batch_size = 0;           // rows that a fetch asks for; 0: not known
  std::string notes;                // what the trainer needs when it resumes
  std::string datasets;             // which versions of which rows; empty: not known
  std::optional<RowCounts> counts;  // nothing in older seals
  std::string seal;                 // the file that it was read from; not part of it

  bool has_feed_position() const { return epoch >= 0; }
};

// Caffe's files of a snapshot, and what their seal says; nothing where they have none.
struct SnapshotFiles {
  std::string model, state;
  std::optional<TrainingPosition> position = {};
};

// As JSON text, to other ranks; `seal` travels too. PositionFromText throws kDataLoss.
std::string PositionToText(const TrainingPosition& position);
TrainingPosition PositionFromText(const std::string& text);

// Writes the seal of files that are complete.
void SealSnapshot(const TrainingPosition& position, const SnapshotFiles& files);

// Checks the files against the seal beside the state, if there is one, and sets the position. An
// empty `model` stands for the sealed one. Throws kDataLoss, naming the file and what is wrong,
// also for an impossible field.
SnapshotFiles CheckSnapshot(SnapshotFiles files);

// The newest whole snapshot "<prefix>_iter_<N>" with N < `below` of that run. Logs a line for each
// that is damaged and passed over.
std::optional<SnapshotFiles> FindSnapshot(const std::string& prefix, const std::string& run,
                                          int64_t below = INT64_MAX);

// The snapshot itself if it is whole or was never sealed, else the one before it of the same run; a
// log line says so. Only a whole seal names the run.
SnapshotFiles WholeSnapshot(const SnapshotFiles& files);

}  // namespace hearth::caffe
