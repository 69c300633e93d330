#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/storage/file_system.h"
#include "hearth/storage/hadoop_token.h"
#include "hearth/storage/http.h"
#include "hearth/storage/spool_file.h"

namespace hearth::storage {

// Options of WebHdfs.
struct WebHdfsOptions {
  std::vector<std::string> addresses;  // http://host:port of each NameNode or of HttpFS
  std::string user = "";
  std::string token = "";  // delegation token, used instead of the user; never in messages
  // returns a newer token if the current one is rejected
  std::function<std::string()> find_token = nullptr;
  bool kerberos = false;  // without a token, authenticates with the process's ticket (SPNEGO)
  double first_contact_seconds = 10;
  double repeat_seconds = 120;  // time limit for retries after transient failures
  double answer_seconds = 120;  // time limit for one response
};

// HDFS through the REST interface of NameNodes and DataNodes or of HttpFS. Needs no JVM and no
// Hadoop on the host. Transient failures (broken connections, server errors, safe mode, a standby
// NameNode) are retried with growing pauses. Until a server has responded for the first time,
// retries end after first_contact_seconds.
class WebHdfs : public FileSystem {
 public:
  explicit WebHdfs(WebHdfsOptions options);

  std::optional<FileStatus> Stat(const std::string& uri) override;
  std::vector<FileStatus> List(const std::string& folder) override;
  std::unique_ptr<InputFile> Open(const std::string& uri) override;
  std::unique_ptr<OutputFile> Create(const std::string& uri) override;
  // Never appends the bytes twice. If a response is lost, the file's size usually shows whether
  // they were appended; if it does not, throws an error that says that the outcome is unknown.
  void Append(const std::string& uri, std::string_view bytes) override;
  // Atomic on a NameNode. HttpFS cannot replace a file, so the old file is renamed first and
  // deleted afterwards, and its bytes are never lost.
  void Rename(const std::string& from, const std::string& to) override;
  bool Delete(const std::string& uri, bool recursive) override;
  void MakeFolders(const std::string& uri) override;

 private:
  // One REST call, and whether it may be repeated.
  struct Call {
    std::string doing = "";  // "read", for messages
    std::string uri = "";
    std::string method = "";
    std::string operation = "";  // "OPEN&offset=0": the end of the URL
    const SpoolFile* body = nullptr;
    std::span<char> store = {};
    size_t largest_answer = size_t{1} << 20;
    const Cancellation* cancellation = nullptr;
    bool repeat = true;
    bool once = false;  // if true, the call is not retried after its body was sent
    // set to true if the call may have been executed although its response was lost
    bool* lost = nullptr;
  };
  class Attempts;

  // Returns the response of a successful call, or throws the last error.
  HttpAnswer Do(const Call& call);
  HttpAnswer Try(const Call& call, const std::string& address, Attempts* attempts);
  std::string Url(const Call& call, const std::string& address, const Attempts& attempts) const;
  [[noreturn]] void Fail(const Call& call, const std::string& address, ErrorCode code,
                         const std::string& text) const;
  void Fetch(const std::string& uri, uint64_t offset, std::span<char> out,
             const Cancellation& cancellation);
  void Upload(const std::string& uri, const SpoolFile& bytes);
  // Deletes a file with a single attempt, because no caller waits for the result. Logs a warning if
  // that fails.
  void DeleteOnce(const std::string& uri) noexcept;
  std::vector<FileStatus> ListOnce(const std::string& folder);
  // Returns false if HttpFS did not rename the file because the new name exists.
  bool RenameOnce(const std::string& from, const std::string& to, const std::string& option);
  void Replace(const std::string& from, const std::string& to, bool has_target);
  bool AppendNew(const std::string& uri, const SpoolFile& bytes);
  void CheckSame(const std::string& uri, uint64_t id, const Cancellation& cancellation);

  const WebHdfsOptions options_;
  CurrentToken token_;
  HttpClient client_;
  std::atomic<size_t> active_ = 0;  // index of the address that responded last
  std::atomic<bool> contacted_ = false;
  std::atomic<bool> has_batches_ = true;  // false if the server is too old for LISTSTATUS_BATCH
};

}  // namespace hearth::storage
