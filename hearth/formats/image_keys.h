// Keys of CaffeOnSpark's SequenceFiles: pairs and tuples that Java serialized, which tell of an
// image. They are read without any class of Java. (Layout: the Java Object Serialization
// Specification, "Object Serialization Stream Protocol".)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::formats {

// What is null in the key is empty. Texts are UTF-8.
struct ImageKey {
  std::optional<std::string> id, label;
  std::optional<int32_t> channels, height, width;
  std::optional<bool> encoded;

  bool operator==(const ImageKey&) const = default;
};

// Nothing where the key is damaged, or is neither a pair of two texts, that of an image file, nor a
// tuple of the six values. Never throws for what the bytes are.
std::optional<ImageKey> ReadImageKey(std::string_view key);

}  // namespace hearth::formats
