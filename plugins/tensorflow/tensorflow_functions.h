#pragma once

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

#define HEARTH_TENSORFLOW_FUNCTIONS(X)            \
  X(NewStatus)                                    \
  X(DeleteStatus)                                 \
  X(SetStatus)                                    \
  X(GetCode)                                      \
  X(Message)                                      \
  X(NewOpDefinitionBuilder)                       \
  X(RegisterOpDefinition)                         \
  X(OpDefinitionBuilderAddAttr)                   \
  X(OpDefinitionBuilderAddInput)                  \
  X(OpDefinitionBuilderAddOutput)                 \
  X(OpDefinitionBuilderSetIsStateful)             \
  X(OpDefinitionBuilderSetShapeInferenceFunction) \
  X(ShapeInferenceContextNumInputs)               \
  X(NewShapeHandle)                               \
  X(DeleteShapeHandle)                            \
  X(ShapeInferenceContextGetInput)                \
  X(ShapeInferenceContextSetOutput)               \
  X(ShapeInferenceContextSetUnknownShape)         \
  X(NewAsyncKernelBuilder)                        \
  X(RegisterKernelBuilder)                        \
  X(RunAsyncOpKernelDoneCallback)                 \
  X(OpKernelConstruction_GetAttrSize)             \
  X(OpKernelConstruction_GetAttrInt32)            \
  X(OpKernelConstruction_GetAttrStringList)       \
  X(OpKernelConstruction_Failure)                 \
  X(OpKernelContext_Failure)                      \
  X(NumInputs)                                    \
  X(GetInput)                                     \
  X(AllocateOutput)                               \
  X(ForwardInputOrAllocateOutput)                 \
  X(DeleteTensor)                                 \
  X(TensorType)                                   \
  X(NumDims)                                      \
  X(Dim)                                          \
  X(TensorByteSize)                               \
  X(TensorElementCount)                           \
  X(TensorData)

namespace hearth::tensorflow {

// TensorFlow's C functions for ops and kernels, looked up in the TensorFlow that this process has
// loaded. The plug-in is therefore not linked against TensorFlow, and one build works with every
// version that has these functions.
struct Functions {
#define HEARTH_MEMBER(name) decltype(&TF_##name) name = nullptr;
  HEARTH_TENSORFLOW_FUNCTIONS(HEARTH_MEMBER)
#undef HEARTH_MEMBER
};

// Returns null if no TensorFlow is loaded, or if it lacks one of the functions. The result is the
// same at every call.
const Functions* FindFunctions();

}  // namespace hearth::tensorflow
