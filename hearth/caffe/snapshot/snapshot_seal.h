// The seal of a snapshot, <prefix>_iter_<N>.hearth.json: written last, with checksums of Caffe's
// two files and the state that these cannot hold. docs/format_snapshot.md lists its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::caffe {

// Rows of all ranks that were read from the feed, including invalid ones.
struct RowCounts {
  int64_t rows = 0, bad = 0;  // in this epoch
  int64_t whole_epoch = 0;    // rows of a complete epoch; 0: none has ended yet
  int64_t all_bad = 0;        // in the run so far, including validations
};

// Rows that a rank has read, and the rolling hash of their content.
struct SealedRows {
  int64_t count = 0;
  uint64_t hash = 0;
  bool operator==(const SealedRows&) const = default;
};

// The position of a run after an iteration, without weights and history. Random streams have no
// saved state: they follow from seed, rank and iteration.
struct TrainingPosition {
  std::string run;  // distinguishes runs with the same prefix
  int iteration = 0;
  int current_step = 0;  // of a multistep learning rate
  uint64_t seed = 0;
  int ranks = 1;
  int64_t epoch = 0, fetches = 0;  // of the feed; -1: unknown, in snapshots written by Caffe
  std::vector<float> losses;       // that the displayed average covers
  // For each rank, the number and hash of the rows it had read: of the first rows of its stream, or
  // of all of them after the first epoch. Empty: unknown.
  std::vector<SealedRows> rows;
  int row_hash = 0;                 // version of the hash: batch::kRowHashVersion or older
  int64_t batch_size = 0;           // rows per fetch; 0: unknown
  std::string notes;                // state that the trainer needs to resume
  std::string datasets;             // versions of the datasets; empty: unknown
  std::optional<RowCounts> counts;  // absent in older seals
  std::string seal;                 // the file that it was read from; not written

  bool has_feed_position() const { return epoch >= 0; }
};

// Caffe's files of a snapshot, and the position in their seal; empty if they have none.
struct SnapshotFiles {
  std::string model, state;
  std::optional<TrainingPosition> position = {};
};

// As JSON text, for other ranks; includes `seal`. PositionFromText throws kDataLoss.
std::string PositionToText(const TrainingPosition& position);
TrainingPosition PositionFromText(const std::string& text);

// Writes the seal of completely written files.
void SealSnapshot(const TrainingPosition& position, const SnapshotFiles& files);

// Checks the files against the seal beside the state, if there is one, and sets the position. If
// `model` is empty, sets the sealed one. Throws kDataLoss with the file and the reason, also for an
// impossible field.
SnapshotFiles CheckSnapshot(SnapshotFiles files);

// The newest intact snapshot "<prefix>_iter_<N>" of that run with N < `below`. Logs a line for each
// damaged one that it skips.
std::optional<SnapshotFiles> FindSnapshot(const std::string& prefix, const std::string& run,
                                          int64_t below = INT64_MAX);

// The snapshot itself if it is intact or was never sealed, else the previous one of the same run,
// with a log line. Only an intact seal names the run.
SnapshotFiles WholeSnapshot(const SnapshotFiles& files);

}  // namespace hearth::caffe
