#include "hearth/base/log_file_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "hearth/base/error.h"
#include "hearth/base/host_name.h"

namespace hearth::log {
namespace {

constexpr std::array<const char*, 3> kSeverities = {"INFO", "WARNING", "ERROR"};

std::string UserName() {
  passwd entry{};
  passwd* found = nullptr;
  char text[4096];
  getpwuid_r(geteuid(), &entry, text, sizeof text, &found);
  return found ? found->pw_name : std::to_string(geteuid());
}

std::string Now(const char* format) {
  const time_t now = time(nullptr);
  tm local{};
  localtime_r(&now, &local);
  char text[64] = {};
  strftime(text, sizeof text, format, &local);
  return text;
}

// Writes as much as it can. Unlike hearth::WriteAll it ignores failures, because they could only be
// reported to this log.
void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a full disk must not end the training
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void FileSink::Open(const std::string& folder, const std::string& program) {
  const std::lock_guard<std::mutex> lock(mutex_);
  folder_ = folder;
  program_ = program;
  started_ = Now("%Y%m%d-%H%M%S");
  // WARNING and ERROR are opened by their first record, as in glog: an empty ERROR file would
  // suggest a failure.
  for (Fd& file : files_) file = Fd();
  OpenFile(0);
}

std::string FileSink::folder() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return folder_;
}

void FileSink::OpenFile(size_t severity) {
  const std::string name = fmt::format("{}.{}.{}.log.{}.{}.{}", program_, HostName(), UserName(),
                                       kSeverities[severity], started_, getpid());
  const std::string path = folder_ + "/" + name;
  // O_NOFOLLOW: the folder may be writable by other users, who could place a link.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  Fd file(open(path.c_str(), flags, 0664));
  if (!file.valid()) ThrowErrno(errno, "cannot create the log file " + path);
  struct stat facts {};
  // The file is not empty, and already has the header, if this process opened it within the same
  // second.
  if (fstat(file.get(), &facts) == 0 && facts.st_size == 0) {
    WriteAll(file.get(),
             fmt::format("Log file created at: {}\nRunning on machine: {}\n"
                         "Log line format: [IWE]mmdd hh:mm:ss.uuuuuu threadid file:line] msg\n",
                         Now("%Y/%m/%d %H:%M:%S"), HostName()));
  }
  const std::string link = fmt::format("{}/{}.{}", folder_, program_, kSeverities[severity]);
  unlink(link.c_str());
  // Ignores errors: if the file system has no links, the log file still exists under its own name.
  [[maybe_unused]] const int linked = symlink(name.c_str(), link.c_str());
  files_[severity] = std::move(file);
}

void FileSink::sink_it_(const spdlog::details::log_msg& message) {
  if (!files_[0].valid()) return;
  spdlog::memory_buf_t buffer;
  formatter_->format(message, buffer);
  const size_t own = message.level >= spdlog::level::err    ? 2
                     : message.level == spdlog::level::warn ? 1
                                                            : 0;
  // As in glog, a record is written to the file of its severity and to those of lower severities.
  for (size_t severity = 0; severity <= own; ++severity) {
    if (!files_[severity].valid()) OpenFile(severity);
    WriteAll(files_[severity].get(), {buffer.data(), buffer.size()});
  }
}

}  // namespace hearth::log
