#include "hearth/trainer/rows/row_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/batch/row_hash.h"
#include "hearth/rendezvous/rank_name.h"
#include "hearth/trainer/job/step_timeout.h"

namespace hearth::trainer {

namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

std::string WhyNotCompared(const caffe::TrainingPosition& position) {
  const std::string what =
      position.row_hash == batch::kRowHashVersion
          ? fmt::format("has the row hashes of {} ranks instead of {}", position.rows.size(),
                        position.ranks)
          : fmt::format(
                "has row hashes of version {}, but this version of Hearth computes version {}",
                position.row_hash, batch::kRowHashVersion);
  return fmt::format(
      "this run's rows cannot be compared with those before the snapshot of iteration {}: {} {}",
      position.iteration, position.seal, what);
}

}  // namespace

// In the first epoch, the feeder may still be sending rows, so only the rows read so far can be
// compared.
std::vector<caffe::SealedRows> RowCheck::Gather(int64_t epoch, const dataset::Minibatch& last) {
  if (!rows_) return {};
  const auto world = static_cast<size_t>(group_.world()), rank = static_cast<size_t>(group_.rank());
  const auto own =
      epoch == 0 && last.size() > 0 ? rows_->DigestUpTo(last.rows.back()) : rows_->DigestOf(kAll);
  std::vector<int64_t> numbers(2 * world);
  numbers[2 * rank] = own.rows;
  numbers[2 * rank + 1] = static_cast<int64_t>(own.hash);
  group_.AllGather(numbers.data(), numbers.size(), collective::DataType::kInt64,
                   Deadline::After(kStepTimeoutSeconds));
  std::vector<caffe::SealedRows> rows;
  for (size_t i = 0; i < world; ++i) {
    rows.push_back({numbers[2 * i], static_cast<uint64_t>(numbers[2 * i + 1])});
  }
  return rows;
}

bool RowCheck::RowsMatch(const caffe::TrainingPosition& position) {
  const auto world = static_cast<size_t>(group_.world()), rank = static_cast<size_t>(group_.rank());
  // A Caffe state has no row hashes, and with a different number of ranks the epoch begins again
  // anyway.
  const bool matters = position.has_feed_position() && static_cast<size_t>(position.ranks) == world;
  if (!rows_ || !matters) return true;
  if (position.row_hash != batch::kRowHashVersion || position.rows.size() != world) {
    if (rank == 0) RestartEpochOrThrow(position, WhyNotCompared(position));
    return false;
  }
  // Either all ranks restart the epoch or none, so each rank compares its own rows and receives the
  // results of the others. The first rank whose rows differ reports the difference.
  const caffe::SealedRows sealed = position.rows[rank];
  const auto digest = rows_->DigestOf(position.epoch == 0 ? sealed.count : kAll);
  const caffe::SealedRows found{digest.rows, digest.hash};
  std::vector<int64_t> differs(world);
  differs[rank] = found == sealed ? 0 : 1;
  group_.AllGather(differs.data(), world, collective::DataType::kInt64,
                   Deadline::After(kStepTimeoutSeconds));
  const auto ranks = std::count(differs.begin(), differs.end(), 1);
  if (ranks == 0) return true;
  if (std::find(differs.begin(), differs.end(), 1) - differs.begin() != group_.rank()) return false;
  RestartEpochOrThrow(
      position, fmt::format("{} reads other rows than before the snapshot of iteration "
                            "{}: {} ({} of {} ranks do)",
                            rendezvous::RankName(group_.rank(), job_.host), position.iteration,
                            Describe(found, sealed), ranks, world));
  return false;
}

void RowCheck::RestartEpochOrThrow(const caffe::TrainingPosition& position,
                                   const std::string& what) const {
  const bool other = !position.datasets.empty() && position.datasets != job_.datasets;
  const std::string why =
      other ? fmt::format("{}; the snapshot was made with {}, but this run has {}", what,
                          position.datasets, job_.datasets)
            : what;
  Require(job_.settings.on_other_rows != "fail", ErrorCode::kDataLoss,
          "{}; set -onOtherRows restartEpoch to begin the epoch again, and give rows with fixed "
          "content and order from then on",
          why);
  log::Warning("{}; epoch {} begins again for all ranks", why, position.epoch);
}

std::string RowCheck::Describe(const caffe::SealedRows& found,
                               const caffe::SealedRows& sealed) const {
  if (found.count != sealed.count) {
    return fmt::format("{} rows instead of {}", found.count, sealed.count);
  }
  if (found.count == 0) return "its share of the files differs";
  return fmt::format("the first {} rows of its stream have the hash {:016x} instead of {:016x}",
                     sealed.count, found.hash, sealed.hash);
}

}  // namespace hearth::trainer
