#include "hearth/storage/file.h"

#include <exception>

#include "hearth/base/log.h"

namespace hearth::storage {

std::string ReadFile(const std::string& uri) { return For(uri).ReadAll(uri); }

bool Exists(const std::string& uri) { return For(uri).Stat(uri).has_value(); }

void RemoveQuietly(const std::string& uri) noexcept {
  try {
    For(uri).Delete(uri, /*recursive=*/false);
  } catch (const std::exception& error) {
    log::Warning("{} is left behind: {}", uri, error.what());
  }
}

}  // namespace hearth::storage
