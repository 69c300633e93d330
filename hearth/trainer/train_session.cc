#include "hearth/trainer/train_session.h"

#include <chrono>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/thread.h"
#include "hearth/base/timeline.h"
#include "hearth/caffe/tensor/random.h"
#include "hearth/dataset/spool/round_robin_sources.h"
#include "hearth/dataset/spool/spool_source.h"
#include "hearth/dataset/spool/streamed_source.h"
#include "hearth/trainer/job/step_timeout.h"

namespace hearth::trainer {
namespace {

// Long enough for the slowest rank to load its libraries and read its job.
constexpr double kConnectTimeoutSeconds = 300;
// Added to the heartbeat timeout, within which the coordinator decides which rank has failed.
constexpr double kVerdictSeconds = 20;

std::shared_ptr<dataset::Spool> OpenSpool(const StreamFds& fds, const std::string& directory) {
  dataset::SpoolOptions options;
  options.directory = fds.spill_dir.empty() ? directory : fds.spill_dir;
  return std::make_shared<dataset::Spool>(ring::RingEnd{Fd(fds.ring_fd), Fd(fds.signal_fd)},
                                          options);
}

// Returns true if a wait ended because another rank left or aborted it.
bool EndedByOthers(const rendezvous::Failure& failure) {
  return failure.code == ErrorCode::kAborted || failure.code == ErrorCode::kUnavailable;
}

}  // namespace

TrainSession::TrainSession(Job job, TrainHooks hooks)
    : job_(std::move(job)),
      hooks_(std::move(hooks)),
      invalid_rows_(job_.invalid_row_limit(),
                    [this](const nlohmann::json& event) { Send(event); }) {}

TrainSession::~TrainSession() = default;

void TrainSession::Run() {
  try {
    Prepare();
    RunDevices();
    if (!failure()) Finish();
  } catch (...) {
    // After JoinCluster(), only waits for other ranks can fail here, because RunDevice catches the
    // errors of its device.
    FailLocally(std::current_exception(), -1, member_ ? Cause::kWait : Cause::kHere);
    ReportConsequence();
  }
  if (const auto first = failure()) throw Error(first->code, Message(*first));
}

std::optional<rendezvous::Failure> TrainSession::failure() {
  std::lock_guard lock(mutex_);
  return failure_;
}

void TrainSession::Prepare() {
  if (!job_.settings.timeline.empty()) timeline::WriteTo(job_.settings.timeline);
  OpenFeeds();  // first, so that feeders need not wait for the slowest rank
  JoinCluster();
}

void TrainSession::OpenFeeds() {
  if (job_.test) validation_rows_ = OpenSpool(*job_.test, job_.spill_dir);
  if (!job_.train) {
    rows_.resize(static_cast<size_t>(job_.settings.devices));
    return;
  }
  auto source = OpenTrainRows();
  if (job_.settings.devices == 1) {
    rows_ = {std::move(source)};
  } else {
    rows_ = dataset::RoundRobinSources(std::move(source), job_.settings.devices);
  }
}

// The order of the rows follows from the seed and the rank, whether the rows are spooled or sent
// again in each epoch.
std::shared_ptr<dataset::MinibatchSource> TrainSession::OpenTrainRows() {
  const uint64_t seed = caffe::MixSeed(job_.seed, static_cast<uint64_t>(job_.rank));
  if (!job_.train->files_hash) {
    auto spool = OpenSpool(*job_.train, job_.spill_dir);
    train_rows_ = spool;
    return std::make_shared<dataset::SpoolSource>(std::move(spool),
                                                  dataset::ReplayOptions{.seed = seed});
  }
  dataset::StreamedOptions options;
  options.seed = seed;
  options.hash = *job_.train->files_hash;
  auto source = std::make_shared<dataset::StreamedSource>(
      ring::RingEnd{Fd(job_.train->ring_fd), Fd(job_.train->signal_fd)}, options,
      // The feeder is this process's own worker, so this event is not sent to the cluster.
      [this](int64_t epoch) {
        hooks_.send({{"event", "rows"}, {"stream", "train"}, {"epoch", epoch}});
      });
  train_rows_ = source;
  return source;
}

void TrainSession::JoinCluster() {
  // Each device is in two groups: team_ connects the devices of this process, which share memory
  // and weights; groups_ connects all devices of the job.
  team_.groups = collective::Group::ConnectThreads(job_.settings.devices);
  if (!job_.coordinator) {
    groups_ = collective::Group::ConnectThreads(job_.settings.devices);
    return;
  }
  rendezvous::MemberOptions options;
  options.host = job_.coordinator->host;
  options.port = job_.coordinator->port;
  options.token = job_.token;
  options.generation = static_cast<uint32_t>(job_.generation);
  options.rank = job_.rank;
  options.world = job_.world;
  options.host_name = job_.host;
  member_ = std::make_unique<rendezvous::Member>(options);
  peer_failures_ =
      member_->OnFailure([this](const rendezvous::Failure& failure) { Fail(failure); });
  // Reserve is called after OnFailure, so that no failure of another rank is missed during its
  // wait.
  member_->Reserve({{"devices", job_.settings.devices}});
  collective::GroupOptions group;
  group.listen_host = job_.listen_host;
  group.timeout_s = kConnectTimeoutSeconds;
  group.local_ranks = job_.settings.devices;
  group.wire =
      job_.settings.connection == "ethernet" ? collective::Medium::kTcp : collective::Medium::kAuto;
  groups_ = collective::Group::Connect(*member_, group);
}

void TrainSession::RunDevices() {
  std::vector<Thread> threads;
  for (int device = 1; device < job_.settings.devices; ++device) {
    threads.emplace_back(fmt::format("device {}", device), [this, device] { RunDevice(device); });
  }
  // Device 0 runs in this thread, so a job with one device needs no other thread.
  RunDevice(0);
  for (Thread& thread : threads) thread.Join();
  ReportConsequence();
}

void TrainSession::RunDevice(int device) {
  DeviceOptions options;
  options.device = device;
  options.team = &team_;
  options.group = groups_[static_cast<size_t>(device)].get();
  options.rows = rows_[static_cast<size_t>(device)];
  options.stream = train_rows_;
  if (device == 0) options.validation_rows = validation_rows_;
  options.invalid_rows = &invalid_rows_;
  options.signals = hooks_.signals;
  options.send = [this](const nlohmann::json& event) { Send(event); };
  DeviceTrainer trainer(job_, std::move(options));
  try {
    trainer.Run();
    // All ranks have finished: stop the feeder, whose remaining rows no rank needs.
    if (train_rows_) train_rows_->Stop();
    if (device == 0) outcome_ = trainer.outcome();
  } catch (...) {
    const auto index = static_cast<size_t>(device);
    // A failed operation breaks its group. In that case the error comes from a wait, and another
    // rank may have caused it.
    const bool waited = groups_[index]->broken() || team_.groups[index]->broken();
    FailLocally(std::current_exception(), trainer.iteration(),
                waited ? Cause::kWait : Cause::kHere);
  }
}

void TrainSession::Finish() {
  const nlohmann::json done = {{"event", "done"},
                               {"iteration", outcome_.iteration},
                               {"validations", outcome_.validations},
                               {"model", outcome_.model},
                               {"snapshot", outcome_.snapshot},
                               {"weights_sha256", outcome_.weights_sha256},
                               {"invalid_rows", invalid_rows_.count()}};
  if (member_) {
    // No rank is done before the model is written, so that all ranks fail if writing it fails.
    member_->Barrier("trained", Deadline::After(kStepTimeoutSeconds));
    member_->Done(done);
  }
  hooks_.send(done);
}

void TrainSession::Send(const nlohmann::json& event) {
  hooks_.send(event);
  SendToCluster(event);
}

void TrainSession::SendToCluster(const nlohmann::json& event) {
  const std::string kind = event.value("event", "");
  const bool of_any_rank = kind == "rank" || event.value("level", "") == "W";
  if (!member_ || (job_.rank != 0 && !of_any_rank)) return;
  try {
    if (kind == "log") return member_->SendLogLine(event);
    member_->SendEvent(event);
  } catch (const std::exception&) {
    // OnFailure reports a lost coordinator separately.
  }
}

void TrainSession::FailLocally(const std::exception_ptr& exception, int64_t iteration,
                               Cause cause) {
  // Errors after the first failure are only its consequences.
  if (failure()) return;
  rendezvous::Failure failure = DescribeException(exception);
  failure.rank = job_.rank;
  failure.host = job_.host;
  if (failure.iteration < 0 && iteration >= 0) {
    failure.iteration = iteration;
    failure.message = fmt::format("iteration {}: {}", iteration, failure.message);
  }
  failure.consequence = cause == Cause::kWait && EndedByOthers(failure);
  if (failure.consequence) {
    const std::lock_guard lock(mutex_);
    if (!consequence_) consequence_ = failure;
  } else if (member_) {
    member_->SendFailure(failure);
  }
  // The coordinator notifies the other processes. In this process, the threads of other devices may
  // be inside an operation, which must end before they can be joined.
  for (auto& group : groups_) group->Abort(failure.message);
  // team_ is aborted even if the failure is a consequence, because the other devices would wait for
  // this one.
  for (auto& group : team_.groups) group->Abort(failure.message);
  if (!failure.consequence) Fail(failure);
}

// Called after all device threads of this process have ended.
void TrainSession::ReportConsequence() {
  if (failure() || !consequence_) return;
  if (member_) {
    member_->SendFailure(*consequence_);
    AwaitFailure();
  }
  Fail(*consequence_);
}

// The coordinator reports a failure to all members once it knows the cause, or once its heartbeat
// timeout has passed without one. A member that loses its coordinator reports a failure too. The
// limit applies if neither happens.
void TrainSession::AwaitFailure() {
  const std::chrono::duration<double> limit(member_->heartbeat_timeout_s() + kVerdictSeconds);
  std::unique_lock lock(mutex_);
  failed_.wait_for(lock, limit, [this] { return failure_.has_value(); });
}

void TrainSession::Fail(const rendezvous::Failure& failure) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  failed_.notify_all();
  // groups_ are aborted by their own subscriptions (Group::Connect).
  for (auto& group : team_.groups) group->Abort(Message(failure));
  if (hooks_.on_failure) hooks_.on_failure(failure);
}

std::string TrainSession::Message(const rendezvous::Failure& failure) const {
  return failure.IsReportOf(job_.rank) ? failure.message : failure.Describe();
}

}  // namespace hearth::trainer
