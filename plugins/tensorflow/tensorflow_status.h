// TensorFlow's own functions for a TF_Status, found in the process that loads the plug-in: this
// library is linked against none, so that one build serves every version with the same C interface.
#pragma once

#include <functional>

#include "tensorflow/c/tf_status.h"

namespace hearth::tensorflow {

// Sets what the process has; false where TensorFlow's library is not loaded.
bool FindStatusFunctions();

void SetStatus(TF_Status* status, TF_Code code, const char* message);

// Sets TF_OK if `body` returns, else what its hearth::Error or other exception says.
void Guarded(TF_Status* status, const std::function<void()>& body);

}  // namespace hearth::tensorflow
