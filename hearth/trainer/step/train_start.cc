#include "hearth/trainer/step/train_start.h"

#include <fmt/ranges.h>

#include <utility>

#include "hearth/base/log.h"
#include "hearth/trainer/job/step_timeout.h"

namespace hearth::trainer {

std::optional<caffe::TrainingPosition> TrainStart::Load(nlohmann::json* validations) {
  std::string position;
  if (group_.rank() == 0) {
    if (auto loaded = LoadFiles()) {
      TakeNotes(*loaded, validations);
      loaded->notes.clear();  // the other ranks do not use them
      position = caffe::PositionToText(*loaded);
    }
  }
  const Deadline deadline = Deadline::After(kStepTimeoutSeconds);
  const auto broadcast = [&](const caffe::Tensor& flat) {
    group_.Broadcast(flat.data_ptr(), static_cast<size_t>(flat.numel()) * sizeof(float), 0,
                     deadline);
  };
  // The broadcast is needed even if nothing was loaded, because each rank has filled its weights
  // with different random numbers and all must start with the weights of rank 0.
  broadcast(solver_.net().params().data());
  for (const caffe::Tensor& history : solver_.history()) broadcast(history);
  Broadcast(&position);
  if (position.empty()) return std::nullopt;
  return caffe::PositionFromText(position);
}

// A later generation resumes from the last snapshot of its run or, if there is none yet, from
// where the run began.
std::optional<caffe::TrainingPosition> TrainStart::LoadFiles() {
  if (job_.generation > 0 && !job_.run.empty()) {
    if (const auto last = caffe::FindSnapshot(solver_.snapshot_prefix(), job_.run)) {
      return solver_.LoadSnapshot(last->state, last->model);
    }
    log::Warning("This run has no snapshot {}_iter_* yet: training starts where the run began",
                 solver_.snapshot_prefix());
  }
  if (!job_.snapshot.empty()) {
    return solver_.LoadSnapshot(job_.snapshot, job_.weights.empty() ? "" : job_.weights.front());
  }
  if (!job_.weights.empty()) solver_.LoadWeights(fmt::format("{}", fmt::join(job_.weights, ",")));
  return std::nullopt;
}

void TrainStart::TakeNotes(const caffe::TrainingPosition& loaded,
                           nlohmann::json* validations) const {
  if (job_.run.empty() || loaded.run != job_.run || loaded.notes.empty()) return;
  auto notes = nlohmann::json::parse(loaded.notes, nullptr, /*allow_exceptions=*/false);
  if (notes.is_array()) {
    *validations = std::move(notes);
  } else {
    log::Warning("{}: field \"notes\" is not a list: earlier validations are lost", loaded.seal);
  }
}

void TrainStart::Broadcast(std::string* text) {
  const Deadline deadline = Deadline::After(kStepTimeoutSeconds);
  uint64_t size = text->size();
  group_.Broadcast(&size, sizeof size, 0, deadline);
  text->resize(size);
  if (size > 0) group_.Broadcast(text->data(), size, 0, deadline);
}

bool TrainStart::IsOfBatchSize(const caffe::TrainingPosition& position) const {
  const int64_t own = solver_.net().batch_size();
  if (position.batch_size == 0 || position.batch_size == own) return true;
  if (group_.rank() == 0) {
    log::Warning(
        "The snapshot was made with a batch_size of {}, but this run has {}: its epoch begins "
        "again",
        position.batch_size, own);
  }
  return false;
}

void TrainStart::MoveTo(const caffe::TrainingPosition& position, RowTally* tally) {
  tally->BeginReplay();
  const caffe::Skipped skipped = solver_.ResumeAt(position);
  const int64_t bad = tally->EndReplay();
  // Every rank has skipped its own rows, but the tally counts the rows of all ranks. Ranks with
  // fewer rows reach the end of an epoch earlier, so the epoch's number of minibatches is the
  // largest one.
  int64_t sums[] = {skipped.rows + bad, bad}, minibatches = skipped.minibatches;
  const Deadline deadline = Deadline::After(kStepTimeoutSeconds);
  group_.AllReduce(sums, 2, collective::DataType::kInt64, collective::Op::kSum, deadline);
  group_.AllReduce(&minibatches, 1, collective::DataType::kInt64, collective::Op::kMax, deadline);
  solver_.WarnIfShort(position, minibatches);
  tally->ResumeAt(position, sums[0], sums[1]);
}

}  // namespace hearth::trainer
