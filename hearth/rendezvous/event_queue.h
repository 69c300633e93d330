// What the members sent to the driver and the driver has not taken yet, in the order of arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "hearth/rendezvous/frame.h"

namespace hearth::rendezvous {

// What a member sent to the driver.
struct Event {
  int rank = 0;
  Json value;
};

// Events stay until they are taken: decisions hang on them. Of log lines, which a net with a
// thousand outputs writes by the thousand, only the newest stay. Not thread-safe.
class EventQueue {
 public:
  explicit EventQueue(size_t max_log_lines) : max_log_lines_(max_log_lines) {}

  bool empty() const { return events_.empty() && log_lines_.empty(); }
  // Log lines dropped in favour of newer ones since the last call.
  int64_t TakeDropped() { return std::exchange(dropped_, 0); }

  void AddEvent(Event event) { events_.push_back({next_++, std::move(event)}); }
  void AddLogLine(Event line) {
    if (log_lines_.size() == max_log_lines_) {
      log_lines_.pop_front();
      ++dropped_;
    }
    log_lines_.push_back({next_++, std::move(line)});
  }

  // The oldest; nothing where there is none.
  std::optional<Event> Take() {
    if (empty()) return std::nullopt;
    const bool is_event = !events_.empty() && (log_lines_.empty() || IsEventFirst());
    auto& queue = is_event ? events_ : log_lines_;
    Event event = std::move(queue.front().event);
    queue.pop_front();
    return event;
  }

 private:
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
