// Logs to stderr in the format of Caffe's logs, which Caffe's parse_log.py reads:
//   I1121 09:05:00.123456 12345 solver.cc:218] Iteration 100, loss = 0.5
// Any thread may log; lines of several threads do not mix. Logging never throws.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <type_traits>

namespace hearth::log {

enum class Level { kInfo, kWarning, kError };

// One message, as passed to sinks. The text is valid only during the call.
struct Record {
  Level level;
  std::string_view text;  // the message
  std::string_view line;  // the message with its prefix, without a newline
};

// A sink receives every record in addition to stderr, on the logging thread and one call at a time.
// It must not log. SetSink with an empty function removes the sink.
using Sink = std::function<void(const Record&)>;
void SetSink(Sink sink);

// Source location of a log call.
struct Location {
  const char* file;
  int line;
};

void Write(Level level, Location where, std::string_view text) noexcept;

// A format string, checked at compile time, and the source location of the log call.
template <typename... Args>
struct Format {
  template <typename Text>
  consteval Format(const Text& format_text,  // NOLINT(google-explicit-constructor)
                   const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : text(format_text), where{file, line} {}
  fmt::format_string<Args...> text;
  Location where;
};

// Formats and writes a message. Drops it if formatting fails, for example for lack of memory.
void WriteFormatted(Level level, Location where, fmt::string_view format,
                    fmt::format_args arguments) noexcept;

template <typename... Args>
void Info(Format<std::type_identity_t<Args>...> format, Args&&... args) noexcept {
  WriteFormatted(Level::kInfo, format.where, format.text, fmt::make_format_args(args...));
}

template <typename... Args>
void Warning(Format<std::type_identity_t<Args>...> format, Args&&... args) noexcept {
  WriteFormatted(Level::kWarning, format.where, format.text, fmt::make_format_args(args...));
}

template <typename... Args>
void Error(Format<std::type_identity_t<Args>...> format, Args&&... args) noexcept {
  WriteFormatted(Level::kError, format.where, format.text, fmt::make_format_args(args...));
}

}  // namespace hearth::log
