#include "hearth/trainer/job/crash_report.h"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "hearth/caffe/net/layer_step.h"

namespace hearth::trainer {
namespace {

struct FatalSignal {
  int number;
  std::string_view name;
  std::string_view likely_cause = "";
};
constexpr std::array<FatalSignal, 5> kFatal = {
    {{SIGSEGV, "SIGSEGV"},
     {SIGBUS, "SIGBUS",
      ": a memory-mapped file (a database, a SequenceFile, spooled rows) was truncated, or its "
      "disk failed; do not change the files of a run, and start it again"},
     {SIGFPE, "SIGFPE"},
     {SIGILL, "SIGILL"},
     {SIGABRT, "SIGABRT"}}};

int control_fd = -1;
char identity[512];  // fields of the event that are known in advance, as JSON
std::atomic<int64_t> current_iteration{-1};

// Builds the line that the signal handler writes. Async-signal-safe: does not allocate or lock.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    for (const char c : text) {
      if (size_ + 1 < sizeof text_) text_[size_++] = c;
    }
    return *this;
  }
  // Appends the content of a JSON string. Characters that need an escape become question marks.
  Line& Quoted(std::string_view text) {
    for (const char c : text) {
      const bool plain = static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
      *this << std::string_view(plain ? &c : "?", 1);
    }
    return *this;
  }
  Line& operator<<(int64_t number) {
    char digits[24];
    size_t begin = sizeof digits;
    uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    do digits[--begin] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0) digits[--begin] = '-';
    return *this << std::string_view(digits + begin, sizeof digits - begin);
  }
  void Send(int fd) const { (void)::send(fd, text_, size_, MSG_NOSIGNAL | MSG_DONTWAIT); }

 private:
  char text_[2048];
  size_t size_ = 0;
};

// The signal handler, which runs in the crashed thread. The layer whose name it reads may be
// damaged too; if this causes a second fault, the default handler ends the process.
void Report(int number) {
  FatalSignal found = {number, "a signal"};
  for (const FatalSignal& fatal : kFatal) {
    if (fatal.number == number) found = fatal;
  }
  const caffe::LayerStep step = caffe::CurrentLayerStep();
  const std::string_view layer = step.layer != nullptr ? step.layer->name() : std::string_view();
  const int64_t iteration = current_iteration;
  Line line;
  line << "{\"event\":\"error\",\"code\":\"unavailable\",\"lost\":true," << identity
       << "\"iteration\":" << iteration << ",\"layer\":\"";
  line.Quoted(layer) << "\",\"message\":\"";
  if (iteration >= 0) line << "iteration " << iteration << ": ";
  if (step.layer != nullptr) {
    line << "layer '";
    line.Quoted(layer) << "' (";
    line.Quoted(step.layer->type()) << "), " << step.doing << ": ";
  }
  line << "its trainer process crashed with " << found.name << found.likely_cause << "\"}\n";
  line.Send(control_fd);
  raise(number);  // ends the process, because the default handler has been restored
}

}  // namespace

void ReportCrashes(int fd, const Job& job) {
  control_fd = fd;
  const std::string rank = nlohmann::json{{"host", job.host}, {"rank", job.rank}}.dump(
      -1, ' ', true, nlohmann::json::error_handler_t::replace);
  // The fields are built in advance, because a signal handler cannot allocate. Fields that do not
  // fit are omitted entirely, because truncated fields would make the line invalid JSON.
  const std::string fields = rank.substr(1, rank.size() - 2) + ",";
  std::strncpy(identity, fields.size() < sizeof identity ? fields.c_str() : "",
               sizeof identity - 1);
  // The handler needs its own stack in case the signal is a stack overflow.
  static std::vector<char> stack(64 << 10);
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = Report;
  // With RESETHAND, a fault inside the handler ends the process. With NODEFER, the signal that the
  // handler raises is delivered at once instead of after the handler returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK | SA_NODEFER;
  for (const FatalSignal& fatal : kFatal) sigaction(fatal.number, &action, nullptr);
}

void SetIterationForCrashes(int64_t iteration) noexcept { current_iteration = iteration; }

}  // namespace hearth::trainer
