#include "hearth/storage/temporary_name.h"

#include <fmt/format.h>

#include <random>

#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

constexpr size_t kLongestName = 200;  // file systems allow 255 bytes

}  // namespace

std::string TemporaryFor(const std::string& uri) {
  std::random_device random;  // not a pseudorandom generator, whose state fork would copy
  // For a remote URI, text() removes a trailing '/', which would put the temporary name into
  // another folder.
  const std::string file = IsLocal(uri) ? uri : ParseRemote(uri).text();
  std::string name = NameOf(file);
  if (name.size() > kLongestName) {
    // Does not cut within a UTF-8 character, because names in HDFS must be valid text.
    size_t end = kLongestName;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    name.resize(end);
  }
  return Join(FolderOf(file), fmt::format(".{}.{:08x}{:08x}.tmp", name, random(), random()));
}

}  // namespace hearth::storage
