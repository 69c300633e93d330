// The end of an asynchronous kernel, kept until it comes (docs/decisions/040).
#pragma once

#include <functional>

#include "plugins/tensorflow/tensorflow_functions.h"

namespace hearth::tensorflow {

// What TensorFlow (2.8 to 2.21) hands to a kernel is the address of its own function's parameter, a
// std::function<void()>, which is gone when the kernel returns. So what lies in the caller's frames
// is copied; an address elsewhere would be an object that lives on, and is kept as it is.
class DoneCallback {
 public:
  // To be made in the kernel's compute function, by the thread that called it.
  DoneCallback(const Functions& functions, TF_AsyncOpKernelDoneCallback* done);

  void operator()() const;

 private:
  const Functions& functions_;
  TF_AsyncOpKernelDoneCallback* kept_ = nullptr;
  std::function<void()> copy_;
};

}  // namespace hearth::tensorflow
