#include "hearth/trainer/failure.h"

#include "hearth/caffe/net/layer_error.h"
#include "hearth/rendezvous/failure.h"

namespace hearth::trainer {

nlohmann::json Failure::ToEvent() const {
  return {{"event", "error"},  {"code", ErrorCodeName(code)}, {"message", message}, {"rank", rank},
          {"host", host},      {"iteration", iteration},      {"layer", layer},     {"lost", lost},
          {"by_peer", by_peer}};
}

Failure DescribeException(const std::exception_ptr& exception) {
  Failure failure;
  try {
    std::rethrow_exception(exception);
  } catch (const caffe::LayerError& error) {
    failure.code = error.code();
    failure.message = error.message();
    failure.layer = error.layer();
  } catch (const Error& error) {
    failure.code = error.code();
    failure.message = error.message();
  } catch (const std::bad_alloc&) {
    failure.code = ErrorCode::kResourceExhausted;
    failure.message = "out of memory";
  } catch (const std::exception& error) {
    failure.message = error.what();
  } catch (...) {
    failure.message = "an exception of unknown type";
  }
  failure.message = rendezvous::Shortened(failure.message);
  return failure;
}

}  // namespace hearth::trainer
