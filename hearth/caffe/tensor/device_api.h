// The interface of device libraries: a table of C functions. It does not depend on torch's version,
// so the engine works with a library compiled for any version. The library is loaded when a device
// is requested. Engine and library include this file; the engine rejects a library with a different
// kHearthDeviceApiVersion.
#pragma once

#include <cstdint>

extern "C" {

constexpr int32_t kHearthDeviceApiVersion = 1;

// Calls X(name) for each operation, named as ATen's function. Operations listed with the argument
// `out` write their result to that tensor, or to a new tensor if `out` is kNone. device_ops.cc
// shows the arguments of the others.
// clang-format off
#define HEARTH_DEVICE_OPERATIONS(X)                                                              \
  /* pointwise: out, x */                                                                        \
  X(abs) X(exp) X(log) X(log1p) X(logical_not) X(neg) X(reciprocal) X(rsqrt) X(sigmoid) X(sign)  \
  X(sqrt) X(square) X(tanh)                                                                      \
  /* pointwise: out, a, b, each a tensor or a number */                                          \
  X(bitwise_and) X(bitwise_right_shift) X(bitwise_xor) X(div) X(eq) X(ge) X(gt) X(le)            \
  X(logical_and) X(lt) X(maximum) X(mul) X(ne) X(sigmoid_backward) X(tanh_backward)              \
  /* pointwise with numbers: add(out, a, b, alpha), clamp(out, x, min, max), ... */              \
  X(add) X(addcdiv) X(addcmul) X(clamp) X(clamp_min) X(elu) X(leaky_relu)                        \
  X(leaky_relu_backward) X(pow) X(sub)                                                           \
  /* products: out, ... */                                                                       \
  X(addmm) X(mm)                                                                                 \
  /* sums over axes, or over all if the list is empty: out, x, axes, keepdim */                  \
  X(mean) X(sum)                                                                                 \
  /* views */                                                                                    \
  X(expand) X(permute) X(reshape) X(select) X(slice) X(squeeze) X(transpose) X(unsqueeze)        \
  X(view)                                                                                        \
  /* values */                                                                                   \
  X(arange) X(clone) X(copy_) X(fill_) X(from_host) X(full) X(longs) X(to) X(to_host) X(zeros)   \
  X(contiguous) X(channels_last)                                                                 \
  /* indexing */                                                                                 \
  X(flip) X(gather) X(index_add_) X(index_select) X(masked_fill_) X(scatter_) X(scatter_add_)    \
  X(sort) X(where)                                                                               \
  /* layers */                                                                                   \
  X(_batch_norm_impl_index) X(_batch_norm_impl_index_backward) X(_softmax)                       \
  X(_softmax_backward_data) X(avg_pool2d) X(avg_pool2d_backward) X(convolution)                  \
  X(convolution_backward) X(max_pool2d_with_indices) X(max_pool2d_with_indices_backward)         \
  /* lists of tensors */                                                                         \
  X(_foreach_add_) X(_foreach_mul) X(_foreach_mul_) X(_foreach_sign) X(_foreach_sub_)            \
  X(linalg_vector_norm)                                                                          \
  /* properties of a tensor */                                                                   \
  X(data_ptr) X(device) X(is_alias_of) X(item) X(sizes) X(strides)                               \
  /* devices */                                                                                  \
  X(count_cuda) X(use_cuda) X(use_fastest_algorithms) X(synchronize) X(current_stream)           \
  X(enter_device) X(library_folder) X(set_threads)
// clang-format on

enum HearthDeviceOperation : int32_t {
#define HEARTH_DEVICE_ENUMERATOR(name) HEARTH_OP_##name,
  HEARTH_DEVICE_OPERATIONS(HEARTH_DEVICE_ENUMERATOR)
#undef HEARTH_DEVICE_ENUMERATOR
      HEARTH_OP_COUNT
};

// Element types, for operations with a type as argument or result.
enum HearthDeviceDtype : int32_t {
  HEARTH_FLOAT,
  HEARTH_BFLOAT16,
  HEARTH_INT,
  HEARTH_LONG,
  HEARTH_BOOL
};
enum HearthDeviceKind : int32_t { HEARTH_CPU, HEARTH_CUDA, HEARTH_META };

// An argument or a result. During a call, the caller owns the arrays of the arguments. The library
// owns the arrays of the results until the same thread's next call.
struct HearthDeviceValue {
  enum Type : int32_t { kNone, kTensor, kTensors, kInteger, kIntegers, kNumber, kPointer };
  int32_t type;
  int32_t count;  // number of elements of kTensors or kIntegers
  union {
    void* tensor;  // a handle; the caller must release the handles of results
    void* const* tensors;
    int64_t integer;
    const int64_t* integers;
    double number;
    void* pointer;
  };
};

// The functions of a device library. The table exists until the process ends.
struct HearthDeviceApi {
  int32_t version;
  const char* built_for;  // "torch 2.15.0"
  // Thread-safe, but only one thread at a time may use a tensor. `count` is the capacity for
  // results on entry, and their number on return. Returns 0 on success, 1 if memory is exhausted
  // and 2 for other failures. After a failure there are no results, and problem() returns the
  // reason on this thread.
  int32_t (*call)(int32_t operation, const HearthDeviceValue* arguments, int32_t argument_count,
                  HearthDeviceValue* results, int32_t* count);
  const char* (*problem)();
  void (*release)(void* tensor);
};

// The only function that a library exports. Never returns null.
const HearthDeviceApi* hearth_device_api();
}
