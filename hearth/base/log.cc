#include "hearth/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>

#include "hearth/base/log_file_sink.h"
#include "hearth/base/log_files.h"
#include "hearth/base/log_level.h"

namespace hearth::log {
namespace {

// glog's prefix: severity letter, month and day, time with microseconds, thread, file and line.
constexpr const char* kPattern = "%L%m%d %H:%M:%S.%f %t %s:%#] %v";

spdlog::level::level_enum SpdlogLevel(Level level) {
  switch (level) {
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}

Level LevelOf(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return Level::kError;
  return level == spdlog::level::warn ? Level::kWarning : Level::kInfo;
}

// Passes records to the function of SetSink(); base_sink's mutex serialises the calls.
class FunctionSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void Set(Sink sink) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sink_ = std::move(sink);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!sink_) return;
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    const std::string_view line(buffer.data(), buffer.size());
    sink_({LevelOf(message.level), {message.payload.data(), message.payload.size()}, line});
  }
  void flush_() override {}

 private:
  Sink sink_;
};

struct Destinations {
  std::shared_ptr<spdlog::sinks::stderr_sink_mt> terminal =
      std::make_shared<spdlog::sinks::stderr_sink_mt>();
  std::shared_ptr<FileSink> files = std::make_shared<FileSink>();
  std::shared_ptr<FunctionSink> function = std::make_shared<FunctionSink>();
  std::shared_ptr<spdlog::logger> logger;

  Destinations() {
    terminal->set_formatter(std::make_unique<spdlog::pattern_formatter>(kPattern));
    files->set_formatter(std::make_unique<spdlog::pattern_formatter>(kPattern));
    function->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        kPattern, spdlog::pattern_time_type::local, ""));
    logger = std::make_shared<spdlog::logger>("hearth",
                                              spdlog::sinks_init_list{terminal, files, function});
    // Flushes each record, so that the last records of a killed process are not lost.
    logger->flush_on(spdlog::level::info);
    // Without a handler spdlog would print a sink's failure, such as a full disk, to stderr.
    logger->set_error_handler([](const std::string&) {});
  }
};

// Never destroyed: threads may log during process exit.
Destinations& GlobalDestinations() {
  static auto* destinations = new Destinations;
  return *destinations;
}

}  // namespace

void SetSink(Sink sink) { GlobalDestinations().function->Set(std::move(sink)); }

void SetLeastLevel(Level level) { GlobalDestinations().logger->set_level(SpdlogLevel(level)); }

void SetLeastTerminalLevel(Level level) {
  GlobalDestinations().terminal->set_level(SpdlogLevel(level));
}

void WriteFiles(const std::string& folder, const std::string& program) {
  GlobalDestinations().files->Open(folder, program);
}

std::string FilesFolder() { return GlobalDestinations().files->folder(); }

void WriteToFilesOnly(Level level, Location where, std::string_view text) noexcept {
  const spdlog::source_loc location(where.file, where.line, "");
  try {
    GlobalDestinations().files->log(spdlog::details::log_msg(
        location, "", SpdlogLevel(level), spdlog::string_view_t(text.data(), text.size())));
  } catch (const std::exception&) {
    // The record is dropped, like any that cannot be written.
  }
}

void Write(Level level, Location where, std::string_view text) noexcept {
  const spdlog::source_loc location(where.file, where.line, "");
  GlobalDestinations().logger->log(location, SpdlogLevel(level),
                                   spdlog::string_view_t(text.data(), text.size()));
}

void WriteFormatted(Level level, Location where, fmt::string_view format,
                    fmt::format_args arguments) noexcept {
  try {
    Write(level, where, fmt::vformat(format, arguments));
  } catch (const std::exception&) {
    // The record is dropped, like any that cannot be written.
  }
}

}  // namespace hearth::log
