// For tests: a small net, rows for it, and the `hearth trainer` process as a Spark task runs it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/socket.h"
#include "hearth/batch/batch_builder.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/ring/ring_writer.h"

namespace hearth::trainer {

// A net over columns x (8 floats) and label (0..3): InnerProduct, ReLU, InnerProduct, loss; its
// TEST phase adds accuracy. Both phases are fed by CoSData layers.
std::string TestNet(int batch_size);
// A solver with momentum, decay and clipping. Fields in `more` override these.
std::string TestSolver(int max_iter, const std::string& more = "");

// Adds rows with the given numbers. A row's number determines its x, label and id ("r<number>").
void AddRows(const std::vector<int64_t>& numbers, batch::BatchBuilder* builder);
std::vector<int64_t> Numbers(int64_t begin, int64_t end);

// Writes batches of the rows with these numbers to a ring, then ends the stream. If the reader has
// died, returns silently, because the reader reports the reason itself.
void WriteRows(ring::RingWriter* writer, const std::vector<std::vector<int64_t>>& batches);
// Like WriteRows, but marks the end of an epoch instead of the stream. Returns false if the reader
// is gone.
bool WriteEpoch(ring::RingWriter* writer, const std::vector<std::vector<int64_t>>& batches);

// A temporary folder, removed on destruction.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Runs the trainer as a child process. The caller reads its events and checks whether it failed.
class TrainerHarness {
 public:
  // The streams to add to `job`, which has none.
  struct Streams {
    bool train = true;
    bool test = false;
    bool results = false;
    bool epochs = false;  // "train" is sent again in each epoch, by WriteEpoch
  };
  TrainerHarness(nlohmann::json job, Streams streams);
  ~TrainerHarness();

  // Writes rows into the stream from a separate thread, then ends it. The thread ends if the
  // trainer dies meanwhile.
  void FeedTrain(std::vector<std::vector<int64_t>> batches);
  void FeedTest(std::vector<std::vector<int64_t>> batches);
  ring::RingWriter& train() { return *train_; }
  ring::RingWriter& test() { return *test_; }
  ring::RingReader& results() { return *results_; }

  // Returns the next event, or nullopt at end of stream. Fails the test after `seconds`. The
  // default is long because RDMA is tested in an emulated machine, which is slow if the host is
  // busy.
  std::optional<nlohmann::json> NextEvent(double seconds = 60);
  // Skips to the event with that name and returns it, or a null object if it never arrives.
  // events() contains the skipped events too.
  nlohmann::json WaitFor(const std::string& name, double seconds = 60);
  const std::vector<nlohmann::json>& events() const { return events_; }

  pid_t pid() const { return pid_; }
  void Kill(int signal);
  void CloseControl();
  // Waits for the process to end; returns the exit code, or minus the signal.
  int Wait(double seconds = 30);

 private:
  void Start(const std::vector<int>& inherited, int control_fd);

  std::optional<Connection> control_;
  std::string pending_;
  std::vector<nlohmann::json> events_;
  std::unique_ptr<ring::RingWriter> train_, test_;
  std::unique_ptr<ring::RingReader> results_;
  std::vector<std::thread> feeders_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

}  // namespace hearth::trainer
