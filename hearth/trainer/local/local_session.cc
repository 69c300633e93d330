#include "hearth/trainer/local/local_session.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/log_files.h"
#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/caffe/solver/solver_nets.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/storage/file.h"
#include "hearth/tensorboard/run_record.h"
#include "hearth/trainer/local/local_net.h"
#include "hearth/trainer/local/local_rows.h"
#include "hearth/trainer/rows/net_source.h"
#include "hearth/trainer/step/compute_devices.h"
#include "hearth/trainer/step/output_means.h"
#include "hearth/trainer/train_session.h"

namespace hearth::trainer {
namespace {

PrototxtFile ReadPrototxt(const std::string& path) { return {path, storage::ReadFile(path)}; }

Job LocalJob(const LocalOptions& options) {
  Job job;
  job.local = true;
  job.host = "localhost";
  job.threads = ComputeThreads(options);
  job.weights = options.weights;
  job.snapshot = options.snapshot;
  job.settings = options.settings;
  job.level = options.level;
  job.stages = options.stages;
  job.spill_dir = TemporaryFolder();
  return job;
}

// Passes ownership of the descriptors to the job, as if the job had inherited them from a worker.
StreamFds Release(ring::RingEnd end) { return {end.memory.Release(), end.signal.Release()}; }

double Now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

bool WantsTests(const caffe::SolverParameter& solver) {
  return solver.test_interval() > 0 && solver.test_iter_size() > 0 && solver.test_iter(0) > 0;
}

// Returns the prototxt's seed, else the seed of the snapshot to resume from, else a new one.
uint64_t SeedOf(const caffe::SolverParameter& solver, const std::string& snapshot) {
  if (solver.random_seed() >= 0) return static_cast<uint64_t>(solver.random_seed());
  if (!snapshot.empty()) {
    const auto position = caffe::WholeSnapshot({"", snapshot}).position;
    if (position) return position->seed;
  }
  return std::random_device()();
}

// Uses one solver thread per GPU of the -gpu flag.
void UseDevices(const LocalOptions& options, const caffe::SolverParameter& solver, Job* job) {
  job->gpus = FindGpus(options.gpu);
  job->settings.devices = std::max(1, static_cast<int>(job->gpus.size()));
  std::vector<std::string> names;
  for (int i = 0; i < job->settings.devices; ++i) {
    names.push_back(NameOf(ChooseDevice(job->gpus, solver, i)));
  }
  log::Info("Use {}.", fmt::join(names, ", "));
}

// One line per value, as the caffe program writes them.
void LogMeans(caffe::Net& net, const OutputMeans& means) {
  const auto sizes = means.sizes();
  const auto values = OutputMeans::MeansOf(means.Pack(sizes), sizes);
  double loss = 0;
  std::vector<std::string> lines;
  for (size_t i = 0; i < values.size(); ++i) {
    const float weight = net.loss_weight(means.names()[i]);
    for (const float value : values[i]) {
      loss += weight * value;
      lines.push_back(fmt::format("{} = {:.6g}", means.names()[i], value));
      if (weight != 0) {
        lines.back() += fmt::format(" (* {:.6g} = {:.6g} loss)", weight, weight * value);
      }
    }
  }
  log::Info("Loss: {:.6g}", loss);
  for (const std::string& line : lines) log::Info("{}", line);
}

void LogOutputs(caffe::Net& net, int batch) {
  for (const std::string& name : net.output_names()) {
    caffe::Blob& blob = net.blob(name);
    const std::span<const float> values(blob.data_ptr(), static_cast<size_t>(blob.count()));
    for (const float value : values) log::Info("Batch {}, {} = {:.6g}", batch, name, value);
  }
}

// Runs a forward pass on the next minibatch.
void RunBatch(LocalNet* local, OutputMeans* means) {
  const int64_t rows = local->Fetch();
  caffe::Net& net = local->net();
  net.Forward();
  for (size_t i = 0; i < means->names().size(); ++i) {
    caffe::Blob& blob = net.blob(means->names()[i]);
    const std::span<const float> values(blob.data_ptr(), static_cast<size_t>(blob.count()));
    means->Add(i, values, blob.num_axes() > 0 ? blob.shape(0) : 0, rows);
  }
  means->AddRows(rows);
}

// Returns the means of the outputs over the iterations. If `logs_batches`, also logs each batch's
// outputs.
OutputMeans TestMeans(LocalNet* local, int iterations, bool logs_batches) {
  OutputMeans means(local->net().output_names());
  for (int batch = 0; batch < iterations; ++batch) {
    RunBatch(local, &means);
    if (logs_batches) LogOutputs(local->net(), batch);
  }
  return means;
}

bool WritesFiles(const caffe::Net& net) {
  return std::ranges::any_of(net.layers(), [](const caffe::NetLayer& layer) {
    return std::string_view(layer.layer->type()) == "HDF5Output";
  });
}

// Logs one line per value, with the difference caused by the lower precision.
void LogComparison(const LocalOptions& options, const OutputMeans& rounded,
                   const OutputMeans& exact) {
  const std::string& precision = options.settings.precision;
  const auto sizes = exact.sizes();
  const auto ours = OutputMeans::MeansOf(rounded.Pack(sizes), sizes);
  const auto float32 = OutputMeans::MeansOf(exact.Pack(sizes), sizes);
  log::Info("{} compared with float32 on the same {} batches:", precision, options.iterations);
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t j = 0; j < ours[i].size(); ++j) {
      log::Info("{}: float32 {:.6g}, {} {:.6g}, difference {:+.6g}", exact.names()[i],
                float32[i][j], precision, ours[i][j], ours[i][j] - float32[i][j]);
    }
  }
}

}  // namespace

