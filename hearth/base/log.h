// Log lines on stderr in the format of Caffe's logs, which its parse_log.py reads:
//   I1121 09:05:00.123456 12345 solver.cc:218] Iteration 100, loss = 0.5
// Any thread may log; lines of several threads do not mix. Logging never throws.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hearth::log {

enum class Level { kInfo, kWarning, kError };

struct Record {
  Level level;
  std::string_view text;  // what the caller wrote
  std::string_view line;  // the same with the prefix, without a newline
};

// Called for every record from the logging thread, one call at a time, beside stderr. A sink must
// not log. An empty function removes the sink.
using Sink = std::function<void(const Record&)>;
void SetSink(Sink sink);

// Where a log call stands in the source.
struct Place {
  const char* file;
  int line;
};

void Write(Level level, Place where, std::string_view text) noexcept;

// A checked format string that remembers the place of the call.
template <typename... Args>
struct Format {
  template <typename Text>
  consteval Format(const Text& format_text,  // NOLINT(google-explicit-constructor)
                   const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : text(format_text), where{file, line} {}
  fmt::format_string<Args...> text;
  Place where;
};

template <typename... Args>
void Info(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  Write(Level::kInfo, format.where, fmt::format(format.text, std::forward<Args>(args)...));
}

template <typename... Args>
void Warning(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  Write(Level::kWarning, format.where, fmt::format(format.text, std::forward<Args>(args)...));
}

template <typename... Args>
void Error(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  Write(Level::kError, format.where, fmt::format(format.text, std::forward<Args>(args)...));
}

}  // namespace hearth::log
