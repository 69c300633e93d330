// Sends descriptors over a unix socket (SCM_RIGHTS). Waits and throws as Connection (socket.h).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"
#include "hearth/base/socket.h"

namespace hearth {

// Per call; the kernel drops any more.
inline constexpr size_t kMaxDescriptors = 8;

// Waits until the socket accepts at least one of `bytes`, and with the first of them copies of
// `descriptors`; returns the number of bytes sent. Throws kInvalidArgument for too many
// descriptors.
size_t WriteWithDescriptors(const Connection& connection, std::string_view bytes,
                            std::span<const int> descriptors, Deadline deadline);

// Waits for at least one byte and reads up to `size`; 0 is end of file. Appends the descriptors
// that were sent with them: fewer than were sent if this process has reached its limit. They are
// close-on-exec.
size_t ReadWithDescriptors(const Connection& connection, void* data, size_t size,
                           std::vector<Fd>* descriptors, Deadline deadline);

}  // namespace hearth
