#include "hearth/storage/file.h"

namespace hearth::storage {

std::string ReadFile(const std::string& uri) { return For(uri).ReadAll(uri); }

bool Exists(const std::string& uri) { return For(uri).Stat(uri).has_value(); }

}  // namespace hearth::storage
