// Test helper: a file of values and this process's mapping of it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/formats/mapped_file.h"

namespace hearth::formats {

// A file of values and its mapping. Value i consists of sizes[i] equal letters; neighbouring values
// have different letters. The destructor deletes the file.
class ValuesInFile {
 public:
  explicit ValuesInFile(const std::vector<size_t>& sizes) {
    std::string name = ::testing::TempDir() + "values-XXXXXX";
    ::close(::mkstemp(name.data()));
    path_ = name;
    std::string bytes = "head";
    std::vector<size_t> offsets;
    for (size_t i = 0; i < sizes.size(); ++i) {
      offsets.push_back(bytes.size());
      bytes += std::string(sizes[i], static_cast<char>('a' + i % 26));
    }
    std::ofstream(path_) << bytes;
    mapped_ = MappedFile::Open(path_);
    const auto* begin = reinterpret_cast<const char*>(mapped_->data());
    for (size_t i = 0; i < sizes.size(); ++i) values_.emplace_back(begin + offsets[i], sizes[i]);
  }
  ~ValuesInFile() { std::filesystem::remove(path_); }
  ValuesInFile(const ValuesInFile&) = delete;
  ValuesInFile& operator=(const ValuesInFile&) = delete;

  const std::string& path() const { return path_; }
  const std::shared_ptr<const MappedFile>& mapped() const { return mapped_; }
  const std::vector<std::string_view>& values() const { return values_; }
  // Unmaps the file, as in a process that only reads images. values() must not be used afterwards.
  void Forget() { mapped_.reset(); }
  // Modifies a byte of the file.
  void Change() const {
    using std::filesystem::last_write_time;
    std::fstream(path_, std::ios::in | std::ios::out) << 'H';
    last_write_time(path_, last_write_time(path_) + std::chrono::seconds(1));
  }

 private:
  std::string path_;
  std::shared_ptr<const MappedFile> mapped_;
  std::vector<std::string_view> values_;
};

}  // namespace hearth::formats
