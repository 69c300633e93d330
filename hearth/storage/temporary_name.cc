#include "hearth/storage/temporary_name.h"

#include <fmt/format.h>

#include <random>

#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

constexpr size_t kLongestName = 200;  // of the 255 bytes allowed

}  // namespace

std::string TemporaryFor(const std::string& uri) {
  std::random_device random;  // the state of a generator would be copied by fork
  // Without a trailing '/', which would put the name into another folder.
  const std::string file = IsLocal(uri) ? uri : ParseRemote(uri).text();
  std::string name = NameOf(file);
  if (name.size() > kLongestName) {
    // Not within a UTF-8 character: the names of HDFS are text.
    size_t end = kLongestName;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
    name.resize(end);
  }
  return Join(FolderOf(file), fmt::format(".{}.{:08x}{:08x}.tmp", name, random(), random()));
}

}  // namespace hearth::storage
