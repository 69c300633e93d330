#include "hearth/collective/transport/rdma_device.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "hearth/collective/transport/ucx_api.h"

namespace hearth::collective {
namespace {

// Returns the folder's entries sorted by name, so that messages do not change from run to run.
std::set<std::filesystem::path> EntriesOf(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> entries;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
    entries.insert(entry.path());
  }
  return entries;
}

// The kernel's `state` file of a usable port contains "4: ACTIVE".
bool IsActive(const std::filesystem::path& port) {
  std::ifstream file(port / "state");
  std::string state;
  std::getline(file, state);
  return state.find("ACTIVE") != std::string::npos;
}

}  // namespace

// The kernel lists devices as FOLDER/DEVICE/ports/NUMBER/state. UCX is loaded only if a port is
// active, because most hosts have none.
RdmaDevice FindRdmaDevice(const std::string& folder) {
  std::string names;
  for (const auto& device : EntriesOf(folder)) {
    for (const auto& port : EntriesOf(device / "ports")) {
      if (!IsActive(port)) continue;
      const std::string problem = ucx::Library().problem;
      if (!problem.empty()) return {.name = {}, .missing = problem};
      return {.name = fmt::format("{}:{}", device.filename().string(), port.filename().string()),
              .missing = {}};
    }
    names += (names.empty() ? "" : ", ") + device.filename().string();
  }
  if (names.empty()) return {.name = {}, .missing = fmt::format("no device in {}", folder)};
  return {.name = {}, .missing = fmt::format("no port of {} in {} is active", names, folder)};
}

}  // namespace hearth::collective
