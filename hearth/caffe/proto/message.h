#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth::caffe {

class Message;
struct MessageDescriptor;

enum class FieldType {
  kInt32,
  kInt64,
  kUint32,
  kFloat,
  kDouble,
  kBool,
  kString,
  kBytes,
  kEnum,
  kMessage
};

// A value of an enum.
struct EnumValue {
  const char* name;
  int32_t number;
};

// An enum of the schema.
struct EnumDescriptor {
  const char* name;
  std::span<const EnumValue> values;

  const EnumValue* Find(std::string_view value_name) const;
  const EnumValue* Find(int32_t number) const;
};

// Access to a nested message whose type is unknown at compile time.
struct SubmessageAccess {
  size_t (*size)(const void* storage);
  const Message& (*at)(const void* storage, size_t index);
  Message& (*add)(void* storage);  // for a singular field: the message, created if absent
};

// A field of a message type, through which it can be read and written in any message of that type.
struct FieldDescriptor {
  const char* name;
  int32_t number;
  FieldType type;
  bool repeated, required, packed;
  uint32_t index;                         // position in the presence bits
  void* (*storage)(Message& message);     // address of the field: a T, std::vector<T> or Box<M>
  const EnumDescriptor* enumeration;      // kEnum only; values are stored as int32_t
  const MessageDescriptor& (*message)();  // kMessage only
  const SubmessageAccess* access;         // kMessage only

  template <typename T>
  T& Singular(Message& m) const {
    return *static_cast<T*>(storage(m));
  }
  template <typename T>
  const T& Singular(const Message& m) const {
    return *static_cast<const T*>(storage(const_cast<Message&>(m)));
  }
  template <typename T>
  std::vector<T>& Repeated(Message& m) const {
    return *static_cast<std::vector<T>*>(storage(m));
  }
  template <typename T>
  const std::vector<T>& Repeated(const Message& m) const {
    return *static_cast<const std::vector<T>*>(storage(const_cast<Message&>(m)));
  }

  // Number of values: 0 or 1 for a singular field.
  size_t Count(const Message& m) const;
  const Message& Submessage(const Message& m, size_t index) const {
    return access->at(storage(const_cast<Message&>(m)), index);
  }
  Message& AddSubmessage(Message& m) const { return access->add(storage(m)); }
};

// A message type of the schema.
struct MessageDescriptor {
  const char* name;
  std::span<const FieldDescriptor> fields;  // sorted by number

  const FieldDescriptor* Find(std::string_view field_name) const;
  const FieldDescriptor* Find(int32_t number) const;
};

// Base class of all generated messages. Their descriptors are the only table of fields, which the
// text format, the binary format and Python use. Messages are values: they can be copied and moved,
// and are not thread-safe for writing.
class Message {
 public:
  virtual ~Message() = default;
  virtual const MessageDescriptor& descriptor() const = 0;

  // Returns whether a singular field that is not a message is set. `index` is
  // FieldDescriptor::index.
  bool Has(uint32_t index) const { return present_[index]; }
  void SetPresent(uint32_t index, bool present) { present_[index] = present; }

 protected:
  Message() = default;
  Message(const Message&) = default;
  Message(Message&&) = default;
  Message& operator=(const Message&) = default;
  Message& operator=(Message&&) = default;

 private:
  std::bitset<80> present_;
};

// Owns a nested message that may be absent. A copy is deep.
template <typename M>
class Box {
 public:
  Box() = default;
  Box(const Box& other) : value_(other.value_ ? std::make_unique<M>(*other.value_) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(const Box& other) {
    if (this != &other) value_ = other.value_ ? std::make_unique<M>(*other.value_) : nullptr;
    return *this;
  }
  Box& operator=(Box&&) noexcept = default;

  bool has() const { return value_ != nullptr; }
  const M& get() const { return value_ ? *value_ : M::Default(); }
  M& Mutable() {
    if (!value_) value_ = std::make_unique<M>();
    return *value_;
  }
  void Clear() { value_.reset(); }

 private:
  std::unique_ptr<M> value_;
};

template <typename M>
inline constexpr SubmessageAccess kSingularAccess = {
    [](const void* s) -> size_t { return static_cast<const Box<M>*>(s)->has(); },
    [](const void* s, size_t) -> const Message& { return static_cast<const Box<M>*>(s)->get(); },
    [](void* s) -> Message& { return static_cast<Box<M>*>(s)->Mutable(); }};

template <typename M>
inline constexpr SubmessageAccess kRepeatedAccess = {
    [](const void* s) { return static_cast<const std::vector<M>*>(s)->size(); },
    [](const void* s, size_t i) -> const Message& {
      return (*static_cast<const std::vector<M>*>(s))[i];
    },
    [](void* s) -> Message& { return static_cast<std::vector<M>*>(s)->emplace_back(); }};

// Calls visit(std::type_identity<T>()), where T is the type in which values of `type` are stored.
template <typename Visit>
decltype(auto) VisitScalarType(FieldType type, Visit visit) {
  switch (type) {
    case FieldType::kInt64:
      return visit(std::type_identity<int64_t>());
    case FieldType::kUint32:
      return visit(std::type_identity<uint32_t>());
    case FieldType::kFloat:
      return visit(std::type_identity<float>());
    case FieldType::kDouble:
      return visit(std::type_identity<double>());
    case FieldType::kBool:
      return visit(std::type_identity<bool>());
    case FieldType::kString:
    case FieldType::kBytes:
      return visit(std::type_identity<std::string>());
    default:
      return visit(std::type_identity<int32_t>());
  }
}

// Stores one value: sets a singular field, or appends to a repeated field.
template <typename T>
void PutValue(Message& message, const FieldDescriptor& field, T value) {
  if (field.repeated) {
    field.Repeated<T>(message).push_back(std::move(value));
  } else {
    field.Singular<T>(message) = std::move(value);
    message.SetPresent(field.index, true);
  }
}

}  // namespace hearth::caffe
