#include "hearth/ring/ring.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/ring/ring_memory.h"

namespace hearth::ring {
namespace {

Fd Duplicated(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0) ThrowErrno(errno, "cannot duplicate a ring's descriptor");
  return copy;
}

}  // namespace

RingEnd RingEnd::Duplicate() const { return {Duplicated(memory), Duplicated(signal)}; }

RingEnds CreateRing(size_t capacity_bytes) {
  RingEnds ends;
  ends.writer.memory = RingMemory::Create(capacity_bytes);
  ends.reader.memory = Duplicated(ends.writer.memory);
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    ThrowErrno(errno, "cannot create the wake-up socket of a ring");
  }
  ends.writer.signal = Fd(sockets[0]);
  ends.reader.signal = Fd(sockets[1]);
  return ends;
}

}  // namespace hearth::ring
