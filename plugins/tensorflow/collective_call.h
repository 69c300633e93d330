// One run of a kernel: the tensors whose operations a collective carries out, and the end.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/collective/c_api.h"
#include "plugins/tensorflow/done_callback.h"
#include "plugins/tensorflow/tensorflow_functions.h"

namespace hearth::tensorflow {

// What hearth_tensorflow_use() was given. Null: no group of ranks; then Submit says so. Any thread.
void Use(const hearth_collective* collective);
// The number of ranks; 0 without a group.
int World();

// Made by a kernel, deleted by itself once the last of its operations is over; then TensorFlow is
// told, from the collective's thread, in which it starts nothing of its own.
class CollectiveCall {
 public:
  CollectiveCall(const Functions& functions, TF_OpKernelContext* context,
                 TF_AsyncOpKernelDoneCallback* done, int operations);
  CollectiveCall(const CollectiveCall&) = delete;
  CollectiveCall& operator=(const CollectiveCall&) = delete;

  // The `index`th input and output, which live as long as the call. Null after a failure.
  TF_Tensor* Input(int index);
  TF_Tensor* Output(int index, TF_DataType type, const std::vector<int64_t>& shape, size_t bytes);
  // The `index`th output, like its input, in the same memory where nobody else has that; else
  // `input` is set, and its values are not yet in the output.
  TF_Tensor* OutputLikeInput(int index, TF_Tensor*& input);
  // Submits one of the operations; after a failure it only counts it.
  void Submit(const hearth_operation& operation);
  // The first one is the call's.
  void Fail(TF_Code code, const std::string& message);

 private:
  ~CollectiveCall();
  // Null where the call has failed; takes note of it in `status_`.
  TF_Tensor* Kept(TF_Tensor* tensor);
  static void Over(void* self, hearth_result result, const char* message);
  bool failed();
  void CountOne();

  const Functions& functions_;
  TF_OpKernelContext* const context_;
  const DoneCallback done_;
  std::atomic<int> left_;
  TF_Status* const status_;
  std::vector<TF_Tensor*> tensors_;
  std::mutex mutex_;  // guards what follows
  TF_Code code_ = TF_OK;
  std::string message_;
};

}  // namespace hearth::tensorflow
