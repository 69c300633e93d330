/* C interface to background operations, for plug-ins that do not link with the core. The owner of a
 * queue passes the address of a hearth_collective to the plug-in. Any thread may call the functions
 * of the hearth_collective as long as the owner keeps the queue open. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In C++, a fixed underlying type makes out-of-range values from C callers well-defined. */
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
  HEARTH_INVALID = 1,     /* ranks disagree, or the operation is invalid */
  HEARTH_UNAVAILABLE = 2, /* a rank left */
  HEARTH_TIMEOUT = 3,     /* a rank did not arrive before the deadline */
  HEARTH_FAILED = 4       /* any other failure, such as an abort */
};

/* The fields are those of Request (operation/request.h). `count` is the number of elements of the
 * output. If `input` is null, the operation is in place. */
typedef struct hearth_operation {
  enum hearth_operation_kind kind;
  const void* input;
  void* output;
  size_t count;
  enum hearth_data_type type;
  enum hearth_reduction reduction;
  enum hearth_wire wire;
  int root;             /* broadcast only */
  const size_t* counts; /* all-gather only: sizes of the parts, by rank; null: equal */
  /* The following fields are compared between ranks and reported in errors. */
  const char* name;      /* may be null, as may the other pointers */
  const char* type_name; /* the caller's name of the type, if it differs from `type` */
  const int64_t* shape;  /* of the caller's tensor; null: not compared */
  int dims;              /* length of `shape` */
  uint64_t step;         /* the program's step counter; 0: none */
} hearth_operation;

/* Callback for the end of an operation. Called once: on the queue's thread, which it must not
 * block, or on the caller's thread if the operation is rejected. `message` is valid only during the
 * call. */
typedef void (*hearth_done)(void* context, enum hearth_result result, const char* message);

/* A queue as C functions. Any thread may submit; all ranks must submit in the same order. */
typedef struct hearth_collective {
  void* self;
  int rank;
  int world;
  /* Copies `operation`. Its input and output must stay valid until `done` is called. */
  void (*submit)(void* self, const hearth_operation* operation, hearth_done done, void* context);
} hearth_collective;

#ifdef __cplusplus
}
#endif
