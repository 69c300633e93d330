// Queue of the events that members sent to the driver, in order of arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// A value that a member sent to the driver.
struct Event {
  int rank = 0;
  Json value;
};

// Events and log lines of members. Events are kept until they are taken, because the driver's
// decisions depend on them. Of the log lines only the newest are kept, because a net with a
// thousand outputs writes thousands. Not thread-safe.
class EventQueue {
 public:
  explicit EventQueue(size_t max_log_lines) : max_log_lines_(max_log_lines) {}

  bool empty() const { return events_.empty() && log_lines_.empty(); }
  // Number of log lines that newer ones have displaced since the last call of this function.
  int64_t TakeDropped() { return std::exchange(dropped_, 0); }

  void AddEvent(Event event) { events_.push_back({next_++, std::move(event)}); }
  void AddLogLine(Event line) {
    if (log_lines_.size() == max_log_lines_) {
      log_lines_.pop_front();
      ++dropped_;
    }
    log_lines_.push_back({next_++, std::move(line)});
  }

  // Removes and returns the oldest event; empty if there is none.
  std::optional<Event> Take() {
    if (empty()) return std::nullopt;
    const bool is_event = !events_.empty() && (log_lines_.empty() || IsEventFirst());
    auto& queue = is_event ? events_ : log_lines_;
    Event event = std::move(queue.front().event);
    queue.pop_front();
    return event;
  }

 private:
  // An event, and its number in order of arrival.
  struct Numbered {
    uint64_t number;
    Event event;
  };

  bool IsEventFirst() const { return events_.front().number < log_lines_.front().number; }

  const size_t max_log_lines_;
  uint64_t next_ = 0;
  std::deque<Numbered> events_, log_lines_;
  int64_t dropped_ = 0;
};

}  // namespace hearth::rendezvous
