#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "hearth/collective/group.h"
#include "hearth/dataset/spool/row_stream.h"
#include "hearth/dataset/spool/spool.h"
#include "hearth/rendezvous/member.h"
#include "hearth/trainer/job/describe_exception.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/job/signal_effects.h"
#include "hearth/trainer/rows/invalid_rows.h"
#include "hearth/trainer/step/device_trainer.h"

namespace hearth::trainer {

// Callbacks through which a session reports to its process.
struct TrainHooks {
  // Receives every event except "error"; called from any thread.
  std::function<void(const nlohmann::json&)> send;
  // Called once, from any thread, at the first failure of any rank, after the other ranks have been
  // notified. In a process with several devices or with peers, the callback must exit the process,
  // because threads may be waiting for rows that never arrive.
  std::function<void(const rendezvous::Failure&)> on_failure;
  SignalEffects* signals = nullptr;
};

// One process of a training: its rank in the cluster, its rows, and a thread per device.
class TrainSession {
 public:
  // Takes ownership of the descriptors of the job's streams.
  TrainSession(Job job, TrainHooks hooks);
  ~TrainSession();

  // Trains to the end and sends "done". Throws the first failure of any rank, after calling
  // on_failure. If ranks or rows are kStepTimeoutSeconds late, the failure is kDeadlineExceeded.
  void Run();

  // Sends an event to the driver if it is from rank 0, or if it contains the times or a warning of
  // any rank.
  void SendToCluster(const nlohmann::json& event);

  const TrainOutcome& outcome() const { return outcome_; }

 private:
  // Origin of a failure: this rank itself, or its wait for other ranks or devices.
  enum class Cause { kHere, kWait };

  void Prepare();
  void JoinCluster();
  void OpenFeeds();
  std::shared_ptr<dataset::MinibatchSource> OpenTrainRows();
  void RunDevices();
  void RunDevice(int device);
  void Finish();
  void Send(const nlohmann::json& event);
  // Reports this rank's failure to the others, and aborts its groups.
  void FailLocally(const std::exception_ptr& exception, int64_t iteration, Cause cause);
  // Called after the threads are joined: reports a failure that another rank may have caused.
  void ReportConsequence();
  // Records the first failure of any rank and ends all waits. Later failures are ignored.
  void Fail(const rendezvous::Failure& failure);
  std::string Message(const rendezvous::Failure& failure) const;
  std::optional<rendezvous::Failure> failure();
  void AwaitFailure();

  const Job job_;
  const TrainHooks hooks_;
  InvalidRows invalid_rows_;
  std::unique_ptr<rendezvous::Member> member_;
  std::vector<std::unique_ptr<collective::Group>> groups_;  // one per device
  DeviceTeam team_;
  std::vector<std::shared_ptr<dataset::MinibatchSource>> rows_;
  std::shared_ptr<dataset::RowStream> train_rows_;
  std::shared_ptr<dataset::Spool> validation_rows_;
  TrainOutcome outcome_;

  std::mutex mutex_;
  std::condition_variable failed_;
  // The first failure of any rank. Guarded by mutex_.
  std::optional<rendezvous::Failure> failure_;
  // The first failure in this process that another rank or device probably caused. Reported only if
  // the other rank's failure does not arrive. Guarded by mutex_ until the device threads have been
  // joined.
  std::optional<rendezvous::Failure> consequence_;
  // Last member, so that it is destroyed first. Until then, its callback may abort the groups.
  std::optional<rendezvous::FailureWatch::Subscription> peer_failures_;
};

}  // namespace hearth::trainer
