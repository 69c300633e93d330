/* The feeding side of a ring as a C interface, for feeders in other languages (a JVM by JNI).
 * libhearth_feed.so exports exactly these. A ring belongs to one thread. Functions that return int
 * give 1 when done, 0 when the reader wants no more rows, -1 on failure: see hearth_ring_error.
 * `timeout_s` limits their wait for space in the ring, in seconds from the call: they fail if the
 * reader has not freed enough by then, or at once if its process has died. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowSchema;
struct ArrowArray;
typedef struct hearth_ring hearth_ring;

/* Takes over both inherited descriptors. Null on failure: see hearth_ring_error(NULL). */
hearth_ring* hearth_ring_open(int memory_fd, int signal_fd);

/* Copies a record batch into the ring; the caller keeps the structs and releases them. Also fails
   for a column type that rings do not support. After a failure some of the rows may be written. */
int hearth_ring_write_arrow(hearth_ring* ring, const struct ArrowSchema* schema,
                            const struct ArrowArray* array, double timeout_s);
/* A mark between rows, as at the end of a partition. */
int hearth_ring_flush(hearth_ring* ring, double timeout_s);
/* After the last row. */
int hearth_ring_end(hearth_ring* ring, double timeout_s);
/* Makes the reader fail with this message. */
void hearth_ring_fail(hearth_ring* ring, const char* message);
/* Frees the ring; without hearth_ring_end before, the reader sees this side's death. */
void hearth_ring_close(hearth_ring* ring);

/* The last failure on this ring; with NULL, of this thread's hearth_ring_open. Valid until the next
 * call on the ring; empty where nothing failed. */
const char* hearth_ring_error(const hearth_ring* ring);

#ifdef __cplusplus
}
#endif
