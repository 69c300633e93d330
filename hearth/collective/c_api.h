/* Operations in the background as a C interface, for plug-ins that are linked with nothing of the
 * core: who owns the queue hands out the address of a hearth_collective. Its functions may be
 * called from any thread as long as the owner says that it is open. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C++ has room for any number only where the type says so, and any may come over this interface. */
#ifdef __cplusplus
#define HEARTH_OF_INT : int
#else
#define HEARTH_OF_INT
#endif

enum hearth_operation_kind HEARTH_OF_INT {
  HEARTH_ALL_REDUCE = 0,
  HEARTH_ALL_GATHER = 1,
  HEARTH_BROADCAST = 2
};
enum hearth_reduction HEARTH_OF_INT {
  HEARTH_SUM = 0,
  HEARTH_MEAN = 1,
  HEARTH_MIN = 2,
  HEARTH_MAX = 3
};
enum hearth_data_type HEARTH_OF_INT {
  HEARTH_FLOAT32 = 0,
  HEARTH_FLOAT64 = 1,
  HEARTH_FLOAT16 = 2,
  HEARTH_BFLOAT16 = 3,
  HEARTH_INT32 = 4,
  HEARTH_INT64 = 5,
  HEARTH_UINT8 = 6,
  HEARTH_BOOL = 7
};
enum hearth_wire HEARTH_OF_INT {
  HEARTH_WIRE_AS_IS = 0,
  HEARTH_WIRE_FLOAT16 = 1,
  HEARTH_WIRE_BFLOAT16 = 2
};
enum hearth_result HEARTH_OF_INT {
  HEARTH_DONE = 0,
  HEARTH_INVALID = 1,     /* ranks disagree, or what was asked makes no sense */
  HEARTH_UNAVAILABLE = 2, /* a rank left */
  HEARTH_TIMEOUT = 3,     /* a rank did not come in time */
  HEARTH_FAILED = 4       /* anything else, as an abort */
};

/* As hearth/collective/request.h: `count` is the output's, input null means in place. */
typedef struct hearth_operation {
  enum hearth_operation_kind kind;
  const void* input;
  void* output;
  size_t count;
  enum hearth_data_type type;
  enum hearth_reduction reduction;
  enum hearth_wire wire;
  int root;             /* of a broadcast */
  const size_t* counts; /* of an all-gather's parts, one per rank; null: equal parts */
  /* What follows is compared between the ranks and reported in errors. */
  const char* name;      /* may be null, as may the other pointers */
  const char* type_name; /* where the caller's type has another name than `type` */
  const int64_t* shape;  /* of the caller's tensor; null: not compared */
  int dims;              /* how many numbers `shape` has */
  uint64_t step;         /* the program's own count of its steps; 0: it does not count */
} hearth_operation;

/* Called once, from the queue's thread, which it must not block, or, where an operation is refused,
 * from the caller's. `message` is valid during the call. */
typedef void (*hearth_done)(void* context, enum hearth_result result, const char* message);

typedef struct hearth_collective {
  void* self;
  int rank;
  int world;
  /* Copies the operation; its memory must stay until `done` was called. */
  void (*submit)(void* self, const hearth_operation* operation, hearth_done done, void* context);
} hearth_collective;

#ifdef __cplusplus
}
#endif
