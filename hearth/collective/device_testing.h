// For tests of GPUs' memory, without a GPU: the libraries in stand_in/, and groups that use them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hearth/collective/group.h"

namespace hearth::collective {

// The stand-ins' own functions (stand_in.h).
struct StandIn {
  void* (*allocate)(size_t bytes);
  void (*free)(void* memory);
  void* (*host)(const void* memory);
  void (*launch)(void* stream, void (*function)(void*), void* data);
  int (*streams)();
  void (*refuse)(int rank, int result);
  void (*hang)(int rank);
  void (*break_down)(int rank, int result);
  void (*heal)();
  int (*communicators)();

  // Throws kUnavailable where the libraries are other ones.
  static const StandIn& Get();
};

// Where ranks are: all on one host, a host each, two to a host.
enum class Places { kOneHost, kHosts, kPairs };
std::string NameOf(Places places);

// Runs `body` once per rank, with a group that has opened a GPU of its own for each.
void RunOnDevices(Places places, int ranks, const std::function<void(Group&)>& body);
// The same before they are opened.
void RunBeforeDevices(Places places, int ranks, const std::function<void(Group&)>& body);

// An array of which the host sees only copies.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values)
      : count_(values.size()), memory_(StandIn::Get().allocate(values.size() * sizeof(T))) {
    std::copy(values.begin(), values.end(), Host().begin());
  }
  ~DeviceArray() { StandIn::Get().free(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return static_cast<T*>(memory_); }
  size_t size() const { return count_; }
  std::span<T> Host() const { return {static_cast<T*>(StandIn::Get().host(memory_)), count_}; }
  std::vector<T> Values() const { return {Host().begin(), Host().end()}; }

 private:
  const size_t count_;
  void* const memory_;
};

}  // namespace hearth::collective
