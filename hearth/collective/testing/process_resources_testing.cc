#include "hearth/collective/testing/process_resources_testing.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "hearth/base/deadline.h"

namespace hearth::collective {
namespace {

namespace fs = std::filesystem;

// Kind of a descriptor's link target, without the number in "socket:[123]".
std::string KindOf(const std::string& target) {
  if (target.starts_with("socket:")) return "socket";
  if (target.starts_with("pipe:")) return "pipe";
  if (target.starts_with("/memfd:")) return "memfd";
  return target;
}

void CountDescriptors(ProcessResources* held) {
  std::error_code gone;  // set for the descriptor that the iteration itself uses
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    const std::string target = fs::read_symlink(entry.path(), gone).string();
    if (!gone && target.find("/proc/") != 0) ++(*held)[KindOf(target)];
  }
}

void CountMappings(ProcessResources* held) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") != std::string::npos) ++(*held)["mapping of a memfd"];
    if (line.find("/dev/shm/") != std::string::npos) ++(*held)["mapping of a file in /dev/shm"];
  }
}

// Counts the files in /dev/shm, except those of other programs.
void CountSharedFiles(ProcessResources* held) {
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename().string();
    for (const std::string_view prefix : {"hearth", "ucx", "nccl"}) {
      if (name.starts_with(prefix)) ++(*held)["file in /dev/shm"];
    }
  }
}

void CountThreadsAndPinnedMemory(ProcessResources* held) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    long value = 0;
    if (name == "Threads:" || name == "VmPin:" || name == "VmLck:") {
      status >> value;
      (*held)[name] = value;
    }
    std::getline(status, name);
  }
}

}  // namespace

ProcessResources CurrentResources() {
  ProcessResources held;
  CountDescriptors(&held);
  CountMappings(&held);
  CountSharedFiles(&held);
  CountThreadsAndPinnedMemory(&held);
  return held;
}

ProcessResources ResourcesSoon(const ProcessResources& expected, double seconds) {
  const Deadline deadline = Deadline::After(seconds);
  ProcessResources held = CurrentResources();
  while (held != expected && !deadline.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    held = CurrentResources();
  }
  return held;
}

}  // namespace hearth::collective
