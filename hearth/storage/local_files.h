#pragma once

#include "hearth/storage/file_system.h"

namespace hearth::storage {

// The local file system.
class LocalFiles : public FileSystem {
 public:
  std::optional<FileStatus> Stat(const std::string& uri) override;
  std::vector<FileStatus> List(const std::string& folder) override;
  std::unique_ptr<InputFile> Open(const std::string& uri) override;
  std::unique_ptr<OutputFile> Create(const std::string& uri) override;
  void Append(const std::string& uri, std::string_view bytes) override;
  void Rename(const std::string& from, const std::string& to) override;
  bool Delete(const std::string& uri, bool recursive) override;
  void MakeFolders(const std::string& uri) override;
  // Also reads files that report no size, such as pipes and files in /proc.
  std::string ReadAll(const std::string& uri) override;
};

}  // namespace hearth::storage
