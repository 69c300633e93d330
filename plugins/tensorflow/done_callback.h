// Keeps the completion callback of an asynchronous kernel (docs/decisions/040).
#pragma once

#include <functional>

#include "plugins/tensorflow/tensorflow_functions.h"

namespace hearth::tensorflow {

// The completion callback of a kernel. TensorFlow (2.8 to 2.21) passes the address of a function
// parameter, a std::function<void()> that is destroyed when the kernel returns. Therefore an object
// in the callers' stack frames is copied. An object at any other address outlives the call and is
// referenced.
class DoneCallback {
 public:
  // Must be constructed in the kernel's compute function, on the thread that called it.
  DoneCallback(const Functions& functions, TF_AsyncOpKernelDoneCallback* done);

  void operator()() const;

 private:
  const Functions& functions_;
  TF_AsyncOpKernelDoneCallback* original_ = nullptr;
  std::function<void()> copy_;
};

}  // namespace hearth::tensorflow
