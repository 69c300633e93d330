// Sends descriptors over a unix socket (SCM_RIGHTS). Waits and errors are like those of Connection
// (socket.h).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/base/deadline.h"
#include "hearth/base/fd.h"
#include "hearth/base/socket.h"

namespace hearth {

// Maximum number of descriptors per call. The kernel drops those beyond it on receipt.
inline constexpr size_t kMaxDescriptors = 8;

// Sends copies of `descriptors` with the first of `bytes`. Waits until the socket accepts at least
// one byte; returns the number of bytes sent. Throws kInvalidArgument for too many descriptors.
size_t WriteWithDescriptors(const Connection& connection, std::string_view bytes,
                            std::span<const int> descriptors, Deadline deadline);

// Waits for at least one byte and reads up to `size`; 0 is end of file. Appends the descriptors
// that were sent with these bytes and sets close-on-exec on them. If this process reaches its limit
// of open descriptors, the remaining ones are lost.
size_t ReadWithDescriptors(const Connection& connection, void* data, size_t size,
                           std::vector<Fd>* descriptors, Deadline deadline);

}  // namespace hearth
