#include "hearth/collective/transport_choice.h"

#include <cstdlib>
#include <string>

#include "hearth/base/error.h"

namespace hearth::collective {

GroupOptions WithChosenTransport(GroupOptions options) {
  const char* value = std::getenv("HEARTH_TRANSPORT");
  const std::string choice = value == nullptr ? "" : value;
  if (choice.empty() || choice == "auto") return options;
  if (choice == "tcp") {
    options.shared_memory = false;
  } else if (choice == "shm") {
    options.only_shared_memory = true;
  } else {
    Throw(ErrorCode::kInvalidArgument,
          "HEARTH_TRANSPORT={} in the environment: it is auto, shm or tcp", choice);
  }
  return options;
}

}  // namespace hearth::collective
