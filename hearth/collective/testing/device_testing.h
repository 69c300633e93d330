// Groups with GPU memory for tests without a GPU: loads the libraries in stand_in/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hearth/collective/group.h"

namespace hearth::collective {

// Functions of the stand-ins (stand_in.h).
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

  // Throws kUnavailable if other libraries were loaded.
  static const StandIn& Get();
};

// Placement of the ranks: all on one host, one per host, or two per host.
enum class Layout { kOneHost, kHosts, kPairs };
std::string NameOf(Layout layout);

// Runs `body` once per rank, with a group that has opened a separate GPU for each rank.
void RunOnDevices(Layout layout, int ranks, const std::function<void(Group&)>& body);
// Like RunOnDevices, but does not open the devices.
void RunBeforeDevices(Layout layout, int ranks, const std::function<void(Group&)>& body);

// An array in device memory. The host accesses it only through copies.
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
