#include "hearth/ring/c_api.h"

#include <exception>
#include <memory>
#include <string>

#include "hearth/ring/ring_writer.h"

#define HEARTH_EXPORT extern "C" __attribute__((visibility("default")))

struct hearth_ring {
  explicit hearth_ring(hearth::ring::RingEnd end) : writer(std::move(end)) {}
  hearth::ring::RingWriter writer;
  std::string error;
};

namespace {

using hearth::Deadline;

// Error of this thread's last hearth_ring_open(), which has no ring that could store it.
thread_local std::string open_error;

// Converts exceptions to a status, because none may propagate into C.
template <typename Call>
int Guarded(hearth_ring* ring, Call call) {
  // The previous call's error is no longer valid, as documented in the header.
  ring->error.clear();
  try {
    return call() ? 1 : 0;
  } catch (const std::exception& error) {
    ring->error = error.what();
    return -1;
  }
}

}  // namespace

HEARTH_EXPORT hearth_ring* hearth_ring_open(int memory_fd, int signal_fd) {
  open_error.clear();
  try {
    // Takes ownership before anything can fail, so the descriptors are closed in any case.
    return new hearth_ring({hearth::Fd(memory_fd), hearth::Fd(signal_fd)});
  } catch (const std::exception& error) {
    open_error = error.what();
    return nullptr;
  }
}

HEARTH_EXPORT int hearth_ring_write_arrow(hearth_ring* ring, const ArrowSchema* schema,
                                          const ArrowArray* array, double timeout_s) {
  return Guarded(
      ring, [&] { return ring->writer.WriteArrow(*schema, *array, Deadline::After(timeout_s)); });
}

HEARTH_EXPORT int hearth_ring_flush(hearth_ring* ring, double timeout_s) {
  return Guarded(ring, [&] { return ring->writer.WriteFlush(Deadline::After(timeout_s)); });
}

HEARTH_EXPORT int hearth_ring_end(hearth_ring* ring, double timeout_s) {
  return Guarded(ring, [&] { return ring->writer.WriteEnd(Deadline::After(timeout_s)); });
}

HEARTH_EXPORT void hearth_ring_fail(hearth_ring* ring, const char* message) {
  ring->writer.Fail(hearth::Error(hearth::ErrorCode::kInternal, message));
}

HEARTH_EXPORT void hearth_ring_close(hearth_ring* ring) { delete ring; }

HEARTH_EXPORT const char* hearth_ring_error(const hearth_ring* ring) {
  return ring == nullptr ? open_error.c_str() : ring->error.c_str();
}
