// Records a process's activity in a file for Perfetto and chrome://tracing: events in Chrome's
// Trace Event Format, an array whose end may be missing. Each event is written at once, so that a
// killed process leaves its events. Any thread; only WriteTo throws.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace hearth::timeline {

using Clock = std::chrono::steady_clock;

// True if events are recorded. Enabled by the environment variable HEARTH_TIMELINE, a folder.
bool On() noexcept;

// Starts recording to FOLDER/HOST-PID.trace.json, for programs that get the folder in another way.
// Once opened, the file is never changed. Throws if it cannot be created.
void WriteTo(const std::string& folder);

// Name of the process in the timeline; only the first call has an effect.
void NameProcess(std::string_view name) noexcept;

// Integer and text attributes of an event: `name` is JSON-safe, `value` any text.
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
  // `name` outlives the span.
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
