#include "hearth/partitions/replay.h"

#include <utility>

namespace hearth::partitions {
namespace {

using batch::BatchView;
using Clock = std::chrono::steady_clock;

// The driver hears at least this often that rows are taken.
constexpr auto kDriverProgress = std::chrono::seconds(1);

}  // namespace

void KeptRows::Add(std::span<const std::byte> image, RowFormat format) {
  const BatchView& kept = batches_.Append(image);
  formats_.push_back(format);
  bytes_.push_back(image.size() + kept.file_bytes());
}

void KeptRows::Rollback() {
  batches_.TakeBack(complete_);
  formats_.resize(complete_);
  bytes_.resize(complete_);
}

Replay::Replay(std::string feed, std::shared_ptr<KeptRows> kept, int64_t times, Tell report)
    : Partition(std::move(feed), -1, 0),
      kept_(std::move(kept)),
      report_(std::move(report)),
      times_left_(times),
      left_(kept_ == nullptr ? 0 : times * static_cast<int64_t>(kept_->size())),
      told_(Clock::now()) {
  if (left_ == 0) TellDriver("replayed");
}

std::optional<Partition::Batch> Replay::Read() {
  if (kept_ == nullptr || times_left_ == 0 || kept_->size() == 0) return std::nullopt;
  const size_t index = next_++;
  if (next_ == kept_->size()) {
    next_ = 0;
    --times_left_;
  }
  kept_->CountRead(index);
  const BatchView& kept = kept_->at(index);
  const RowFormat format = kept_->format(index);
  // The program may write to the arrays of columns; later epochs must not see that.
  if (!format.pickled) return Batch{batch::CopyBatch(kept.image()), {}, format};
  return Batch{std::shared_ptr<const BatchView>(kept_, &kept), {}, format};
}

void Replay::Settle(int64_t count) {
  const int64_t left = left_ -= count;
  const auto now = Clock::now();
  if (left == 0) {
    TellDriver("replayed");
  } else if (now - told_ > kDriverProgress) {
    told_ = now;
    TellDriver("progress");
  }
}

// The driver waits for these rows.
void Replay::Refuse(const std::string& reason) {
  if (left_ == 0) return;
  report_({{"event", "feed_error"}, {"feed", feed()}, {"text", reason}, {"timeout", false}});
}

void Replay::Drop() {
  if (left_ != 0) TellDriver("replayed");
}

void Replay::TellDriver(const std::string& event) { report_({{"event", event}, {"feed", feed()}}); }

}  // namespace hearth::partitions
