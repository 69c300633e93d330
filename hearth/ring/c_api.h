/* The feeding side of a ring as a C interface, for feeders in other languages (a JVM by JNI).
 * libhearth_feed.so exports exactly these functions. Only one thread may use a ring. Functions that
 * return int return 1 on success, 0 if the reader needs no more rows, and -1 on failure: see
 * hearth_ring_error. `timeout_s` limits their wait for space in the ring, in seconds from the call.
 * They fail if the reader has not freed enough space by then, or at once if its process has died.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowSchema;
struct ArrowArray;
typedef struct hearth_ring hearth_ring;

/* Takes ownership of both inherited descriptors. Null on failure: see hearth_ring_error(NULL). */
hearth_ring* hearth_ring_open(int memory_fd, int signal_fd);

/* Copies a record batch into the ring. The caller still owns the structs and must release them.
   Also fails for a column type that rings do not support. After a failure, some of the rows may
   have been written. */
int hearth_ring_write_arrow(hearth_ring* ring, const struct ArrowSchema* schema,
                            const struct ArrowArray* array, double timeout_s);
/* Writes a mark between rows, for example at the end of a partition. */
int hearth_ring_flush(hearth_ring* ring, double timeout_s);
/* Writes the end of the stream; call it after the last row. */
int hearth_ring_end(hearth_ring* ring, double timeout_s);
/* Makes the reader fail with this message. */
void hearth_ring_fail(hearth_ring* ring, const char* message);
/* Frees the ring. Without an earlier hearth_ring_end, the reader fails as if this process died. */
void hearth_ring_close(hearth_ring* ring);

/* Message of the last failure on this ring or, for NULL, of this thread's hearth_ring_open; empty
 * if the last call succeeded. Valid until the next call on the ring. */
const char* hearth_ring_error(const hearth_ring* ring);

#ifdef __cplusplus
}
#endif
