// The seal of a snapshot, <prefix>_iter_<N>.hearth.json: written last, with checksums of Caffe's
// two files and with state for which these have no fields. docs/format_snapshot.md lists its
// fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::caffe {

// Numbers of rows that all ranks together have read from the feed. `bad` and `all_bad` count the
// invalid ones among them.
struct RowCounts {
  int64_t rows = 0, bad = 0;  // in this epoch
  int64_t whole_epoch = 0;    // rows of a complete epoch; 0 if no epoch has ended yet
  int64_t all_bad = 0;        // in the run so far, including validations
};

// The number of rows that a rank has read, and the rolling hash of their content, as in a seal.
struct SealedRows {
  int64_t count = 0;
  uint64_t hash = 0;
  bool operator==(const SealedRows&) const = default;
};

// The position of a run after an iteration, without weights and history. Random streams need no
// saved state, since they depend only on seed, rank and iteration.
struct TrainingPosition {
  std::string run;  // distinguishes runs with the same prefix
  int iteration = 0;
  int current_step = 0;  // step of a multistep learning rate
  uint64_t seed = 0;
  int ranks = 1;
  // Position in the feed, or -1 if unknown, as for snapshots written by Caffe.
  int64_t epoch = 0, fetches = 0;
  std::vector<float> losses;  // the losses in the displayed average
  // For each rank, the number and the hash of the rows that it has read. In the first epoch these
  // are the first rows of its stream, in later epochs all of its rows. Empty if unknown.
  std::vector<SealedRows> rows;
  int row_hash = 0;                 // version of the hash: batch::kRowHashVersion or older
  int64_t batch_size = 0;           // rows per fetch; 0 if unknown
  std::string notes;                // state that the trainer needs to resume
  std::string datasets;             // versions of the datasets; empty if unknown
  std::optional<RowCounts> counts;  // absent in older seals
  std::string seal;                 // the seal from which the position was read; not written

  bool has_feed_position() const { return epoch >= 0; }
};

// Caffe's two files of a snapshot, and the position in their seal, which is empty if there is no
// seal.
struct SnapshotFiles {
  std::string model, state;
  std::optional<TrainingPosition> position = {};
};

// Convert a position to and from JSON text, to send it to other ranks. The text includes `seal`.
// PositionFromText throws kDataLoss.
std::string PositionToText(const TrainingPosition& position);
TrainingPosition PositionFromText(const std::string& text);

// Writes the seal of `files`, which must be complete.
void SealSnapshot(const TrainingPosition& position, const SnapshotFiles& files);

// If there is a seal next to `state`, checks both files against it and sets the position. If
// `model` is empty, sets it to the model that the seal names. Throws kDataLoss with the file and
// the reason, also if a field has an impossible value.
SnapshotFiles CheckSnapshot(SnapshotFiles files);

// Returns the newest intact snapshot "<prefix>_iter_<N>" of `run` with N < `below`. Logs each
// damaged snapshot that it skips.
std::optional<SnapshotFiles> FindSnapshot(const std::string& prefix, const std::string& run,
                                          int64_t below = INT64_MAX);

// Returns the snapshot `files` if it is intact or was never sealed. Otherwise returns the newest
// intact snapshot of the same run before it, and logs this. Throws if there is none, or if the seal
// of `files` is damaged, because only an intact seal names the run.
SnapshotFiles WholeSnapshot(const SnapshotFiles& files);

}  // namespace hearth::caffe
