// TensorFlow file-system plug-in for hdfs:, viewfs:, webhdfs: and swebhdfs:, on top of the storage
// module. tf.experimental.register_filesystem_plugin loads it and calls TF_InitPlugin. Errors have
// the codes that TensorFlow's header requires. Any thread may call the functions.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/storage/file_system.h"
#include "hearth/storage/uri.h"
#include "plugins/tensorflow/growing_file.h"
#include "plugins/tensorflow/tensorflow_status.h"
#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

namespace hearth::tensorflow {
namespace {

using storage::FileStatus;
using storage::For;

constexpr const char* kSchemes[] = {"hdfs", "viewfs", "webhdfs", "swebhdfs"};
constexpr size_t kCopyBytes = 8 << 20;

void* Allocate(size_t size) { return std::calloc(1, size); }
void Free(void* memory) { std::free(memory); }

FileStatus Existing(const std::string& uri) {
  const auto status = For(uri).Stat(uri);
  Require(status.has_value(), ErrorCode::kNotFound, "{} does not exist", uri);
  return *status;
}

FileStatus ExistingFile(const std::string& uri) {
  FileStatus status = Existing(uri);
  Require(!status.is_folder, ErrorCode::kInvalidArgument, "{} is a folder", uri);
  return status;
}

FileStatus ExistingFolder(const std::string& uri) {
  FileStatus status = Existing(uri);
  Require(status.is_folder, ErrorCode::kInvalidArgument, "{} is not a folder", uri);
  return status;
}

storage::InputFile& Input(const TF_RandomAccessFile* file) {
  return *static_cast<storage::InputFile*>(file->plugin_file);
}
void CleanupInput(TF_RandomAccessFile* file) { delete &Input(file); }
int64_t Read(const TF_RandomAccessFile* file, uint64_t offset, size_t size, char* buffer,
             TF_Status* status) {
  int64_t count = -1;
  Guarded(status, [&] {
    count = static_cast<int64_t>(Input(file).ReadAt(offset, buffer, size));
    if (count < static_cast<int64_t>(size)) SetStatus(status, TF_OUT_OF_RANGE, "end of file");
  });
  return count;
}

GrowingFile& Output(const TF_WritableFile* file) {
  return *static_cast<GrowingFile*>(file->plugin_file);
}
void CleanupOutput(TF_WritableFile* file) { delete &Output(file); }
void Append(const TF_WritableFile* file, const char* bytes, size_t size, TF_Status* status) {
  Guarded(status, [&] { Output(file).Append({bytes, size}); });
}
int64_t Tell(const TF_WritableFile* file, TF_Status* status) {
  SetStatus(status, TF_OK, "");
  return Output(file).size();
}
void Flush(const TF_WritableFile* file, TF_Status* status) {
  Guarded(status, [&] { Output(file).Flush(); });
}

void Initialize(TF_Filesystem*, TF_Status* status) { SetStatus(status, TF_OK, ""); }
void Cleanup(TF_Filesystem*) {}

void OpenInput(const TF_Filesystem*, const char* uri, TF_RandomAccessFile* file,
               TF_Status* status) {
  Guarded(status, [&] { file->plugin_file = For(uri).Open(uri).release(); });
}
void OpenOutput(const TF_Filesystem*, const char* uri, TF_WritableFile* file, TF_Status* status) {
  Guarded(status, [&] { file->plugin_file = new GrowingFile(uri, /*keep=*/false); });
}
void OpenAppended(const TF_Filesystem*, const char* uri, TF_WritableFile* file, TF_Status* status) {
  Guarded(status, [&] { file->plugin_file = new GrowingFile(uri, /*keep=*/true); });
}

void MakeFolder(const TF_Filesystem*, const char* uri, TF_Status* status) {
  Guarded(status, [&] {
    if (For(uri).Stat(uri)) return SetStatus(status, TF_ALREADY_EXISTS, "it exists already");
    ExistingFolder(storage::FolderOf(storage::ParseRemote(uri).text()));
    For(uri).MakeFolders(uri);
  });
}
void MakeFolders(const TF_Filesystem*, const char* uri, TF_Status* status) {
  Guarded(status, [&] { For(uri).MakeFolders(uri); });
}
void DeleteFile(const TF_Filesystem*, const char* uri, TF_Status* status) {
  Guarded(status, [&] {
    ExistingFile(uri);
    For(uri).Delete(uri, /*recursive=*/false);
  });
}
void DeleteFolder(const TF_Filesystem*, const char* uri, TF_Status* status) {
  Guarded(status, [&] {
    ExistingFolder(uri);
    For(uri).Delete(uri, /*recursive=*/false);
  });
}
void DeleteAll(const TF_Filesystem*, const char* uri, uint64_t* files, uint64_t* folders,
               TF_Status* status) {
  *files = 0;
  *folders = 1;
  Guarded(status, [&] {
    ExistingFolder(uri);
    For(uri).Delete(uri, /*recursive=*/true);
    *folders = 0;
  });
}
// Renames folders too, as TensorFlow's own file systems do, because savers depend on it.
void Rename(const TF_Filesystem*, const char* from, const char* to, TF_Status* status) {
  Guarded(status, [&] { For(from).Rename(from, to); });
}
void Copy(const TF_Filesystem*, const char* from, const char* to, TF_Status* status) {
  Guarded(status, [&] {
    ExistingFile(from);
    std::string target = to;
    const auto there = For(to).Stat(to);
    if (there && there->is_folder) target = storage::Join(to, storage::NameOf(from));
    const auto input = For(from).Open(from);
    const auto output = For(target).Create(target);
    std::string block(kCopyBytes, '\0');
    uint64_t offset = 0;
    while (const size_t count = input->ReadAt(offset, block.data(), block.size())) {
      output->Append({block.data(), count});
      offset += count;
    }
    output->Commit();
  });
}

void Exists(const TF_Filesystem*, const char* uri, TF_Status* status) {
  Guarded(status, [&] { Existing(uri); });
}
void Stat(const TF_Filesystem*, const char* uri, TF_FileStatistics* out, TF_Status* status) {
  Guarded(status, [&] {
    const FileStatus found = Existing(uri);
    out->length = static_cast<int64_t>(found.size);
    out->mtime_nsec = found.modified_ms * 1'000'000;
    out->is_directory = found.is_folder;
  });
}
bool IsFolder(const TF_Filesystem*, const char* uri, TF_Status* status) {
  bool is_folder = false;
  Guarded(status, [&] {
    ExistingFolder(uri);
    is_folder = true;
  });
  return is_folder;
}
int64_t SizeOf(const TF_Filesystem*, const char* uri, TF_Status* status) {
  int64_t size = -1;
  Guarded(status, [&] { size = static_cast<int64_t>(ExistingFile(uri).size); });
  return size;
}
int List(const TF_Filesystem*, const char* uri, char*** entries, TF_Status* status) {
  int count = -1;
  *entries = nullptr;
  Guarded(status, [&] {
    const std::vector<FileStatus> found = For(uri).List(uri);
    *entries = static_cast<char**>(Allocate(sizeof(char*) * (found.size() + 1)));
    for (size_t i = 0; i < found.size(); ++i) {
      (*entries)[i] = strdup(storage::NameOf(found[i].uri).c_str());
    }
    count = static_cast<int>(found.size());
  });
  return count;
}

// Keeps the scheme and the host, which TensorFlow's default function would drop.
char* Translate(const TF_Filesystem*, const char* uri) {
  try {
    return strdup(storage::ParseRemote(uri).text().c_str());
  } catch (const Error&) {
    return strdup(uri);  // the operation that uses the URI reports the error
  }
}

template <typename Ops>
Ops* New(size_t size) {
  return static_cast<Ops*>(Allocate(size));
}

void Fill(TF_FilesystemOps* ops) {
  ops->init = Initialize;
  ops->cleanup = Cleanup;
  ops->new_random_access_file = OpenInput;
  ops->new_writable_file = OpenOutput;
  ops->new_appendable_file = OpenAppended;
  ops->create_dir = MakeFolder;
  ops->recursively_create_dir = MakeFolders;
  ops->delete_file = DeleteFile;
  ops->delete_dir = DeleteFolder;
  ops->delete_recursively = DeleteAll;
  ops->rename_file = Rename;
  ops->copy_file = Copy;
  ops->path_exists = Exists;
  ops->stat = Stat;
  ops->is_directory = IsFolder;
  ops->get_file_size = SizeOf;
  ops->get_children = List;
  ops->translate_name = Translate;
}

void Fill(const char* scheme, TF_FilesystemPluginOps* ops) {
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = strdup(scheme);
  ops->random_access_file_ops = New<TF_RandomAccessFileOps>(TF_RANDOM_ACCESS_FILE_OPS_SIZE);
  ops->random_access_file_ops->cleanup = CleanupInput;
  ops->random_access_file_ops->read = Read;
  ops->writable_file_ops = New<TF_WritableFileOps>(TF_WRITABLE_FILE_OPS_SIZE);
  ops->writable_file_ops->cleanup = CleanupOutput;
  ops->writable_file_ops->append = Append;
  ops->writable_file_ops->tell = Tell;
  ops->writable_file_ops->flush = Flush;
  ops->writable_file_ops->sync = Flush;
  ops->writable_file_ops->close = Flush;
  ops->filesystem_ops = New<TF_FilesystemOps>(TF_FILESYSTEM_OPS_SIZE);
  Fill(ops->filesystem_ops);
}

}  // namespace
}  // namespace hearth::tensorflow

extern "C" __attribute__((visibility("default"))) void TF_InitPlugin(
    TF_FilesystemPluginInfo* info) {
  using namespace hearth::tensorflow;  // NOLINT(google-build-using-namespace)
  info->plugin_memory_allocate = Allocate;
  info->plugin_memory_free = Free;
  info->num_schemes = 0;
  info->ops = nullptr;
  if (!FindStatusFunctions()) return;
  info->num_schemes = std::size(kSchemes);
  info->ops = static_cast<TF_FilesystemPluginOps*>(
      Allocate(sizeof(TF_FilesystemPluginOps) * info->num_schemes));
  for (size_t i = 0; i < info->num_schemes; ++i) Fill(kSchemes[i], &info->ops[i]);
}
