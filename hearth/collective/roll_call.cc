#include "hearth/collective/roll_call.h"

#include <exception>
#include <mutex>

#include "hearth/rendezvous/member.h"

namespace hearth::collective {
namespace {

using rendezvous::Attendee;

class OfMembers : public RollCall {
 public:
  explicit OfMembers(rendezvous::Member& member) : member_(member) {}

  void Come(const Attendee& attendee) noexcept override {
    try {
      member_.Come(attendee);
    } catch (const std::exception&) {
    }
  }

  std::optional<std::vector<int>> Absent(const Attendee& attendee) noexcept override {
    try {
      return member_.Absent(attendee);
    } catch (const std::exception&) {  // some rank has failed: all will hear of it
      return std::nullopt;
    }
  }

 private:
  rendezvous::Member& member_;
};

class OfThreads : public RollCall {
 public:
  void Come(const Attendee& attendee) noexcept override {
    const std::lock_guard lock(mutex_);
    attendance_.Come(attendee);
  }

  std::optional<std::vector<int>> Absent(const Attendee& attendee) noexcept override {
    const std::lock_guard lock(mutex_);
    return attendance_.Absent(attendee.group, attendee.step);
  }

 private:
  std::mutex mutex_;
  rendezvous::Attendance attendance_;
};

}  // namespace

std::shared_ptr<RollCall> RollCallOf(rendezvous::Member& member) {
  return std::make_shared<OfMembers>(member);
}

std::shared_ptr<RollCall> RollCallOfThreads() { return std::make_shared<OfThreads>(); }

}  // namespace hearth::collective
