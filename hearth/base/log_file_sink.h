#pragma once

#include <spdlog/sinks/base_sink.h>

#include <array>
#include <mutex>
#include <string>

#include "hearth/base/fd.h"

namespace hearth::log {

// spdlog sink that writes the files described in log_files.h. Included by log.cc only.
class FileSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // See WriteFiles in log_files.h.
  void Open(const std::string& folder, const std::string& program);
  std::string folder();

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  // Opens the file of a severity: 0 INFO, 1 WARNING, 2 ERROR. Throws on failure.
  void OpenFile(size_t severity);

  std::string folder_, program_, started_;
  std::array<Fd, 3> files_;
};

}  // namespace hearth::log
