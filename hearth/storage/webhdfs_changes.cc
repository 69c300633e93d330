// The WebHDFS operations that modify files: write, append, rename and delete.
#include <fmt/format.h>

#include <exception>
#include <utility>

#include "hearth/base/log.h"
#include "hearth/storage/temporary_name.h"
#include "hearth/storage/uri.h"
#include "hearth/storage/webhdfs.h"
#include "hearth/storage/webhdfs_answer.h"

namespace hearth::storage {

void WebHdfs::Upload(const std::string& uri, const SpoolFile& bytes) {
  Call call{.doing = "write", .uri = uri, .method = "PUT", .operation = "CREATE&overwrite=true"};
  call.body = &bytes;
  Do(call);
}

std::unique_ptr<OutputFile> WebHdfs::Create(const std::string& uri) {
  const std::string temporary = TemporaryFor(uri);
  // Creates an empty file, to report missing permissions now instead of after hours of work.
  Call call{.doing = "create", .uri = uri, .method = "GET", .operation = "GETFILESTATUS"};
  if (const auto there = Stat(uri); there && there->is_folder) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument, "a folder has that name");
  }
  Upload(temporary, SpoolFile());
  SpooledOutput::Steps steps;
  steps.upload = [this, uri, temporary](const SpoolFile& bytes) {
    // Replaces the empty temporary file of Create().
    Upload(temporary, bytes);
    const auto target = Stat(uri);
    Replace(temporary, uri, target.has_value());
  };
  steps.discard = [this, temporary] { DeleteOnce(temporary); };
  return std::make_unique<SpooledOutput>(std::move(steps));
}

bool WebHdfs::AppendNew(const std::string& uri, const SpoolFile& bytes) {
  const std::string temporary = TemporaryFor(uri);
  try {
    Upload(temporary, bytes);
    // Renames instead of using CREATE, which would empty another writer's file. Either this file
    // appears with all its bytes, or another writer's file stays.
    if (RenameOnce(temporary, uri, "NONE")) return true;
  } catch (const Error& error) {
    DeleteOnce(temporary);
    // Returns false only if another writer has created the file meanwhile.
    if (error.code() != ErrorCode::kInvalidArgument || !Stat(uri)) throw;
    return false;
  }
  DeleteOnce(temporary);
  return false;
}

void WebHdfs::Append(const std::string& uri, std::string_view bytes) {
  SpoolFile spool;
  spool.Append(bytes);
  auto there = Stat(uri);
  if (!there && AppendNew(uri, spool)) return;
  // Another writer has created the file, whose size before the append is needed below.
  if (!there) there = Stat(uri);
  bool lost = false;
  Call call{.doing = "append to", .uri = uri, .method = "POST", .operation = "APPEND"};
  call.body = &spool;
  call.once = true;
  call.lost = &lost;
  try {
    Do(call);
  } catch (const Error& error) {
    if (!lost || !there) throw;
    const auto now = Stat(uri);
    if (now && now->size == there->size + bytes.size()) return;
    throw Error(error.code(), error.message() + "; it is unknown whether its bytes were appended");
  }
}

bool WebHdfs::RenameOnce(const std::string& from, const std::string& to,
                         const std::string& option) {
  bool lost = false;
  Call call{.doing = "rename", .uri = from, .method = "PUT"};
  call.lost = &lost;
  call.operation =
      "RENAME&renameoptions=" + option + "&destination=" + Escaped(PathOnSame(from, to));
  try {
    return ReadBoolean(Do(call).body).value_or(true);
  } catch (const Error& error) {
    // The first attempt has renamed the file, but its response was lost.
    if (lost && error.code() == ErrorCode::kNotFound && !Stat(from) && Stat(to)) return true;
    throw;
  }
}

void WebHdfs::Rename(const std::string& from, const std::string& to) {
  const Call call{.doing = "rename", .uri = from};
  const bool onto_itself = PathOnSame(from, to) == ParseRemote(from).path;
  const auto target = Stat(to);
  if (target && target->is_folder && !onto_itself) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument,
         fmt::format("{} is a folder", to));
  }
  if (!Stat(from)) Fail(call, options_.addresses[active_], ErrorCode::kNotFound, "no such path");
  if (!onto_itself) Replace(from, to, target.has_value());
}

void WebHdfs::Replace(const std::string& from, const std::string& to, bool has_target) {
  if (RenameOnce(from, to, "OVERWRITE")) return;
  // HttpFS does not support OVERWRITE and returns false if `to` exists.
  const std::string aside = TemporaryFor(to);
  // From here to the second rename, no file is named `to`. If the second rename fails, the old file
  // gets its name back.
  has_target = has_target && RenameOnce(to, aside, "NONE");
  std::string why = "the server rejects it; does the new name's folder exist?";
  ErrorCode code = ErrorCode::kInvalidArgument;
  try {
    if (RenameOnce(from, to, "NONE")) {
      if (has_target) DeleteOnce(aside);
      return;
    }
  } catch (const Error& error) {
    why = error.message();
    code = error.code();
  }
  try {
    if (has_target && !RenameOnce(aside, to, "NONE")) why += "; the previous file is " + aside;
  } catch (const Error&) {
    why += "; the previous file is " + aside;
  }
  const Call call{.doing = "rename", .uri = from};
  Fail(call, options_.addresses[active_], code, fmt::format("to {}: {}", to, why));
}

bool WebHdfs::Delete(const std::string& uri, bool recursive) {
  bool lost = false;
  Call call{.doing = "delete", .uri = uri, .method = "DELETE"};
  call.operation = fmt::format("DELETE&recursive={}", recursive);
  call.lost = &lost;
  // If a response was lost, assumes that its attempt deleted the file, so that the repeated one
  // found nothing to delete.
  return ReadBoolean(Do(call).body).value_or(false) || lost;
}

void WebHdfs::DeleteOnce(const std::string& uri) noexcept {
  try {
    Call call{.doing = "delete", .uri = uri, .method = "DELETE", .operation = "DELETE"};
    call.repeat = false;
    Do(call);
  } catch (const std::exception& error) {
    log::Warning("the temporary file {} cannot be deleted: {}", uri, error.what());
  }
}

void WebHdfs::MakeFolders(const std::string& uri) {
  const Call call{.doing = "create the folder", .uri = uri, .method = "PUT", .operation = "MKDIRS"};
  if (!ReadBoolean(Do(call).body).value_or(false)) {
    Fail(call, options_.addresses[active_], ErrorCode::kInvalidArgument,
         "the server replied that it did not create the folder");
  }
}

}  // namespace hearth::storage
