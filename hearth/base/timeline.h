// Records a process's activity in a file for Perfetto and chrome://tracing, in Chrome's Trace Event
// Format, a JSON array whose closing bracket may be missing. Each event is written at once, so that
// the events of a killed process are in the file. Thread-safe; only WriteTo throws.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace hearth::timeline {

using Clock = std::chrono::steady_clock;

// True if this process records events: HEARTH_TIMELINE names a folder, or WriteTo() was called.
bool On() noexcept;

// Starts recording to FOLDER/HOST-PID.trace.json, for programs that do not use HEARTH_TIMELINE. Has
// no effect if a file is already open. Throws if the file cannot be created.
void WriteTo(const std::string& folder);

// Sets the name of this process in the timeline; only the first call has an effect.
void NameProcess(std::string_view name) noexcept;

// Integer and text attributes of an event. `name` must be JSON-safe; `value` may be any text.
class Details {
 public:
  Details& Add(std::string_view name, int64_t value);
  Details& Add(std::string_view name, std::string_view value);
  const std::string& json() const { return json_; }

 private:
  std::string json_;  // the fields, without braces
};

// A finished activity of the calling thread.
struct Event {
  const char* category;  // JSON-safe, e.g. "collective"
  std::string_view name;
  Clock::time_point begin, end;
};

// Adds an event to the calling thread's track. Does nothing unless On().
void Add(const Event& event, const Details& details = {}) noexcept;

// An event that lasts from construction to destruction.
class Span {
 public:
  // `name` must outlive the span.
  Span(const char* category, std::string_view name) noexcept
      : category_(On() ? category : nullptr), name_(name) {
    if (category_ != nullptr) begin_ = Clock::now();
  }
  ~Span() {
    if (category_ != nullptr) Add({category_, name_, begin_, Clock::now()});
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* const category_;
  const std::string_view name_;
  Clock::time_point begin_;
};

}  // namespace hearth::timeline
