#include "hearth/trainer/testing/trainer_testing.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "hearth/base/error.h"

namespace hearth::trainer {
namespace {

constexpr double kFeedSeconds = 60;

std::string DataLayer(const char* phase, int batch_size) {
  return fmt::format(R"(
layer {{ name: "data" type: "CoSData" top: "x" top: "label" include {{ phase: {} }}
  source_class: "com.yahoo.ml.caffe.DataFrameSource"
  cos_data_param {{ batch_size: {} source: "unused"
    top {{ name: "x" type: FLOAT_ARRAY channels: 8 sample_num_axes: 1 }}
    top {{ name: "label" type: INT channels: 1 sample_num_axes: 0 }} }} }})",
                     phase, batch_size);
}

nlohmann::json FdsOf(const ring::RingEnd& end) {
  return {{"ring_fd", end.memory.get()}, {"signal_fd", end.signal.get()}};
}

}  // namespace

std::string TestNet(int batch_size) {
  return "name: \"tiny\"" + DataLayer("TRAIN", batch_size) + DataLayer("TEST", batch_size) + R"(
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  inner_product_param { num_output: 16 weight_filler { type: "xavier" } bias_filler { type: "constant" value: 0.1 } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";
}

std::string TestSolver(int max_iter, const std::string& more) {
  std::string text = fmt::format("max_iter: {} {}\n", max_iter, more);
  for (const char* field :
       {"net: \"tiny.prototxt\"", "base_lr: 0.2", "lr_policy: \"fixed\"", "momentum: 0.9",
        "weight_decay: 0.01", "clip_gradients: 0.5", "display: 5", "random_seed: 7",
        "snapshot_prefix: \"tiny\"", "snapshot_after_train: false", "solver_mode: CPU"}) {
    const std::string name(field, std::strchr(field, ':') + 1);
    if (more.find(name) == std::string::npos) text += std::string(field) + "\n";
  }
  return text;
}

void AddRows(const std::vector<int64_t>& numbers, batch::BatchBuilder* builder) {
  std::vector<std::vector<float>> x;
  std::vector<int32_t> label;
  std::vector<std::string> id;
  for (int64_t number : numbers) {
    std::vector<float> row;
    for (int i = 0; i < 8; ++i) {
      row.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(number * 8 + i))));
    }
    label.push_back((row[0] > 0) + 2 * (row[3] > 0));
    x.push_back(std::move(row));
    id.push_back(fmt::format("r{}", number));
  }
  builder->AddString("id", id).AddFloatList("x", x).AddInt32("label", label);
}

std::vector<int64_t> Numbers(int64_t begin, int64_t end) {
  std::vector<int64_t> numbers;
  for (int64_t number = begin; number < end; ++number) numbers.push_back(number);
  return numbers;
}

namespace {

bool WriteBatches(ring::RingWriter* writer, const std::vector<std::vector<int64_t>>& batches) {
  for (const auto& numbers : batches) {
    batch::BatchBuilder builder;
    AddRows(numbers, &builder);
    ArrowSchema schema;
    ArrowArray array;
    builder.Export(&schema, &array);
    if (!writer->WriteArrow(schema, array, Deadline::After(kFeedSeconds))) return false;
  }
  return true;
}

}  // namespace

void WriteRows(ring::RingWriter* writer, const std::vector<std::vector<int64_t>>& batches) {
  try {
    if (WriteBatches(writer, batches)) writer->WriteEnd(Deadline::After(kFeedSeconds));
  } catch (const Error&) {
  }
}

bool WriteEpoch(ring::RingWriter* writer, const std::vector<std::vector<int64_t>>& batches) {
  try {
    return WriteBatches(writer, batches) && writer->WriteFlush(Deadline::After(kFeedSeconds));
  } catch (const Error&) {
    return false;
  }
}

TestFolder::TestFolder() {
  path_ = (std::filesystem::temp_directory_path() / "hearth_trainer_XXXXXX").string();
  if (!mkdtemp(path_.data())) ThrowErrno(errno, "cannot create a folder for a test");
}

TestFolder::~TestFolder() { std::filesystem::remove_all(path_); }

