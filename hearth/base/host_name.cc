#include "hearth/base/host_name.h"

#include <unistd.h>

#include <climits>

namespace hearth {

std::string HostName() {
  // gethostname() does not terminate a name that fills the buffer.
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, HOST_NAME_MAX) == 0 ? name : "unknown";
}

}  // namespace hearth
