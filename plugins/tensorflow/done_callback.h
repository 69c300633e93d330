// Keeps the completion callback of an asynchronous kernel (docs/decisions/040).
#pragma once

#include <functional>

#include "plugins/tensorflow/tensorflow_functions.h"

namespace hearth::tensorflow {

// TensorFlow (2.8 to 2.21) passes the address of a parameter of its function, a
// std::function<void()> that is destroyed when the kernel returns. So an object in the caller's
// frames is copied; any other address is an object that outlives the call and is kept as is.
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
