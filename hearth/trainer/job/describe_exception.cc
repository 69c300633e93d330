#include "hearth/trainer/job/describe_exception.h"

#include <new>

#include "hearth/caffe/solver/iteration_error.h"

namespace hearth::trainer {

rendezvous::Failure DescribeException(const std::exception_ptr& exception) {
  rendezvous::Failure failure;
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    failure.code = error.code();
    failure.message = error.message();
    if (const auto* of_layer = dynamic_cast<const caffe::LayerError*>(&error)) {
      failure.layer = of_layer->layer();
    }
    if (const auto* of_iteration = dynamic_cast<const caffe::IterationError*>(&error)) {
      failure.iteration = of_iteration->iteration();
    }
  } catch (const std::bad_alloc&) {
    failure.code = ErrorCode::kResourceExhausted;
    failure.message = "out of memory";
  } catch (const std::exception& error) {
    failure.message = error.what();
  } catch (...) {
    failure.message = "an exception of unknown type";
  }
  return failure;
}

}  // namespace hearth::trainer
