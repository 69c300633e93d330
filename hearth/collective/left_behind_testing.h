// For tests: what this process holds of the system, by kind, so that a test can say what is left of
// something that has ended.
#pragma once

#include <map>
#include <string>

namespace hearth::collective {

// Descriptors by what they are ("socket", "memfd", "eventfd", a path), threads, mappings of shared
// memory, files in /dev/shm, and kilobytes of memory that is pinned for a device (RDMA) or locked.
using Held = std::map<std::string, long>;
Held HeldNow();

// The same once it is `expected`, or after `seconds` in which it was not: threads and a library's
// own connections may end a little later than what they belonged to.
Held HeldSoon(const Held& expected, double seconds = 30);

}  // namespace hearth::collective
