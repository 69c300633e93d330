#include "hearth/storage/libhdfs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/storage/read_ahead.h"
#include "hearth/storage/temporary_name.h"
#include "hearth/storage/uri.h"
#include "hearth/storage/webhdfs_answer.h"

namespace hearth::storage {
namespace {

// The largest number of bytes per call, because libhdfs copies them through an array of this size
// on the JVM's heap.
constexpr size_t kLargestCall = 8 << 20;
constexpr int kOtherException = 255;  // errno that libhdfs sets for unknown exceptions

// libhdfs expects paths without scheme and host, because these belong to the connection.
std::string PathOf(const std::string& uri) { return ParseRemote(uri).path; }

FileStatus StatusOf(const LibHdfsFileInfo& info, std::string uri) {
  const bool is_folder = info.kind == 'D';
  return {std::move(uri), is_folder, is_folder ? 0 : static_cast<uint64_t>(info.size),
          int64_t{info.modified} * 1000};
}

// The process that has started the JVM. A forked child has no JVM threads, so a call would wait for
// them forever.
std::atomic<pid_t> jvm_process = 0;

bool IsJvmHere() { return jvm_process == 0 || jvm_process == getpid(); }

// Restores the program's handlers of termination signals, which a starting JVM replaces. Examples
// are Python's handler of Ctrl-C and the solver's, which writes a snapshot.
class SignalHandlerGuard {
 public:
  SignalHandlerGuard() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &actions_[i]);
  }
  ~SignalHandlerGuard() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &actions_[i], nullptr);
  }
  SignalHandlerGuard(const SignalHandlerGuard&) = delete;
  SignalHandlerGuard& operator=(const SignalHandlerGuard&) = delete;

 private:
  static constexpr std::array<int, 4> kSignals = {SIGHUP, SIGINT, SIGTERM, SIGQUIT};
  std::array<struct sigaction, 4> actions_{};
};

// An open HDFS file, which the destructor closes. The connection `fs` is never closed.
class OpenedFile {
 public:
  OpenedFile(void* fs, void* file) : fs_(fs), file_(file) {}
  ~OpenedFile() { Close(); }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  void* get() const { return file_; }
  bool Close() {
    if (!IsJvmHere()) return true;  // only the parent process can close the file
    return file_ == nullptr || LibHdfs().close(fs_, std::exchange(file_, nullptr)) == 0;
  }

 private:
  void* fs_;
  void* file_;
};

}  // namespace

void* LibHdfsFiles::fs() {
  Require(IsJvmHere(), ErrorCode::kUnimplemented,
          "cannot use {} by libhdfs: this process was forked from a process with a JVM, and a "
          "forked process cannot use the JVM; start processes by spawn "
          "(multiprocessing.set_start_method), or set HEARTH_HDFS=webhdfs",
          name_node_);
  // Locked only after IsJvmHere(): in a forked child, the mutex may be locked forever by a thread
  // that exists only in the parent.
  const std::lock_guard lock(mutex_);
  if (fs_ != nullptr) return fs_;
  const std::string missing = MissingOnClassPath();
  Require(missing.empty(), ErrorCode::kInvalidArgument,
          "cannot open {} by libhdfs: CLASSPATH lacks {}; set it to what `hadoop classpath --glob` "
          "prints, or to all jars of Spark, or set HEARTH_HDFS=webhdfs, which needs no CLASSPATH",
          name_node_, missing);
  void* builder = LibHdfs().new_builder();
  Require(builder != nullptr, ErrorCode::kResourceExhausted, "libhdfs is out of memory");
  LibHdfs().set_name_node(builder, name_node_.c_str());
  {
    const SignalHandlerGuard guard;
    // jvm_process is set before the JVM starts: if another thread forks meanwhile, its child has no
    // JVM threads, either.
    jvm_process = getpid();
    fs_ = LibHdfs().connect(builder);
  }
  if (fs_ == nullptr) Fail("connect to", name_node_);
  return fs_;
}

