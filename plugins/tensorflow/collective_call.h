// One execution of a kernel: its tensors, the collective operations on them, and its completion.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/collective/c_api.h"
#include "plugins/tensorflow/done_callback.h"
#include "plugins/tensorflow/tensorflow_functions.h"

namespace hearth::tensorflow {

// Stores the argument of hearth_tensorflow_use(). While it is null, there is no group of ranks, and
// Submit fails. Any thread may call Use.
void Use(const hearth_collective* collective);
// The number of ranks; 0 without a group.
int World();

// One execution of a kernel, which creates this object. Once the last of its operations has
// completed, the object deletes itself and notifies TensorFlow, from the collective's thread.
// TensorFlow starts no work on that thread.
class CollectiveCall {
 public:
  CollectiveCall(const Functions& functions, TF_OpKernelContext* context,
                 TF_AsyncOpKernelDoneCallback* done, int operations);
  CollectiveCall(const CollectiveCall&) = delete;
  CollectiveCall& operator=(const CollectiveCall&) = delete;

  // Return the `index`th input or output, which is valid as long as the call exists. Null after a
  // failure.
  TF_Tensor* Input(int index);
  TF_Tensor* Output(int index, TF_DataType type, const std::vector<int64_t>& shape, size_t bytes);
  // Returns the `index`th output, with the shape of its input. If nothing else references the
  // input's memory, the output reuses it and `input` becomes null. Otherwise `input` is set, and
  // its values have not been copied to the output.
  TF_Tensor* OutputLikeInput(int index, TF_Tensor*& input);
  // Submits one of the operations. After a failure, only counts it as completed.
  void Submit(const hearth_operation& operation);
  // Records a failure; only the first one is reported.
  void Fail(TF_Code code, const std::string& message);

 private:
  ~CollectiveCall();
  // Takes ownership of the tensor and returns it. If `status_` contains an error, records the
  // failure and returns null.
  TF_Tensor* Own(TF_Tensor* tensor);
  static void Over(void* self, hearth_result result, const char* message);
  bool failed();
  void CountOne();

  const Functions& functions_;
  TF_OpKernelContext* const context_;
  const DoneCallback done_;
  std::atomic<int> left_;
  TF_Status* const status_;
  std::vector<TF_Tensor*> tensors_;
  std::mutex mutex_;  // guards the members below
  TF_Code code_ = TF_OK;
  std::string message_;
};

}  // namespace hearth::tensorflow
