// Typed access to a JSON object; errors name the field by its full path.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::trainer {

// The fields of one JSON object. Absent and null fields return the fallback; wrong types throw
// kInvalidArgument. `object` must outlive the JobFields.
class JobFields {
 public:
  // `path` is the prefix in messages: empty for the job itself, "solver." for its solver.
  JobFields(const nlohmann::json& object, std::string path);

  // Throws kInvalidArgument if there is an unknown field. Call once all known fields have been
  // read.
  void RejectUnknownFields() const;

  bool Has(const char* name) const { return Find(name) != nullptr; }
  std::string String(const char* name, const std::string& fallback) const;
  std::string RequiredString(const char* name) const;
  int64_t Integer(const char* name, int64_t fallback, int64_t low, int64_t high) const;
  uint64_t Unsigned(const char* name, uint64_t fallback) const;
  bool Bool(const char* name, bool fallback) const;
  std::vector<std::string> Strings(const char* name) const;
  std::optional<JobFields> Object(const char* name) const;

  [[noreturn]] void Refuse(const char* name, std::string_view allowed) const;

 private:
  const nlohmann::json* Find(const char* name) const;

  const nlohmann::json& object_;
  std::string path_;
  mutable std::set<std::string, std::less<>> known_;
};

}  // namespace hearth::trainer
