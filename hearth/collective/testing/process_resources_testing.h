// Counts the system resources that this process holds, by kind, so that tests can find leaks.
#pragma once

#include <map>
#include <string>

namespace hearth::collective {

// Descriptors by target ("socket", "memfd", "eventfd", a path), threads, mappings of shared memory,
// files in /dev/shm, and kilobytes of memory that is locked or pinned for a device (RDMA).
using ProcessResources = std::map<std::string, long>;
ProcessResources CurrentResources();

// Polls until the result is `expected` or `seconds` have passed, because threads and connections of
// a library may end slightly later than their owner.
ProcessResources ResourcesSoon(const ProcessResources& expected, double seconds = 30);

}  // namespace hearth::collective
