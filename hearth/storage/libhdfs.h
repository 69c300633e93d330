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

// HDFS, viewfs and other Hadoop file systems, by libhdfs: uses the cluster's configuration with its
// name services, Kerberos, tokens and erasure coding, in a JVM inside this process. Retries are
// Hadoop's own, as configured.
class LibHdfsFiles : public FileSystem {
 public:
  // `name_node`: "hdfs://host:port", "default" for fs.defaultFS. `who`: "user alice", for messages.
  // Loads nothing before use.
  LibHdfsFiles(std::string name_node, std::string who)
      : name_node_(std::move(name_node)), who_(std::move(who)) {}

  std::optional<FileStatus> Stat(const std::string& uri) override;
  std::vector<FileStatus> List(const std::string& folder) override;
  std::unique_ptr<InputFile> Open(const std::string& uri) override;
  std::unique_ptr<OutputFile> Create(const std::string& uri) override;
  void Append(const std::string& uri, std::string_view bytes) override;
  // libhdfs cannot replace a file by a rename: the old file is renamed first and deleted
  // afterwards, so that its bytes are never lost, but for a moment nothing has the name.
  void Rename(const std::string& from, const std::string& to) override;
  bool Delete(const std::string& uri, bool recursive) override;
  void MakeFolders(const std::string& uri) override;

 private:
  // Connects at the first call; concurrent calls wait for it.
  void* fs();
  [[noreturn]] void Fail(const std::string& doing, const std::string& uri) const;
  void Write(const std::string& uri, const SpoolFile& bytes, int flags);

  const std::string name_node_, who_;
  std::mutex mutex_;
  void* fs_ = nullptr;
};

}  // namespace hearth::storage
