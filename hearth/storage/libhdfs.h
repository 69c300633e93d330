#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/storage/file_system.h"
#include "hearth/storage/libhdfs_library.h"
#include "hearth/storage/spool_file.h"

namespace hearth::storage {

// HDFS, viewfs and other Hadoop file systems through libhdfs, which runs a JVM in this process. It
// uses the cluster's configuration: name services, Kerberos, tokens and erasure coding. Hadoop's
// client retries as configured.
class LibHdfsFiles : public FileSystem {
 public:
  // `name_node` is "hdfs://host:port", or "default" for fs.defaultFS. `who`, such as "user alice",
  // is used in messages. Nothing is loaded before the first use.
  LibHdfsFiles(std::string name_node, std::string who)
      : name_node_(std::move(name_node)), who_(std::move(who)) {}

  std::optional<FileStatus> Stat(const std::string& uri) override;
  std::vector<FileStatus> List(const std::string& folder) override;
  std::unique_ptr<InputFile> Open(const std::string& uri) override;
  std::unique_ptr<OutputFile> Create(const std::string& uri) override;
  void Append(const std::string& uri, std::string_view bytes) override;
  // libhdfs cannot replace a file in a rename. So the old file is renamed first and deleted
  // afterwards. Its bytes are never lost, but for a moment there is no file with the name.
  void Rename(const std::string& from, const std::string& to) override;
  bool Delete(const std::string& uri, bool recursive) override;
  void MakeFolders(const std::string& uri) override;

 private:
  // Connects on the first call. Concurrent calls wait for the connection.
  void* fs();
  [[noreturn]] void Fail(const std::string& doing, const std::string& uri) const;
  void Write(const std::string& uri, const SpoolFile& bytes, int flags);

  const std::string name_node_, who_;
  std::mutex mutex_;
  void* fs_ = nullptr;
};

}  // namespace hearth::storage
