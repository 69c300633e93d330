// TensorFlow's functions for a TF_Status, looked up in the process that loads the plug-in: this
// library is linked against none, so that one build works with every version with the same C
// interface.
#pragma once

#include <functional>

#include "tensorflow/c/tf_status.h"

namespace hearth::tensorflow {

// Calls the process's function; false if TensorFlow's library is not loaded.
bool FindStatusFunctions();

void SetStatus(TF_Status* status, TF_Code code, const char* message);

// Sets TF_OK if `body` returns, else the code and message of the hearth::Error or other exception.
void Guarded(TF_Status* status, const std::function<void()>& body);

}  // namespace hearth::tensorflow
