#include "hearth/trainer/local_session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/caffe/net_file.h"
#include "hearth/caffe/snapshot.h"
#include "hearth/caffe/solver_nets.h"
#include "hearth/feed/spool_source.h"
#include "hearth/storage/file.h"
#include "hearth/trainer/local_rows.h"
#include "hearth/trainer/net_source.h"
#include "hearth/trainer/output_means.h"
#include "hearth/trainer/train_session.h"

namespace hearth::trainer {
namespace {

std::string TemporaryFolder() {
  const char* folder = std::getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

PrototxtFile ReadPrototxt(const std::string& path) { return {path, storage::ReadFile(path)}; }

Job LocalJob(const LocalOptions& options) {
  Job job;
  job.local = true;
  job.host = "localhost";
  job.threads = options.threads > 0
                    ? options.threads
                    : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  job.weights = options.weights;
  job.snapshot = options.snapshot;
  job.level = options.level;
  job.stages = options.stages;
  job.spill_dir = TemporaryFolder();
  return job;
}

StreamFds Release(feed::RingEnd end) { return {end.memory.Release(), end.signal.Release()}; }

bool WantsTests(const caffe::SolverParameter& solver) {
  return solver.test_interval() > 0 && solver.test_iter_size() > 0 && solver.test_iter(0) > 0;
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

void AddOutputs(caffe::Net& net, int batch, int64_t rows, OutputMeans* means) {
  const auto& names = net.output_names();
  for (size_t i = 0; i < names.size(); ++i) {
    caffe::Blob& blob = net.blob(names[i]);
    const std::span<const float> values(blob.data_ptr(), static_cast<size_t>(blob.count()));
    for (const float value : values) log::Info("Batch {}, {} = {:.6g}", batch, names[i], value);
    means->Add(i, values, blob.num_axes() > 0 ? blob.shape(0) : 0, rows);
  }
  means->AddRows(rows);
}

// The next minibatch; the rows start over when they are used up, as Caffe's databases do.
int64_t FetchAround(caffe::Net& net) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto rows = net.Fetch();
    if (!rows) return 1;  // not fed by rows: each forward counts alike
    if (*rows > 0) return *rows;
    net.NextEpoch();
  }
  Throw(ErrorCode::kInvalidArgument, "the TEST net's source has no rows");
}

}  // namespace

void TrainLocally(const LocalOptions& options) {
  SignalEffects signals(ParseSignalEffect("sigint_effect", options.sigint_effect),
                        ParseSignalEffect("sighup_effect", options.sighup_effect));
  Job job = LocalJob(options);
  job.solver = ReadPrototxt(options.solver);
  const caffe::SolverParameter solver = caffe::ParseSolver(job.solver.text, job.solver.path);
  job.seed = solver.random_seed() >= 0 ? static_cast<uint64_t>(solver.random_seed())
                                       : std::random_device()();
  if (solver.has_net()) job.net = ReadPrototxt(solver.net());

  LocalRows rows;
  if (auto end = rows.Open(caffe::TrainNetOf(SolverOf(job)))) job.train = Release(std::move(*end));
  if (WantsTests(solver)) {
    if (auto end = rows.Open(TestNetOf(job))) {
      job.test = Release(std::move(*end));
      job.validate = true;
    }
  }
  TrainHooks hooks;
  hooks.send = [](const nlohmann::json&) {};
  hooks.signals = &signals;
  TrainSession(std::move(job), std::move(hooks)).Run();
}

void TestLocally(const LocalOptions& options) {
  Job job = LocalJob(options);
  job.mode = Mode::kTest;
  job.net = ReadPrototxt(options.model);
  const caffe::NetParameter param = TestNetOf(job);
  at::set_num_threads(job.threads);

  LocalRows rows;
  std::shared_ptr<feed::MinibatchSource> source;
  if (auto end = rows.Open(param)) {
    feed::SpoolOptions spool;
    spool.directory = job.spill_dir;
    source = std::make_shared<feed::SpoolSource>(
        std::make_shared<feed::Spool>(std::move(*end), spool), feed::ReplayOptions{false, 0});
  }
  caffe::NetContext context;
  context.phase = caffe::TEST;
  context.random = std::make_shared<caffe::Random>(0);
  context.open_source = OpenOnce(source, "test");
  BadRows bad_rows(-1, [](const nlohmann::json&) {});
  context.on_bad_row = [&](const std::string& id, const std::string& reason) {
    bad_rows.Report(id, reason);
  };
  caffe::Net net(param, context);
  for (const std::string& path : job.weights) net.CopyTrainedLayersFrom(caffe::ReadModel(path));

  log::Info("Running for {} iterations.", options.iterations);
  OutputMeans means(net.output_names());
  for (int batch = 0; batch < options.iterations; ++batch) {
    const int64_t count = FetchAround(net);
    net.Forward();
    AddOutputs(net, batch, count, &means);
  }
  LogMeans(net, means);
}

}  // namespace hearth::trainer