void LibHdfsFiles::Fail(const std::string& doing, const std::string& uri) const {
  // errno is saved first, because any other call into libhdfs may change it.
  const int error_number = errno;
  const char* cause = LibHdfs().root_cause == nullptr ? nullptr : LibHdfs().root_cause();
  const std::string what = fmt::format("cannot {} {} as {} by libhdfs", doing, uri, who_);
  // The cause is "CLASS: MESSAGE", as in a server's response.
  const std::string_view text = cause == nullptr ? "" : cause;
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view message = text.substr(std::min(colon + 2, text.size()));
  const auto known = ReadException(name.substr(name.rfind('.') + 1), message);
  if (known) throw Error(known->code, fmt::format("{}: {}", what, known->text));
  if (error_number == 0 || error_number == kOtherException) {
    const auto code = error_number == 0 ? ErrorCode::kUnavailable : ErrorCode::kInternal;
    Throw(code, "{}: {}", what, text.empty() ? "no reason given" : OneLine(text));
  }
  ThrowErrno(error_number, text.empty() ? what : fmt::format("{}: {}", what, OneLine(text)));
}

std::optional<FileStatus> LibHdfsFiles::Stat(const std::string& uri) {
  const std::string path = PathOf(uri);
  LibHdfsFileInfo* info = LibHdfs().stat(fs(), path.c_str());
  if (info == nullptr && errno == ENOENT) return std::nullopt;
  if (info == nullptr) Fail("inspect", uri);
  const FileStatus status = StatusOf(*info, uri);
  LibHdfs().free_info(info, 1);
  return status;
}

std::vector<FileStatus> LibHdfsFiles::List(const std::string& folder) {
  const std::string path = PathOf(folder);
  const auto itself = Stat(folder);
  Require(!itself || itself->is_folder, ErrorCode::kInvalidArgument,
          "cannot list {} as {}: it is not a folder", folder, who_);
  int count = 0;
  // libhdfs also returns null for an empty folder. Only errno shows an error.
  errno = 0;
  LibHdfsFileInfo* infos = LibHdfs().list(fs(), path.c_str(), &count);
  if (infos == nullptr && errno != 0) Fail("list", folder);
  std::vector<FileStatus> found;
  for (int i = 0; i < count; ++i) {
    found.push_back(StatusOf(infos[i], Join(folder, NameOf(infos[i].name))));
  }
  if (infos != nullptr) LibHdfs().free_info(infos, count);
  std::ranges::sort(found, {}, &FileStatus::uri);
  return found;
}

std::unique_ptr<InputFile> LibHdfsFiles::Open(const std::string& uri) {
  const std::string path = PathOf(uri);
  const auto status = Stat(uri);
  Require(status.has_value(), ErrorCode::kNotFound,
          "cannot open {} as {}: no such path; look with `hdfs dfs -ls`", uri, who_);
  Require(!status->is_folder, ErrorCode::kInvalidArgument, "cannot open {} as {}: it is a folder",
          uri, who_);
  auto file =
      std::make_shared<OpenedFile>(fs(), LibHdfs().open(fs(), path.c_str(), O_RDONLY, 0, 0, 0));
  if (file->get() == nullptr) Fail("open", uri);
  const auto fetch = [this, uri, file](uint64_t offset, char* data, size_t size,
                                       const Cancellation& cancellation) {
    for (size_t done = 0; done < size;) {
      Require(!cancellation.cancelled(), ErrorCode::kAborted, "the file {} was closed", uri);
      const int32_t count =
          LibHdfs().pread(fs(), file->get(), static_cast<int64_t>(offset + done), data + done,
                          static_cast<int32_t>(std::min(size - done, kLargestCall)));
      // According to hdfs.h, EINTR means that data is temporarily unavailable although the end of
      // the file is not reached.
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) Fail("read", uri);
      Require(count > 0, ErrorCode::kDataLoss,
              "cannot read {} as {}: it ends at byte {}; has it been replaced?", uri, who_,
              offset + done);
      done += static_cast<size_t>(count);
    }
  };
  return std::make_unique<ReadAhead>(fetch, status->size);
}