TrainerHarness::TrainerHarness(nlohmann::json job, Streams streams) {
  auto [ours, theirs] = Connection::Pair();
  control_.emplace(std::move(ours));
  std::vector<ring::RingEnd> child_ends;
  auto feeding = [&](const char* name, std::unique_ptr<ring::RingWriter>* writer) {
    ring::RingEnds ends = ring::CreateRing(1 << 20);
    job["streams"][name] = FdsOf(ends.reader);
    *writer = std::make_unique<ring::RingWriter>(std::move(ends.writer));
    child_ends.push_back(std::move(ends.reader));
  };
  if (streams.train) feeding("train", &train_);
  if (streams.epochs) job["streams"]["train"]["files_hash"] = 1;
  if (streams.test) feeding("test", &test_);
  if (streams.results) {
    ring::RingEnds ends = ring::CreateRing(1 << 20);
    job["results"] = FdsOf(ends.writer);
    results_ = std::make_unique<ring::RingReader>(std::move(ends.reader));
    child_ends.push_back(std::move(ends.writer));
  }
  std::vector<int> inherited;
  for (const auto& end : child_ends) {
    inherited.push_back(end.memory.get());
    inherited.push_back(end.signal.get());
  }
  Start(inherited, theirs.fd());
  control_->Write(job.dump() + "\n", Deadline::After(10));
}

void TrainerHarness::Start(const std::vector<int>& inherited, int control_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd : inherited) posix_spawn_file_actions_adddup2(&actions, fd, fd);
  posix_spawn_file_actions_adddup2(&actions, control_fd, control_fd);
  std::string fd_text = std::to_string(control_fd);
  std::vector<std::string> words{HEARTH_PROGRAM, "trainer", "--control-fd", fd_text};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int result = posix_spawn(&pid_, HEARTH_PROGRAM, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (result != 0) ThrowErrno(result, "cannot start " HEARTH_PROGRAM);
}

TrainerHarness::~TrainerHarness() {
  if (!exit_code_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (auto& feeder : feeders_) feeder.join();
}

void TrainerHarness::FeedTrain(std::vector<std::vector<int64_t>> batches) {
  feeders_.emplace_back([this, batches = std::move(batches)] { WriteRows(train_.get(), batches); });
}

void TrainerHarness::FeedTest(std::vector<std::vector<int64_t>> batches) {
  feeders_.emplace_back([this, batches = std::move(batches)] { WriteRows(test_.get(), batches); });
}

std::optional<nlohmann::json> TrainerHarness::NextEvent(double seconds) {
  const Deadline deadline = Deadline::After(seconds);
  for (;;) {
    const size_t newline = pending_.find('\n');
    if (newline != std::string::npos) {
      events_.push_back(nlohmann::json::parse(pending_.substr(0, newline)));
      pending_.erase(0, newline + 1);
      return events_.back();
    }
    char buffer[4096];
    size_t count = 0;
    try {
      count = control_->ReadSome(buffer, sizeof buffer, deadline);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kDeadlineExceeded)
        ADD_FAILURE() << "no event before the deadline";
    }
    if (count == 0) return std::nullopt;
    pending_.append(buffer, count);
  }
}

nlohmann::json TrainerHarness::WaitFor(const std::string& name, double seconds) {
  const Deadline deadline = Deadline::After(seconds);
  while (auto event = NextEvent(deadline.remaining())) {
    if ((*event)["event"] == name) return *event;
    if ((*event)["event"] == "error") ADD_FAILURE() << event->dump();
  }
  ADD_FAILURE() << "the trainer ended without the event " << name;
  return nlohmann::json::object();
}

void TrainerHarness::Kill(int signal) { kill(pid_, signal); }
void TrainerHarness::CloseControl() { control_.reset(); }

int TrainerHarness::Wait(double seconds) {
  if (exit_code_) return *exit_code_;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  const bool ended = PollOne(pidfd, POLLIN, Deadline::After(seconds)) != 0;
  close(pidfd);
  if (!ended) {
    ADD_FAILURE() << "the trainer did not end in " << seconds << " s";
    kill(pid_, SIGKILL);
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return *exit_code_;
}

}  // namespace hearth::trainer
