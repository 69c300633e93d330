#include "hearth/caffe/data/database/read_only_env.h"

#include <leveldb/helpers/memenv.h>

#include <algorithm>

namespace hearth::caffe {
namespace {

using leveldb::Status;

class NoLock : public leveldb::FileLock {};

class NoLogger : public leveldb::Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

}  // namespace

ReadOnlyEnv::ReadOnlyEnv()
    : leveldb::EnvWrapper(leveldb::Env::Default()),
      memory_(leveldb::NewMemEnv(leveldb::Env::Default())) {}

leveldb::Env* ReadOnlyEnv::EnvOf(const std::string& name) {
  return memory_->FileExists(name) ? memory_.get() : target();
}

Status ReadOnlyEnv::NewSequentialFile(const std::string& name, leveldb::SequentialFile** file) {
  return EnvOf(name)->NewSequentialFile(name, file);
}

Status ReadOnlyEnv::NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** file) {
  return EnvOf(name)->NewRandomAccessFile(name, file);
}

Status ReadOnlyEnv::NewWritableFile(const std::string& name, leveldb::WritableFile** file) {
  if (sealed_) return Status::NotSupported(name, "the database is open for reading only");
  return memory_->NewWritableFile(name, file);
}

Status ReadOnlyEnv::NewAppendableFile(const std::string& name, leveldb::WritableFile** file) {
  return NewWritableFile(name, file);
}

bool ReadOnlyEnv::FileExists(const std::string& name) { return EnvOf(name)->FileExists(name); }

Status ReadOnlyEnv::GetChildren(const std::string& folder, std::vector<std::string>* names) {
  const Status status = target()->GetChildren(folder, names);
  std::vector<std::string> in_memory;
  memory_->GetChildren(folder, &in_memory);
  for (const std::string& name : in_memory) {
    if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
  }
  return status;
}

// Never removes files on disk, but reports success, so LevelDB does not try again.
Status ReadOnlyEnv::RemoveFile(const std::string& name) {
  return memory_->FileExists(name) ? memory_->RemoveFile(name) : Status::OK();
}

Status ReadOnlyEnv::CreateDir(const std::string&) { return Status::OK(); }
Status ReadOnlyEnv::RemoveDir(const std::string&) { return Status::OK(); }

Status ReadOnlyEnv::GetFileSize(const std::string& name, uint64_t* size) {
  return EnvOf(name)->GetFileSize(name, size);
}

Status ReadOnlyEnv::RenameFile(const std::string& from, const std::string& to) {
  return memory_->RenameFile(from, to);
}

Status ReadOnlyEnv::LockFile(const std::string&, leveldb::FileLock** lock) {
  *lock = new NoLock;
  return Status::OK();
}

Status ReadOnlyEnv::UnlockFile(leveldb::FileLock* lock) {
  delete lock;
  return Status::OK();
}

Status ReadOnlyEnv::NewLogger(const std::string&, leveldb::Logger** logger) {
  *logger = new NoLogger;
  return Status::OK();
}

}  // namespace hearth::caffe
