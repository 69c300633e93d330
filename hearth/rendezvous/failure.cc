#include "hearth/rendezvous/failure.h"

namespace hearth::rendezvous {

std::string Failure::Describe() const {
  if (rank < 0) return message;
  return fmt::format("rank {} on host {} {}{}", rank, host, lost ? "" : "failed: ", message);
}

Json Failure::ToJson() const {
  return {{"rank", rank},       {"host", host}, {"code", ErrorCodeName(code)},
          {"message", message}, {"lost", lost}, {"details", details}};
}

Failure Failure::FromJson(const Json& json) {
  Failure failure;
  failure.rank = json.value("rank", failure.rank);
  failure.host = json.value("host", failure.host);
  failure.code = ErrorCodeFromName(json.value("code", std::string("internal")));
  failure.message = json.value("message", failure.message);
  failure.lost = json.value("lost", failure.lost);
  failure.details = json.value("details", failure.details);
  return failure;
}

void ThrowFailure(const Failure& failure) { throw Error(ErrorCode::kAborted, failure.Describe()); }

}  // namespace hearth::rendezvous
