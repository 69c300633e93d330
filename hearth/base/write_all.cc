#include "hearth/base/write_all.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hearth/base/error.h"

namespace hearth {

void WriteAll(int fd, std::string_view bytes, const std::string& name) {
  constexpr size_t kMaxTransferBytes = size_t{1} << 30;  // a call transfers at most 2 GiB
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxTransferBytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) ThrowErrno(errno, fmt::format("cannot write {}", name));
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace hearth
