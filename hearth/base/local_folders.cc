#include "hearth/base/local_folders.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hearth {

std::vector<std::string> LocalFolders() {
  std::vector<std::string> folders;
  // Standalone workers set SPARK_EXECUTOR_DIRS, YARN sets LOCAL_DIRS, and Kubernetes and
  // administrators set SPARK_LOCAL_DIRS. The separators are those of Spark's
  // Utils.getConfiguredLocalDirs.
  for (const auto& [name, separator] :
       {std::pair{"SPARK_EXECUTOR_DIRS", ':'}, {"LOCAL_DIRS", ','}, {"SPARK_LOCAL_DIRS", ','}}) {
    const char* const value = std::getenv(name);
    const std::string_view all = value == nullptr ? "" : value;
    for (size_t start = 0; start < all.size();) {
      const size_t end = std::min(all.find(separator, start), all.size());
      if (end > start) folders.emplace_back(all.substr(start, end - start));
      start = end + 1;
    }
    if (!folders.empty()) break;
  }
  return folders;
}

}  // namespace hearth
