// HDFS by its REST interface, of NameNodes and DataNodes or of HttpFS: no JVM, no Hadoop on the
// host. Failures that may pass are retried with growing pauses: broken connections, server errors,
// safe mode, a standby NameNode. Only the first contact fails soon if nobody listens.
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

struct WebHdfsOptions {
  std::vector<std::string> addresses;  // http://host:port of each NameNode, or of HttpFS
  std::string user = "";
  std::string token = "";  // a delegation token; replaces the user; appears in no message
  std::function<std::string()> find_token = nullptr;  // asked where that one is refused
  bool kerberos = false;  // without a token the process's ticket is shown (SPNEGO)
  double first_contact_seconds = 10;
  double repeat_seconds = 120;  // how long a failure that may pass is retried
  double answer_seconds = 120;  // how long one answer may take
};

class WebHdfs : public FileSystem {
 public:
  explicit WebHdfs(WebHdfsOptions options);

  std::optional<FileStatus> Stat(const std::string& uri) override;
  std::vector<FileStatus> List(const std::string& folder) override;
  std::unique_ptr<InputFile> Open(const std::string& uri) override;
  std::unique_ptr<OutputFile> Create(const std::string& uri) override;
  // Never adds the bytes twice: where an answer is lost, the file's size tells, or an error says
  // that it is not known.
  void Append(const std::string& uri, std::string_view bytes) override;
  // One step of the NameNode. HttpFS has none that replaces a file: there the old one is renamed
  // first and deleted afterwards, so that its bytes are never lost.
  void Rename(const std::string& from, const std::string& to) override;
  bool Delete(const std::string& uri, bool recursive) override;
  void MakeFolders(const std::string& uri) override;

 private:
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
    bool once = false;     // it is not repeated from where its bytes were sent
    bool* lost = nullptr;  // set where an attempt may have been carried out whose answer was lost
  };
  class Attempts;

  // The answer of a success; throws the failure that remains.
  HttpAnswer Do(const Call& call);
  HttpAnswer Try(const Call& call, const std::string& address, Attempts* attempts);
  std::string Url(const Call& call, const std::string& address, const Attempts& attempts) const;
  [[noreturn]] void Fail(const Call& call, const std::string& address, ErrorCode code,
                         const std::string& text) const;
  void Fetch(const std::string& uri, uint64_t offset, std::span<char> out,
             const Cancellation& cancellation);
  void Upload(const std::string& uri, const SpoolFile& bytes);
  void DeleteQuietly(const std::string& uri) noexcept;
  std::vector<FileStatus> ListOnce(const std::string& folder);
  // False where HttpFS does not rename as another file has the name.
  bool RenameOnce(const std::string& from, const std::string& to, const std::string& option);
  void Replace(const std::string& from, const std::string& to, bool has_target);
  bool AppendNew(const std::string& uri, const SpoolFile& bytes);
  void CheckSame(const std::string& uri, uint64_t id, const Cancellation& cancellation);

  const WebHdfsOptions options_;
  CurrentToken token_;
  HttpClient client_;
  std::atomic<size_t> active_ = 0;  // the address that answered last
  std::atomic<bool> contacted_ = false;
  std::atomic<bool> has_batches_ = true;  // LISTSTATUS_BATCH: not on old servers
};

}  // namespace hearth::storage
