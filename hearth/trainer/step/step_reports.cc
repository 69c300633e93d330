#include "hearth/trainer/step/step_reports.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hearth/trainer/job/run_events.h"

namespace hearth::trainer {
namespace {

int64_t EffectiveBatch(const Job& job, caffe::Solver& solver) {
  return std::max<int64_t>(1, solver.net().batch_size()) * job.collective_world() *
         solver.param().iter_size();
}

}  // namespace

// total_weight() counts full minibatches (GradientStep). If the net produces its own rows, each
// minibatch counts as one row.
double RowsOfStep(const DistributedSync& sync, const caffe::Net& net) {
  return sync.total_weight() * static_cast<double>(std::max<int64_t>(1, net.batch_size()));
}

StepReports::StepReports(const Job& job, int rank, caffe::Solver& solver,
                         const DistributedSync& sync, SendEvent send)
    : job_(job),
      is_root_(rank == 0),
      solver_(solver),
      sync_(sync),
      send_(std::move(send)),
      effective_batch_(EffectiveBatch(job, solver)),
      progress_(solver.iteration(), solver.param().max_iter(), effective_batch_,
                Progress::Clock::now()),
      times_(rank, Progress::Clock::now()) {}

void StepReports::OnIteration(const caffe::IterationReport& report, int64_t invalid_rows) {
  const bool last = report.iteration >= solver_.param().max_iter();
  const auto times =
      times_.OnIteration({report.rows_wait_s, sync_.wait_s()}, last, Progress::Clock::now());
  if (times) send_(*times);
  if (!is_root_) return;
  SendProgress(report, invalid_rows);
  SendHistograms(report.iteration);
}

void StepReports::SendProgress(const caffe::IterationReport& report, int64_t invalid_rows) {
  // If the root has run out of rows, its loss is NaN for the rest of the epoch, so the last loss is
  // reported.
  if (std::isfinite(report.smoothed_loss)) last_loss_ = report.smoothed_loss;
  auto update = progress_.OnIteration(report.iteration, last_loss_, report.learning_rate,
                                      RowsOfStep(sync_, solver_.net()), Progress::Clock::now());
  if (!update) return;
  nlohmann::json event = update->ToJson();
  event["invalid_rows"] = invalid_rows;
  // Without rows, the blobs still contain the values of an earlier minibatch.
  const bool has_rows = report.rows > 0 || solver_.net().batch_size() == 0;
  if (has_rows) event["outputs"] = OutputsOf(solver_.net());
  send_(event);
}

void StepReports::SendHistograms(int iteration) {
  const int every = job_.settings.log_histograms;
  if (every == 0 || iteration % every != 0) return;
  for (nlohmann::json& event : HistogramEvents(solver_.net(), sync_.gradient_weight())) {
    event["iteration"] = iteration;
    send_(event);
  }
}

}  // namespace hearth::trainer
