#include "hearth/trainer/testing/train_session_testing.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/rendezvous/coordinator.h"
#include "hearth/trainer/train_session.h"

namespace hearth::trainer {
namespace {

StreamFds FeedRing(const Batches& batches, std::vector<Thread>* feeders) {
  ring::RingEnds ends = ring::CreateRing(1 << 20);
  auto writer = std::make_shared<ring::RingWriter>(std::move(ends.writer));
  feeders->emplace_back("feeder", [writer, batches] { WriteRows(writer.get(), batches); });
  return {ends.reader.memory.Release(), ends.reader.signal.Release()};
}

// A worker that sends the rows of an epoch whenever its trainer requests it.
class EpochFeeder {
 public:
  explicit EpochFeeder(Batches batches) : batches_(std::move(batches)) {
    ring::RingEnds ends = ring::CreateRing(1 << 20);
    writer_.emplace(std::move(ends.writer));
    reader_ = std::move(ends.reader);
  }

  StreamFds Stream() {
    StreamFds fds{reader_.memory.Release(), reader_.signal.Release()};
    fds.files_hash = std::accumulate(batches_.begin(), batches_.end(), uint64_t{1},
                                     [](uint64_t sum, const auto& b) { return sum + b.size(); });
    return fds;
  }

  void Start() {
    thread_ = Thread("feeder", [this] {
      while (WriteEpoch(&*writer_, batches_)) {
      }
    });
  }

 private:
  const Batches batches_;
  std::optional<ring::RingWriter> writer_;
  ring::RingEnd reader_;
  Thread thread_;  // last, so that it is joined before the members that it uses are destroyed
};

// Returns the weights of all layers, then the history.
std::vector<std::pair<std::string, const caffe::BlobProto*>> BlobsOf(const Trained& trained) {
  std::vector<std::pair<std::string, const caffe::BlobProto*>> blobs;
  for (const auto& layer : trained.model.layer()) {
    for (const auto& blob : layer.blobs()) blobs.emplace_back(layer.name(), &blob);
  }
  for (const auto& blob : trained.state.history()) blobs.emplace_back("history", &blob);
  return blobs;
}

}  // namespace

Job TrainSessionFixture::JobOf(const Training& training, int rank, int port) {
  Job job;
  job.token = token_;
  if (port > 0) job.coordinator = Endpoint{"127.0.0.1", port};
  job.rank = rank;
  job.world = training.processes;
  job.settings.devices = training.devices;
  const std::string format = training.hdf5 ? " snapshot_format: HDF5 " : " ";
  job.solver = {
      "tiny_solver.prototxt",
      TestSolver(training.max_iter, "snapshot_after_train: true" + format + training.solver)};
  job.net = {"tiny.prototxt", training.net.empty() ? TestNet(training.batch_size) : training.net};
  job.model = folder_.path("final.caffemodel");
  job.snapshot = training.snapshot;
  job.run = training.run;
  job.datasets = training.datasets;
  job.generation = training.generation;
  job.settings.on_other_rows = training.on_other_rows;
  job.settings.sync_every = training.sync_every;
  job.validate = !training.test.empty();
  job.seed = 3;
  return job;
}

Trained TrainSessionFixture::Train(const Training& training) {
  std::optional<rendezvous::Coordinator> coordinator;
  if (training.processes > 1) {
    rendezvous::CoordinatorOptions options;
    options.world = training.processes;
    options.token = token_;
    options.generation = static_cast<uint32_t>(training.generation);
    coordinator.emplace(options);
  }
  Trained trained;
  trained.hashes.resize(static_cast<size_t>(training.processes));
  std::mutex mutex;
  std::vector<std::unique_ptr<EpochFeeder>> epochs;
  std::vector<Thread> feeders, processes;
  for (int rank = 0; rank < training.processes; ++rank) {
    const auto index = static_cast<size_t>(rank);
    Job job = JobOf(training, rank, coordinator ? coordinator->port() : 0);
    EpochFeeder* epoch_feeder = nullptr;
    if (training.streamed) {
      epochs.push_back(std::make_unique<EpochFeeder>(training.train[index]));
      epoch_feeder = epochs.back().get();
      job.train = epoch_feeder->Stream();
    } else {
      job.train = FeedRing(training.train[index], &feeders);
    }
    if (job.validate) job.test = FeedRing(training.test[index], &feeders);
    TrainHooks hooks;
    hooks.send = [&, index, epoch_feeder](const nlohmann::json& event) {
      if (event["event"] == "rows") return epoch_feeder->Start();
      std::lock_guard lock(mutex);
      if (index == 0) trained.events.push_back(event);
      if (event["event"] == "done") trained.hashes[index] = event["weights_sha256"];
    };
    processes.emplace_back("process",
                           [job = std::move(job), hooks] { TrainSession(job, hooks).Run(); });
  }
  for (Thread& process : processes) process.Join();
  const std::string ending = training.hdf5 ? ".h5" : "";
  trained.model = caffe::ReadModel(folder_.path("final.caffemodel" + ending));
  trained.state = caffe::ReadState(
      folder_.path(fmt::format("tiny_iter_{}.solverstate{}", training.max_iter, ending)));
  return trained;
}

void ExpectSameTraining(const Trained& a, const Trained& b, float tolerance) {
  const auto first = BlobsOf(a), second = BlobsOf(b);
  ASSERT_GT(a.state.history().size(), 0u);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    const auto &x = first[i].second->data(), &y = second[i].second->data();
    ASSERT_EQ(x.size(), y.size()) << first[i].first;
    for (size_t j = 0; j < x.size(); ++j) {
      ASSERT_NEAR(x[j], y[j], tolerance * std::max(1.0f, std::abs(x[j])))
          << first[i].first << "[" << j << "]";
    }
  }
}

float LargestDifference(const Trained& a, const Trained& b) {
  const auto first = BlobsOf(a), second = BlobsOf(b);
  float largest = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < first[i].second->data().size(); ++j) {
      largest =
          std::max(largest, std::abs(first[i].second->data()[j] - second[i].second->data()[j]));
    }
  }
  return largest;
}

std::vector<Batches> Split(int processes, int iterations, int rows) {
  std::vector<Batches> split(static_cast<size_t>(processes));
  const int each = rows / processes;
  for (int k = 0; k < iterations; ++k) {
    for (int p = 0; p < processes; ++p) {
      split[static_cast<size_t>(p)].push_back(
          Numbers(k * rows + p * each, k * rows + (p + 1) * each));
    }
  }
  return split;
}

std::vector<nlohmann::json> ValidationsIn(const Trained& trained) {
  std::vector<nlohmann::json> found;
  for (const auto& event : trained.events) {
    if (event["event"] == "validation") found.push_back(event);
  }
  return found;
}

}  // namespace hearth::trainer