void LibHdfsFiles::Write(const std::string& uri, const SpoolFile& bytes, int flags) {
  const std::string path = PathOf(uri);
  OpenedFile file(fs(), LibHdfs().open(fs(), path.c_str(), flags, 0, 0, 0));
  if (file.get() == nullptr) Fail("create", uri);
  // Reads the spooled file in blocks, because it may be larger than the memory.
  std::vector<char> block(std::min<uint64_t>(bytes.size(), kLargestCall));
  for (uint64_t done = 0; done < bytes.size();) {
    const ssize_t count = pread(bytes.fd(), block.data(), block.size(), static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) ThrowErrno(errno, "cannot read the spooled file for " + uri);
    for (int32_t sent = 0; sent < count;) {
      const int32_t now = LibHdfs().write(fs(), file.get(), block.data() + sent,
                                          static_cast<int32_t>(count - sent));
      if (now < 0 && errno == EINTR) continue;
      if (now <= 0) Fail("write", uri);
      sent += now;
    }
    done += static_cast<uint64_t>(count);
  }
  // HDFS completes the last block when the file is closed, so the bytes are stored only if that
  // succeeds.
  if (!file.Close()) Fail("write", uri);
}

std::unique_ptr<OutputFile> LibHdfsFiles::Create(const std::string& uri) {
  const auto there = Stat(uri);
  Require(!there || !there->is_folder, ErrorCode::kInvalidArgument,
          "cannot create {} as {}: a folder has that name", uri, who_);
  const std::string temporary = TemporaryFor(uri);
  // writes an empty file, to report missing permissions now
  Write(temporary, SpoolFile(), O_WRONLY);
  SpooledOutput::Steps steps;
  steps.upload = [this, uri, temporary](const SpoolFile& bytes) {
    Write(temporary, bytes, O_WRONLY);
    Rename(temporary, uri);
  };
  steps.discard = [this, temporary] { DeleteQuietly(temporary); };
  return std::make_unique<SpooledOutput>(std::move(steps));
}

void LibHdfsFiles::Append(const std::string& uri, std::string_view bytes) {
  SpoolFile spool;
  spool.Append(bytes);
  if (Stat(uri)) return Write(uri, spool, O_WRONLY | O_APPEND);
  // Writes a temporary file: creating `uri` directly would empty it if another writer creates it at
  // the same time.
  const std::string temporary = TemporaryFor(uri);
  const std::string source = PathOf(temporary), target = PathOf(uri);
  try {
    Write(temporary, spool, O_WRONLY);
  } catch (const Error&) {
    DeleteQuietly(temporary);
    throw;
  }
  if (LibHdfs().rename(fs(), source.c_str(), target.c_str()) == 0) return;
  const int error_number = errno;
  DeleteQuietly(temporary);
  // If the file exists now, another writer has created it since the first Stat().
  if (Stat(uri)) return Write(uri, spool, O_WRONLY | O_APPEND);
  errno = error_number;
  Fail("append to", uri);
}

void LibHdfsFiles::Rename(const std::string& from, const std::string& to) {
  const std::string source = PathOf(from), target = PathOnSame(from, to);
  // Checked first, because libhdfs gives no reason if a rename fails.
  Require(Stat(from).has_value(), ErrorCode::kNotFound,
          "cannot rename {} as {}: no such path; look with `hdfs dfs -ls`", from, who_);
  if (source == target) return;
  const auto there = Stat(to);
  Require(!there || !there->is_folder, ErrorCode::kInvalidArgument,
          "cannot rename {} to {} as {}: a folder has that name", from, to, who_);
  const std::string aside = PathOf(TemporaryFor(to));
  if (there && LibHdfs().rename(fs(), target.c_str(), aside.c_str()) != 0) Fail("replace", to);
  if (LibHdfs().rename(fs(), source.c_str(), target.c_str()) != 0) {
    const int error_number = errno;
    if (there) LibHdfs().rename(fs(), aside.c_str(), target.c_str());
    errno = error_number;
    Fail("rename", from);
  }
  if (there && LibHdfs().remove(fs(), aside.c_str(), 0) != 0) {
    log::Warning("the previous contents of {} remain as {}", to, aside);
  }
}

bool LibHdfsFiles::Delete(const std::string& uri, bool recursive) {
  const std::string path = PathOf(uri);
  if (!Stat(uri)) return false;
  if (LibHdfs().remove(fs(), path.c_str(), recursive ? 1 : 0) != 0) Fail("delete", uri);
  return true;
}

void LibHdfsFiles::MakeFolders(const std::string& uri) {
  const std::string path = PathOf(uri);
  if (LibHdfs().make_folders(fs(), path.c_str()) != 0) Fail("create the folder", uri);
}

}  // namespace hearth::storage
