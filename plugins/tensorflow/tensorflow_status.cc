#include "plugins/tensorflow/tensorflow_status.h"

#include <dlfcn.h>

#include <exception>

#include "hearth/base/error.h"

namespace hearth::tensorflow {
namespace {

void (*set_status)(TF_Status*, TF_Code, const char*) = nullptr;

TF_Code CodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      // The code that TensorFlow expects for a path of the wrong kind.
      return TF_FAILED_PRECONDITION;
    case ErrorCode::kNotFound:
      return TF_NOT_FOUND;
    case ErrorCode::kDataLoss:
      return TF_DATA_LOSS;
    case ErrorCode::kUnavailable:
      return TF_UNAVAILABLE;
    case ErrorCode::kDeadlineExceeded:
      return TF_DEADLINE_EXCEEDED;
    case ErrorCode::kAborted:
      return TF_ABORTED;
    case ErrorCode::kPermissionDenied:
      return TF_PERMISSION_DENIED;
    case ErrorCode::kResourceExhausted:
      return TF_RESOURCE_EXHAUSTED;
    case ErrorCode::kUnimplemented:
      return TF_UNIMPLEMENTED;
    case ErrorCode::kInternal:
      break;
  }
  return TF_INTERNAL;
}

}  // namespace

bool FindStatusFunctions() {
  void* library = dlopen("libtensorflow_framework.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  set_status =
      reinterpret_cast<void (*)(TF_Status*, TF_Code, const char*)>(dlsym(library, "TF_SetStatus"));
  return set_status != nullptr;
}

void SetStatus(TF_Status* status, TF_Code code, const char* message) {
  set_status(status, code, message);
}

void Guarded(TF_Status* status, const std::function<void()>& body) {
  SetStatus(status, TF_OK, "");
  try {
    body();
  } catch (const Error& error) {
    SetStatus(status, CodeOf(error.code()), error.what());
  } catch (const std::exception& error) {
    SetStatus(status, TF_INTERNAL, error.what());
  }
}

}  // namespace hearth::tensorflow
