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

// No destructors: other threads still use the objects.
[[noreturn]] void EndProcess(int exit_code) {
  std::fflush(nullptr);
  _exit(exit_code);
}

// Sends the "error" event: the failure, and whether it is another rank's.
[[noreturn]] void Fail(ControlChannel& channel, const Job& job,
                       const rendezvous::Failure& failure) {
  const bool by_peer = !failure.IsReportOf(job.rank);
  nlohmann::json event = failure.ToJson();
  event["event"] = "error";
  event["by_peer"] = by_peer;
  if (by_peer) event["message"] = rendezvous::Shortened(failure.Describe());
  channel.Send(event);
  // Bypasses the log: a thread that waits inside its sink must not delay this.
  std::fprintf(stderr, "hearth: %s\n", event["message"].get<std::string>().c_str());
  EndProcess(kFailed);
}

// Log lines go to the worker; those that Caffe would write, and warnings, also to the driver.
void SendLogTo(ControlChannel& channel, TrainSession* session) {
  log::SetSink([&channel, session](const log::Record& record) {
    const std::string letter(1, "IWE"[static_cast<size_t>(record.level)]);
    const nlohmann::json event = {{"event", "log"}, {"level", letter}, {"text", record.line}};
    channel.Send(event);
    if (session && record.level != log::Level::kError) session->SendToCluster(event);
  });
}

// A failure ends the process from the thread that finds it: the others may be inside a collective,
// a file read or user code, which nothing can interrupt.
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
  // Child processes must not inherit the descriptors that this process inherited.
  fcntl(control_fd, F_SETFD, FD_CLOEXEC);
  signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit is a write error
  ControlChannel channel{Fd(control_fd)};
  Job job;
  try {
    // Before anything that waits: a worker that dies now must not leave this process behind.
    DieWithParent(getppid());
    job = ParseJob(channel.ReadLine(Deadline::After(kJobTimeoutSeconds)));
    // After ReadLine, since both read the channel. From here on only the end of the channel
    // matters, and it can come at any time.
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
