#include "hearth/trainer/failure.h"

#include <c10/util/Exception.h>

#include "hearth/rendezvous/failure.h"

namespace hearth::trainer {

nlohmann::json Failure::ToEvent() const {
  return {{"event", "error"}, {"code", ErrorCodeName(code)}, {"message", message}, {"rank", rank},
          {"host", host},     {"iteration", iteration},      {"layer", layer}};
}

Failure DescribeException(const std::exception_ptr& exception) {
  Failure failure;
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    failure.code = error.code();
    failure.message = error.message();
  } catch (const c10::Error& error) {
    failure.message = error.what_without_backtrace();
  } catch (const std::bad_alloc&) {
    failure.code = ErrorCode::kResourceExhausted;
    failure.message = "out of memory";
  } catch (const std::exception& error) {
    failure.message = error.what();
  } catch (...) {
    failure.message = "an exception of unknown type";
  }
  failure.message = rendezvous::Shortened(failure.message);
  failure.layer = LayerNameIn(failure.message);
  return failure;
}

std::string LayerNameIn(const std::string& message) {
  const std::string start = "layer '";
  const size_t begin = message.find(start);
  if (begin == std::string::npos) return "";
  const size_t name = begin + start.size();
  const size_t end = message.find('\'', name);
  return end == std::string::npos ? "" : message.substr(name, end - name);
}

}  // namespace hearth::trainer
