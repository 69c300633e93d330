// Arrow's C data interface, declared from its published layout: two structs that describe a batch
// and one for a stream of batches. Links no Arrow library.
#pragma once

#include <cstdint>

extern "C" {

// Type of a column or batch. Its owner calls `release` once; null means released.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

// Data of a column or batch. Its owner calls `release` once; null means released.
struct ArrowArray {
  int64_t length;
  int64_t null_count;  // -1: not computed
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

// A stream of batches of one schema. Its functions return 0 or an errno. One thread.
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"
