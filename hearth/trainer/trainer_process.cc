#include "hearth/trainer/trainer_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/parent_death.h"
#include "hearth/trainer/feature_session.h"
#include "hearth/trainer/job/control_channel.h"
#include "hearth/trainer/job/crash_report.h"
#include "hearth/trainer/job/describe_exception.h"
#include "hearth/trainer/job/job.h"
#include "hearth/trainer/train_session.h"

namespace hearth::trainer {
namespace {

constexpr double kJobTimeoutSeconds = 60;
constexpr int kFailed = 1;
constexpr int kWorkerGone = 2;

// Exits without running destructors, because other threads still use the objects.
[[noreturn]] void EndProcess(int exit_code) {
  std::fflush(nullptr);
  _exit(exit_code);
}

// Sends the "error" event with the failure and whether another rank caused it, and exits.
[[noreturn]] void Fail(ControlChannel& channel, const Job& job,
                       const rendezvous::Failure& failure) {
  const bool by_peer = !failure.IsReportOf(job.rank);
  nlohmann::json event = failure.ToJson();
  event["event"] = "error";
  event["by_peer"] = by_peer;
  if (by_peer) event["message"] = rendezvous::Shortened(failure.Describe());
  channel.Send(event);
  // Bypasses the log, because a thread that waits inside the log's sink would delay this line.
  std::fprintf(stderr, "hearth: %s\n", event["message"].get<std::string>().c_str());
  EndProcess(kFailed);
}

// Sends log lines to the worker and, unless they are errors, to the session for the driver.
void SendLogTo(ControlChannel& channel, TrainSession* session) {
  log::SetSink([&channel, session](const log::Record& record) {
    const std::string letter(1, "IWE"[static_cast<size_t>(record.level)]);
    const nlohmann::json event = {{"event", "log"}, {"level", letter}, {"text", record.line}};
    channel.Send(event);
    if (session && record.level != log::Level::kError) session->SendToCluster(event);
  });
}

// The thread that finds a failure ends the process, because the other threads may be inside a
// collective operation, a file read or user code, which cannot be interrupted.
void Train(const Job& job, ControlChannel& channel) {
  TrainHooks hooks;
  hooks.send = [&](const nlohmann::json& event) { channel.Send(event); };
  hooks.on_failure = [&](const rendezvous::Failure& failure) { Fail(channel, job, failure); };
  TrainSession session(job, std::move(hooks));
  SendLogTo(channel, &session);
  session.Run();
  log::SetSink({});
}

void Extract(const Job& job, ControlChannel& channel) {
  SendLogTo(channel, nullptr);
  FeatureSession session(job, [&](const nlohmann::json& event) { channel.Send(event); });
  session.Run();
  log::SetSink({});
}

}  // namespace

void RunTrainerProcess(int control_fd) {
  // Child processes must not inherit the control channel that this process inherited.
  fcntl(control_fd, F_SETFD, FD_CLOEXEC);
  // A write beyond the file size limit fails instead of ending the process.
  signal(SIGXFSZ, SIG_IGN);
  ControlChannel channel{Fd(control_fd)};
  Job job;
  try {
    // DieWithParent is called before anything waits, so that this process does not outlive its
    // worker.
    DieWithParent(getppid());
    job = ParseJob(channel.ReadLine(Deadline::After(kJobTimeoutSeconds)));
    // Watch is called after ReadLine, because both read the channel. From here on, only the end of
    // the channel is of interest, and it can arrive at any time.
    channel.Watch([] { EndProcess(kWorkerGone); });
    ReportCrashes(control_fd, job);
    if (job.mode == Mode::kTrain) {
      Train(job, channel);
    } else {
      Extract(job, channel);
    }
  } catch (...) {
    rendezvous::Failure failure = DescribeException(std::current_exception());
    failure.rank = job.rank;
    failure.host = job.host;
    Fail(channel, job, failure);
  }
}

}  // namespace hearth::trainer
