#include "hearth/base/descriptors.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "hearth/base/error.h"

namespace hearth {
namespace {

// Buffer for one control message, with the alignment of `cmsghdr` that cmsg(3) requires.
struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
};

// Takes ownership of every descriptor in the message, including unexpected ones: the kernel has
// already installed them in this process, so a descriptor without an owner would leak.
void Take(const msghdr& message, std::vector<Fd>* descriptors) {
  for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(part))) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, reinterpret_cast<const char*>(part) + at, sizeof(int));
      descriptors->emplace_back(descriptor);
    }
  }
}

}  // namespace

size_t WriteWithDescriptors(const Connection& connection, std::string_view bytes,
                            std::span<const int> descriptors, Deadline deadline) {
  Require(descriptors.size() <= kMaxDescriptors, ErrorCode::kInvalidArgument,
          "{} descriptors cannot be sent at once; the limit is {}", descriptors.size(),
          kMaxDescriptors);
  iovec buffer = {const_cast<char*>(bytes.data()), bytes.size()};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  while (true) {
    // The kernel sends all descriptors with the first byte, even if the write is short; the caller
    // continues with a plain Write.
    const ssize_t sent = ::sendmsg(connection.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      Require(PollOne(connection.fd(), POLLOUT, deadline) != 0, ErrorCode::kDeadlineExceeded,
              "{} accepted no bytes before the deadline", connection.peer());
    } else if (errno != EINTR) {
      ThrowErrno(errno, fmt::format("cannot send descriptors to {}", connection.peer()));
    }
  }
}

size_t ReadWithDescriptors(const Connection& connection, void* data, size_t size,
                           std::vector<Fd>* descriptors, Deadline deadline) {
  while (true) {
    iovec buffer = {data, size};
    Control control;
    msghdr message = {};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    // recvmsg overwrites msg_controllen and msg_flags, so the header is built again for every try.
    const ssize_t got = ::recvmsg(connection.fd(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got >= 0) {
      Take(message, descriptors);
      return static_cast<size_t>(got);
    }
    if (errno == ECONNRESET) return 0;  // a reset is end of file, as in Connection::TryRead
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      Require(PollOne(connection.fd(), POLLIN, deadline) != 0, ErrorCode::kDeadlineExceeded,
              "received no data from {} before the deadline", connection.peer());
    } else if (errno != EINTR) {
      ThrowErrno(errno, fmt::format("cannot read from {}", connection.peer()));
    }
  }
}

}  // namespace hearth
