#include "hearth/trainer/step/validator.h"

#include <type_traits>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/dataset/spool/memory_source.h"
#include "hearth/trainer/rows/net_source.h"

namespace hearth::trainer {

Validator::Validator(collective::Group& group, caffe::Net& train_net, Options options)
    : group_(group), timeout_s_(options.timeout_s) {
  if (options.rows) source_ = std::make_shared<dataset::SliceSource>(options.rows);
  const int64_t own_rows = source_ ? source_->rows() : 0;
  std::vector<int64_t> total{own_rows};
  AllReduce(&total, collective::Op::kSum);
  total_rows_ = total[0];
  Require(total_rows_ > 0, ErrorCode::kInvalidArgument,
          "validation is on (test_interval and test_iter), but its source has no rows");

  // Ranks that evaluate nothing build the net too, because its outputs define the layout of the
  // sums.
  auto no_rows = std::make_shared<dataset::MemorySource>(
      std::vector<std::shared_ptr<const batch::BatchView>>{});
  options.context.phase = caffe::TEST;
  options.context.on_invalid_row = [this, report = options.context.on_invalid_row](
                                       const std::string& id, const std::string& reason) {
    ++invalid_rows_;
    if (report) report(id, reason);
  };
  options.context.open_source = OpenOnce(
      source_ ? std::static_pointer_cast<dataset::MinibatchSource>(source_) : no_rows, "test");
  net_ = std::make_unique<caffe::Net>(options.net, options.context);
  net_->ShareTrainedLayersWith(train_net);
  // The source returns no rows until a range is set, and the layer may already have prefetched that
  // result. Fetch consumes it here.
  Require(net_->Fetch().has_value(), ErrorCode::kInvalidArgument,
          "the TEST net has no layer that reads rows, so it cannot use the validation rows");
  plan_ = ValidationPlan(options.test_iter * net_->batch_size(), total_rows_, own_rows);
}

template <typename T>
void Validator::AllReduce(std::vector<T>* values, collective::Op op) {
  constexpr auto type =
      std::is_same_v<T, double> ? collective::DataType::kFloat64 : collective::DataType::kInt64;
  group_.AllReduce(values->data(), values->size(), type, op, Deadline::After(timeout_s_));
}

Validator::Result Validator::Run(int64_t validation) {
  OutputMeans means(net_->output_names());
  invalid_rows_ = 0;
  Evaluate(plan_.Share(validation), &means);
  // A rank without rows in this validation does not know how many values each output has.
  std::vector<int64_t> sizes = means.sizes();
  AllReduce(&sizes, collective::Op::kMax);
  std::vector<double> sums = means.Pack(sizes);
  sums.push_back(static_cast<double>(invalid_rows_));
  AllReduce(&sums, collective::Op::kSum);
  return {net_->output_names(), OutputMeans::MeansOf(sums, sizes),
          static_cast<int64_t>(OutputMeans::RowsOf(sums)), static_cast<int64_t>(sums.back())};
}

// Contains no collective operation, because the ranks' shares have different sizes and may be
// empty.
void Validator::Evaluate(RowRange range, OutputMeans* means) {
  if (!source_) return;
  source_->SetRange(range.begin, range.end - range.begin);
  net_->NextEpoch();
  while (const int64_t rows = net_->Fetch().value_or(0)) {
    net_->Forward();
    const auto& names = net_->output_names();
    for (size_t i = 0; i < names.size(); ++i) {
      caffe::Blob& blob = net_->blob(names[i]);
      means->Add(i, {blob.data_ptr(), static_cast<size_t>(blob.count())},
                 blob.num_axes() > 0 ? blob.shape(0) : 0, rows);
    }
    means->AddRows(rows);
  }
}

nlohmann::json Validator::Result::ToJson() const {
  nlohmann::json outputs = nlohmann::json::object();
  for (size_t i = 0; i < names.size(); ++i) outputs[names[i]] = means[i];
  return outputs;
}

void Validator::Log(int64_t iteration, const Result& result) const {
  log::Info("Iteration {}, Testing net (#0)", iteration);
  int line = 0;
  for (size_t i = 0; i < result.names.size(); ++i) {
    const float weight = net_->loss_weight(result.names[i]);
    for (const float mean : result.means[i]) {
      log::Info("    Test net output #{}: {} = {:.6g}{}", line++, result.names[i], mean,
                weight == 0 ? "" : fmt::format(" (* {:.6g} = {:.6g} loss)", weight, weight * mean));
    }
  }
}

}  // namespace hearth::trainer
