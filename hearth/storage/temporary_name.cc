#include "hearth/storage/temporary_name.h"

#include <fmt/format.h>

#include <random>

#include "hearth/storage/uri.h"

namespace hearth::storage {

std::string TemporaryFor(const std::string& uri) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return Join(FolderOf(uri), fmt::format(".{}.{:016x}.tmp", NameOf(uri), random()));
}

}  // namespace hearth::storage
