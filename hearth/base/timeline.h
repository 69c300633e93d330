// What a process does and when, as a file that Perfetto and chrome://tracing open: events in
// Chrome's Trace Event Format, an array whose end may be missing. Each is written at once, so that
// a process that is killed leaves what it did. Any thread; nothing here throws but WriteTo.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace hearth::timeline {

using Clock = std::chrono::steady_clock;

// Whether events are written. The environment variable HEARTH_TIMELINE, a folder, starts it.
bool On() noexcept;

// Writes into FOLDER/HOST-PID.trace.json from now on; for programs that are told the folder
// otherwise. Once there is a file it stays. Throws where it cannot be made.
void WriteTo(const std::string& folder);

// How the process is called in the picture: the first name stays.
void NameProcess(std::string_view name) noexcept;

// An int or text beside an event: `name` is JSON-safe, `value` any text.
class Details {
 public:
  Details& Add(std::string_view name, int64_t value);
  Details& Add(std::string_view name, std::string_view value);
  const std::string& json() const { return json_; }

 private:
  std::string json_;  // the fields, without braces
};

struct Event {
  const char* category;  // JSON-safe, as "collective"
  std::string_view name;
  Clock::time_point begin, end;
};

// On the track of the calling thread. Does nothing unless On().
void Add(const Event& event, const Details& details = {}) noexcept;

// An event from its making to its end.
class Span {
 public:
  // `name` outlives it.
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
