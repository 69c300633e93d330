// Descriptors that travel beside bytes over a unix socket (SCM_RIGHTS). Failures are those of
// Connection (socket.h).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"
#include "hearth/base/socket.h"

namespace hearth {

// Of one call; the kernel drops what comes beyond them.
inline constexpr size_t kMaxDescriptors = 8;

// Waits until the socket takes some of `bytes` (at least one), and with the first of them copies of
// `descriptors`; returns how many bytes. Throws kInvalidArgument for too many descriptors.
size_t WriteWithDescriptors(const Connection& connection, std::string_view bytes,
                            std::span<const int> descriptors, Deadline deadline);

// Waits for at least one byte and reads up to `size`; 0 is end of file. Appends the descriptors
// that came with them: fewer than were sent where this process can have no more of them. They do
// not outlive an exec.
size_t ReadWithDescriptors(const Connection& connection, void* data, size_t size,
                           std::vector<Fd>* descriptors, Deadline deadline);

}  // namespace hearth
