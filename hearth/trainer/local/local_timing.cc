#include "hearth/trainer/local/local_timing.h"

#include <chrono>
#include <numeric>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/trainer/local/local_net.h"

namespace hearth::trainer {
namespace {

// Seconds that `work` takes.
template <typename Work>
double Timed(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Total seconds of all iterations so far.
struct Times {
  double fetch = 0;
  std::vector<double> forward, backward;  // per layer

  double total_forward() const { return std::accumulate(forward.begin(), forward.end(), fetch); }
  double total_backward() const { return std::accumulate(backward.begin(), backward.end(), 0.0); }
};

// On a device, a call returns before its work is done, so each layer is timed until the device has
// finished.
void RunOnce(LocalNet& local, Times* times) {
  caffe::Net& net = local.net();
  times->fetch += Timed([&] { local.Fetch(); });
  for (int i = 0; i <= net.last_layer(); ++i) {
    times->forward[i] += Timed([&] {
      net.Forward(i, i);
      net.device().Synchronize();
    });
  }
  for (int i = net.last_layer(); i >= 0; --i) {
    times->backward[i] += Timed([&] {
      net.Backward(i, i);
      net.device().Synchronize();
    });
  }
}

void LogPlan(const caffe::MemoryPlan& plan, const char* what) {
  constexpr double kMiB = 1 << 20;
  const std::string values =
      plan.values == 0 ? "" : fmt::format(", and values of {},", plan.values);
  log::Info("{} of {} blobs{} share {:.1f} MiB; separately they would take {:.1f} MiB.", what,
            plan.blobs, values, static_cast<double>(plan.planned_bytes) / kMiB,
            static_cast<double>(plan.separate_bytes) / kMiB);
}

void LogTimes(const caffe::Net& net, const Times& times, int iterations) {
  const auto mean_ms = [&](double seconds) { return seconds * 1000 / iterations; };
  log::Info("Average time per layer: ");
  if (net.batch_size() > 0) {
    log::Info("{:>10}\tfetch: {:g} ms.", "rows", mean_ms(times.fetch));
  }
  for (size_t i = 0; i < net.layers().size(); ++i) {
    const std::string& name = net.layers()[i].layer->name();
    log::Info("{:>10}\tforward: {:g} ms.", name, mean_ms(times.forward[i]));
    log::Info("{:>10}\tbackward: {:g} ms.", name, mean_ms(times.backward[i]));
  }
  log::Info("Average Forward pass: {:g} ms.", mean_ms(times.total_forward()));
  log::Info("Average Backward pass: {:g} ms.", mean_ms(times.total_backward()));
}

}  // namespace

void TimeLocally(const LocalOptions& options) {
  LocalNet local(options, options.phase == "TEST" ? caffe::TEST : caffe::TRAIN,
                 /*runs_backward=*/true);
  caffe::Net& net = local.net();
  // The first pass allocates, so it is not timed.
  log::Info("Performing Forward");
  local.Fetch();
  log::Info("Initial loss: {:g}", net.Forward());
  log::Info("Performing Backward");
  net.Backward();

  log::Info("*** Benchmark begins ***");
  log::Info("Testing for {} iterations.", options.iterations);
  Times times;
  times.forward.resize(net.layers().size());
  times.backward.resize(net.layers().size());
  const double total = Timed([&] {
    for (int i = 1; i <= options.iterations; ++i) {
      const double seconds = Timed([&] { RunOnce(local, &times); });
      log::Info("Iteration: {} forward-backward time: {:g} ms.", i, seconds * 1000);
    }
  });
  LogTimes(net, times, options.iterations);
  LogPlan(net.diff_plan(), "Gradients");
  log::Info("Average Forward-Backward: {:g} ms.", total * 1000 / options.iterations);
  log::Info("Total Time: {:g} ms.", total * 1000);
  log::Info("*** Benchmark ends ***");
}

}  // namespace hearth::trainer
