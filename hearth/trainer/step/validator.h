// Evaluates the weights of the net in training on the validation rows of all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hearth/caffe/net/net.h"
#include "hearth/collective/group.h"
#include "hearth/dataset/spool/slice_source.h"
#include "hearth/trainer/step/output_means.h"
#include "hearth/trainer/step/validation_plan.h"

namespace hearth::trainer {

// Evaluates one rank's share of each validation; used by the solver's thread. The constructor and
// Run are collective: ranks wait for each other for at most options.timeout_s, and throw as
// Group::Run does. A rank without a spool (a second device) evaluates nothing but participates.
class Validator {
 public:
  // Options of Validator.
  struct Options {
    caffe::NetParameter net;    // the TEST net
    caffe::NetContext context;  // the Validator sets open_source
    std::shared_ptr<dataset::Spool> rows;
    int64_t test_iter = 0;  // minibatches per validation, over all ranks
    double timeout_s = 3600;
  };
  // Waits until the validation rows of all ranks have arrived; also throws as Spool::WaitComplete
  // does, and kInvalidArgument if there are no rows. Uses the weights of `train_net`, which must be
  // used by the same thread and outlive the Validator.
  Validator(collective::Group& group, caffe::Net& train_net, Options options);

  // Results of one validation.
  struct Result {
    std::vector<std::string> names;
    std::vector<std::vector<float>> means;  // means of the outputs, in the order of `names`
    int64_t rows = 0;                       // over which the outputs are averaged
    int64_t invalid_rows = 0;               // skipped

    nlohmann::json ToJson() const;  // {name: [floats]}
  };
  // Evaluates the rows of validation number `validation` on all ranks.
  Result Run(int64_t validation);

  // Writes the log lines that Caffe writes for a test.
  void Log(int64_t iteration, const Result& result) const;

  int64_t total_rows() const { return total_rows_; }

 private:
  void Evaluate(RowRange range, OutputMeans* means);
  template <typename T>
  void AllReduce(std::vector<T>* values, collective::Op op);

  collective::Group& group_;
  const double timeout_s_;
  std::shared_ptr<dataset::SliceSource> source_;
  std::unique_ptr<caffe::Net> net_;
  int64_t total_rows_ = 0;
  int64_t invalid_rows_ = 0;  // invalid rows of this rank in the running validation
  ValidationPlan plan_{0, 0, 0};
};

}  // namespace hearth::trainer
