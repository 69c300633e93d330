#include "hearth/trainer/job/job_fields.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::trainer {

JobFields::JobFields(const nlohmann::json& object, std::string path)
    : object_(object), path_(std::move(path)) {}

// Called after all fields have been read, because reading a field adds it to known_. A field that
// this version does not know is an error, because ignoring a setting would change the training.
void JobFields::RejectUnknownFields() const {
  for (const auto& [name, value] : object_.items()) {
    Require(known_.contains(name), ErrorCode::kInvalidArgument,
            "the job has an unknown field \"{}{}\"; known fields: {}", path_, name,
            fmt::join(known_, ", "));
  }
}

const nlohmann::json* JobFields::Find(const char* name) const {
  // Reading a field makes its name known even if the field is absent. Null counts as absent,
  // because Python writes None as null.
  known_.insert(name);
  auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void JobFields::Refuse(const char* name, std::string_view allowed) const {
  const nlohmann::json* value = Find(name);
  // The token must not appear in a log, not even in an error about its format.
  const bool secret = std::string_view(name) == "token";
  Throw(ErrorCode::kInvalidArgument, "the job's field \"{}{}\" must be {}, got {}", path_, name,
        allowed,
        secret  ? "another value"
        : value ? value->dump().substr(0, 80)
                : "nothing");
}

std::string JobFields::String(const char* name, const std::string& fallback) const {
  const nlohmann::json* value = Find(name);
  if (!value) return fallback;
  if (!value->is_string()) Refuse(name, "a string");
  return value->get<std::string>();
}

std::string JobFields::RequiredString(const char* name) const {
  std::string value = String(name, "");
  if (value.empty()) Refuse(name, "a non-empty string");
  return value;
}

int64_t JobFields::Integer(const char* name, int64_t fallback, int64_t low, int64_t high) const {
  const nlohmann::json* value = Find(name);
  if (!value) return fallback;
  // A JSON number above the range of int64_t is unsigned and would wrap around when converted, so
  // it is compared before the conversion.
  const bool fits =
      value->is_number_integer() &&
      (!value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t{INT64_MAX}) &&
      value->get<int64_t>() >= low && value->get<int64_t>() <= high;
  if (!fits) Refuse(name, fmt::format("an integer from {} to {}", low, high));
  return value->get<int64_t>();
}

uint64_t JobFields::Unsigned(const char* name, uint64_t fallback) const {
  const nlohmann::json* value = Find(name);
  if (!value) return fallback;
  if (!value->is_number_unsigned()) Refuse(name, "a non-negative integer");
  return value->get<uint64_t>();
}

bool JobFields::Bool(const char* name, bool fallback) const {
  const nlohmann::json* value = Find(name);
  if (!value) return fallback;
  if (!value->is_boolean()) Refuse(name, "true or false");
  return value->get<bool>();
}

std::vector<std::string> JobFields::Strings(const char* name) const {
  const nlohmann::json* value = Find(name);
  if (!value) return {};
  const bool strings =
      value->is_array() &&
      std::all_of(value->begin(), value->end(), [](const auto& v) { return v.is_string(); });
  if (!strings) Refuse(name, "a list of strings");
  return value->get<std::vector<std::string>>();
}

std::optional<JobFields> JobFields::Object(const char* name) const {
  const nlohmann::json* value = Find(name);
  if (!value) return std::nullopt;
  if (!value->is_object()) Refuse(name, "an object");
  return JobFields(*value, path_ + name + ".");
}

}  // namespace hearth::trainer