void TrainLocally(const LocalOptions& options) {
  // The signal handlers are installed first, so that an interrupt while files are read also takes
  // effect.
  SignalEffects signals(ParseSignalEffect("sigint_effect", options.sigint_effect),
                        ParseSignalEffect("sighup_effect", options.sighup_effect));
  Job job = LocalJob(options);
  job.solver = ReadPrototxt(options.solver);
  const caffe::SolverParameter solver = caffe::ParseSolver(job.solver.text, job.solver.path);
  UseDevices(options, solver, &job);
  job.seed = SeedOf(solver, options.snapshot);
  if (solver.has_net()) job.net = ReadPrototxt(solver.net());

  LocalRows rows;
  if (auto end = rows.Open(caffe::TrainNetOf(SolverOf(job)))) job.train = Release(std::move(*end));
  if (WantsTests(solver)) {
    if (auto end = rows.Open(TestNetOf(job))) {
      // A stream of rows can feed only one net, because a second net would need the same rows at
      // another time.
      Require(solver.test_iter_size() == 1, ErrorCode::kUnimplemented,
              "{} has {} test nets, and the first one reads rows; a test net that reads rows must "
              "be the only one",
              options.solver, solver.test_iter_size());
      job.test = Release(std::move(*end));
      job.validate = true;
    }
  }
  TrainHooks hooks;
  tensorboard::RunRecord record(log::FilesFolder(), Now());
  hooks.send = [&record](const nlohmann::json& event) { record.Take(event, Now()); };
  hooks.signals = &signals;
  TrainSession(std::move(job), std::move(hooks)).Run();
  record.Finish();
}

void TestLocally(const LocalOptions& options) {
  const std::string& precision = options.settings.precision;
  std::optional<OutputMeans> means;
  bool writes_files = false;
  {  // Destroys the net before another one is built, to free its memory.
    LocalNet local(options, caffe::TEST, /*runs_backward=*/false);
    log::Info("Running for {} iterations.", options.iterations);
    means = TestMeans(&local, options.iterations, /*logs_batches=*/true);
    LogMeans(local.net(), *means);
    writes_files = WritesFiles(local.net());
  }
  if (precision == "float32") return;
  if (writes_files) {
    log::Info("{} is not compared with float32, as that would write the net's HDF5Output again.",
              precision);
    return;
  }
  log::Info("Computing the same batches in float32.");
  LocalOptions in_float32 = options;
  in_float32.settings.precision = "float32";
  LocalNet exact(in_float32, caffe::TEST, /*runs_backward=*/false);
  LogComparison(options, *means, TestMeans(&exact, options.iterations, /*logs_batches=*/false));
}

}  // namespace hearth::trainer
