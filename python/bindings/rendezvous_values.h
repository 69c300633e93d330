// Values and failures of the rendezvous, as JSON texts and as Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/rendezvous/failure.h"
#include "python_json.h"

namespace hearth::bindings {

inline rendezvous::Json ParseValue(const std::string& text) {
  rendezvous::Json value = rendezvous::Json::parse(text, nullptr, false);
  Require(!value.is_discarded(), ErrorCode::kInvalidArgument,
          "a value for the other ranks is not JSON: {}", text.substr(0, 80));
  return value;
}

// Returns the value as JSON text. Replaces invalid UTF-8, so that a rank's message is always
// readable.
inline std::string Dump(const rendezvous::Json& value) {
  return value.dump(-1, ' ', false, rendezvous::Json::error_handler_t::replace);
}

inline rendezvous::Json FailureJson(const rendezvous::Failure& failure) {
  rendezvous::Json json = failure.ToJson();
  json["error"] = failure.message;
  json["message"] = failure.Describe();
  return json;
}

inline nanobind::object FailureDict(const std::optional<rendezvous::Failure>& failure) {
  return failure ? ToPython(FailureJson(*failure)) : nanobind::none();
}

inline nanobind::list ToPythonList(const std::vector<rendezvous::Json>& values) {
  nanobind::list list;
  for (const rendezvous::Json& value : values) list.append(ToPython(value));
  return list;
}

void DefineMember(nanobind::module_& m);

}  // namespace hearth::bindings
