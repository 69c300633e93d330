// Lets LevelDB, which has no read-only mode, open a database without changing its files.
#pragma once

#include <leveldb/env.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace hearth::caffe {

// An environment for LevelDB that reads files from disk. Files that LevelDB writes while it opens a
// database (a table with the replayed log, a new manifest) are stored in memory and read from
// there. Thread-safe, as LevelDB requires.
class ReadOnlyEnv : public leveldb::EnvWrapper {
 public:
  ReadOnlyEnv();

  // Rejects writes from now on, so LevelDB abandons the compactions that reads trigger.
  void Seal() { sealed_ = true; }

  leveldb::Status NewSequentialFile(const std::string& name,
                                    leveldb::SequentialFile** file) override;
  leveldb::Status NewRandomAccessFile(const std::string& name,
                                      leveldb::RandomAccessFile** file) override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override;
  bool FileExists(const std::string& name) override;
  leveldb::Status GetChildren(const std::string& folder, std::vector<std::string>* names) override;
  leveldb::Status RemoveFile(const std::string& name) override;
  leveldb::Status CreateDir(const std::string& name) override;
  leveldb::Status RemoveDir(const std::string& name) override;
  leveldb::Status GetFileSize(const std::string& name, uint64_t* size) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  leveldb::Status LockFile(const std::string& name, leveldb::FileLock** lock) override;
  leveldb::Status UnlockFile(leveldb::FileLock* lock) override;
  leveldb::Status NewLogger(const std::string& name, leveldb::Logger** logger) override;

 private:
  // The environment that contains the file: the one of the disk or the one in memory.
  leveldb::Env* EnvOf(const std::string& name);

  std::unique_ptr<leveldb::Env> memory_;
  std::atomic<bool> sealed_{false};
};

}  // namespace hearth::caffe
