#include "hearth/ring/ring.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/ring/ring_memory.h"

namespace hearth::ring {

RingEnds CreateRing(size_t capacity_bytes) {
  RingEnds ends;
  ends.writer.memory = RingMemory::Create(capacity_bytes);
  // Each side has separate descriptors, so that one side can be passed to another process and
  // closed here without affecting the other.
  ends.reader.memory = Duplicate(ends.writer.memory.get());
  int sockets[2];
  // A socketpair rather than an eventfd, because its end of file reports the other process's death.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    ThrowErrno(errno, "cannot create the wake-up socket of a ring");
  }
  ends.writer.signal = Fd(sockets[0]);
  ends.reader.signal = Fd(sockets[1]);
  return ends;
}

}  // namespace hearth::ring
