// TensorFlow's functions for a TF_Status, looked up in the process that loads the plug-in. This
// library is not linked against TensorFlow, so that one build works with every version that has the
// same C interface.
#pragma once

#include <functional>

#include "tensorflow/c/tf_status.h"

namespace hearth::tensorflow {

// Looks up TensorFlow's functions for a TF_Status; returns false if its library is not loaded.
bool FindStatusFunctions();

void SetStatus(TF_Status* status, TF_Code code, const char* message);

// Runs `body`. Sets TF_OK if it returns, else the code and message of the exception that it throws.
void Guarded(TF_Status* status, const std::function<void()>& body);

}  // namespace hearth::tensorflow
