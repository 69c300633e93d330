// Decodes the keys of CaffeOnSpark's SequenceFiles, which are pairs and tuples serialized by Java
// that describe an image. Needs no JVM. (Format: the Java Object Serialization Specification,
// "Object Serialization Stream Protocol".)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::formats {

// Content of a key. A field is empty if the key's value is null. Strings are UTF-8.
struct ImageKey {
  std::optional<std::string> id, label;
  std::optional<int32_t> channels, height, width;
  std::optional<bool> encoded;

  bool operator==(const ImageKey&) const = default;
};

// Returns nullopt if the key is damaged, or is neither a pair of two strings (for an image file)
// nor a tuple of the six values. Never throws for invalid bytes.
std::optional<ImageKey> ReadImageKey(std::string_view key);

}  // namespace hearth::formats
