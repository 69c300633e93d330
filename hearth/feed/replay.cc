#include "hearth/feed/replay.h"

#include <utility>

namespace hearth::feed {
namespace {

using batch::BatchView;
using Clock = std::chrono::steady_clock;

// Minimum interval between progress events to the driver.
constexpr auto kDriverProgress = std::chrono::seconds(1);

}  // namespace

void SpooledRows::Add(std::span<const std::byte> image, RowFormat format) {
  const BatchView& spooled = batches_.Append(image);
  formats_.push_back(format);
  bytes_.push_back(image.size() + spooled.file_bytes());
}

void SpooledRows::Rollback() {
  batches_.Truncate(complete_);
  formats_.resize(complete_);
  bytes_.resize(complete_);
}

Replay::Replay(std::string feed, std::shared_ptr<SpooledRows> spooled, int64_t times, Send report)
    : Partition(std::move(feed), -1, 0),
      spooled_(std::move(spooled)),
      report_(std::move(report)),
      times_left_(times),
      left_(spooled_ == nullptr ? 0 : times * static_cast<int64_t>(spooled_->size())),
      reported_at_(Clock::now()) {
  if (left_ == 0) ReportToDriver("replayed");
}

std::optional<Partition::Batch> Replay::Read() {
  if (spooled_ == nullptr || times_left_ == 0 || spooled_->size() == 0) return std::nullopt;
  const size_t index = next_++;
  if (next_ == spooled_->size()) {
    next_ = 0;
    --times_left_;
  }
  spooled_->CountRead(index);
  const BatchView& spooled = spooled_->at(index);
  const RowFormat format = spooled_->format(index);
  // Columns are copied, because the program may write to the arrays, and later epochs must not see
  // what it wrote. Pickled rows become new Python objects each time, so they need no copy.
  if (!format.pickled) return Batch{batch::CopyBatch(spooled.image()), {}, format};
  return Batch{std::shared_ptr<const BatchView>(spooled_, &spooled), {}, format};
}

void Replay::Settle(int64_t count) {
  const int64_t left = left_ -= count;
  const auto now = Clock::now();
  if (left == 0) {
    ReportToDriver("replayed");
  } else if (now - reported_at_ > kDriverProgress) {
    reported_at_ = now;
    ReportToDriver("progress");
  }
}

// Sends `reason` to the driver, which waits for these rows.
void Replay::Refuse(const std::string& reason) {
  if (left_ == 0) return;
  report_({{"event", "feed_error"}, {"feed", feed()}, {"text", reason}, {"timeout", false}});
}

void Replay::Drop() {
  if (left_ != 0) ReportToDriver("replayed");
}

void Replay::ReportToDriver(const std::string& event) {
  report_({{"event", event}, {"feed", feed()}});
}

}  // namespace hearth::feed
