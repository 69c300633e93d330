#include "plugins/tensorflow/collective_call.h"

#include <mutex>

namespace hearth::tensorflow {
namespace {

std::mutex use_mutex;  // held during a submission, so that Use() waits for it
const hearth_collective* in_use = nullptr;

TF_Code CodeOf(hearth_result result) {
  switch (result) {
    case HEARTH_DONE:
      return TF_OK;
    case HEARTH_INVALID:
      return TF_INVALID_ARGUMENT;
    case HEARTH_TIMEOUT:
      return TF_DEADLINE_EXCEEDED;
    // HEARTH_UNAVAILABLE does not become TF_UNAVAILABLE, because TensorFlow would convert that code
    // to an internal error if a function returned it.
    case HEARTH_UNAVAILABLE:
    case HEARTH_FAILED:
      break;
  }
  return TF_ABORTED;
}

}  // namespace

void Use(const hearth_collective* collective) {
  const std::lock_guard lock(use_mutex);
  in_use = collective;
}

int World() {
  const std::lock_guard lock(use_mutex);
  return in_use == nullptr ? 0 : in_use->world;
}

CollectiveCall::CollectiveCall(const Functions& functions, TF_OpKernelContext* context,
                               TF_AsyncOpKernelDoneCallback* done, int operations)
    : functions_(functions),
      context_(context),
      done_(functions, done),
      left_(operations),
      status_(functions.NewStatus()) {}

CollectiveCall::~CollectiveCall() {
  for (TF_Tensor* tensor : tensors_) functions_.DeleteTensor(tensor);
  functions_.DeleteStatus(status_);
}

TF_Tensor* CollectiveCall::Input(int index) {
  if (failed()) return nullptr;
  TF_Tensor* tensor = nullptr;
  functions_.GetInput(context_, index, &tensor, status_);
  return Own(tensor);
}

TF_Tensor* CollectiveCall::Output(int index, TF_DataType type, const std::vector<int64_t>& shape,
                                  size_t bytes) {
  if (failed()) return nullptr;
  return Own(functions_.AllocateOutput(context_, index, type, shape.data(),
                                       static_cast<int>(shape.size()), bytes, status_));
}

TF_Tensor* CollectiveCall::OutputLikeInput(int index, TF_Tensor*& input) {
  input = Input(index);
  if (input == nullptr) return nullptr;
  std::vector<int64_t> shape;
  for (int axis = 0; axis < functions_.NumDims(input); ++axis) {
    shape.push_back(functions_.Dim(input, axis));
  }
  // Releases our reference, because TensorFlow forwards a buffer only if there is no other
  // reference.
  tensors_.pop_back();
  functions_.DeleteTensor(input);
  int forwarded = -1;
  TF_Tensor* output = Own(
      functions_.ForwardInputOrAllocateOutput(context_, &index, 1, index, shape.data(),
                                              static_cast<int>(shape.size()), &forwarded, status_));
  input = forwarded == index ? nullptr : Input(index);
  return output;
}

TF_Tensor* CollectiveCall::Own(TF_Tensor* tensor) {
  if (tensor != nullptr) tensors_.push_back(tensor);
  if (functions_.GetCode(status_) == TF_OK) return tensor;
  Fail(functions_.GetCode(status_), functions_.Message(status_));
  return nullptr;
}

void CollectiveCall::Submit(const hearth_operation& operation) {
  if (failed()) return CountOne();
  std::unique_lock lock(use_mutex);
  if (in_use != nullptr) return in_use->submit(in_use->self, &operation, &Over, this);
  lock.unlock();
  Fail(TF_FAILED_PRECONDITION, "no group of ranks: call hearth.tensorflow.init() first");
  CountOne();
}

void CollectiveCall::Fail(TF_Code code, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (code_ != TF_OK) return;
  code_ = code;
  message_ = message;
}

bool CollectiveCall::failed() {
  const std::lock_guard lock(mutex_);
  return code_ != TF_OK;
}

void CollectiveCall::Over(void* self, hearth_result result, const char* message) {
  auto& call = *static_cast<CollectiveCall*>(self);
  if (result != HEARTH_DONE) call.Fail(CodeOf(result), message);
  call.CountOne();
}

void CollectiveCall::CountOne() {
  if (left_.fetch_sub(1) != 1) return;
  if (code_ != TF_OK) {
    functions_.SetStatus(status_, code_, message_.c_str());
    functions_.OpKernelContext_Failure(context_, status_);
  }
  const DoneCallback done = done_;
  delete this;  // releases the tensors before TensorFlow continues
  done();
}

}  // namespace hearth::tensorflow
