#include "hearth/trainer/step/validator.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/base/log.h"
#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/trainer/testing/solver_testing.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

caffe::NetContext SeededContext(caffe::Phase phase) {
  caffe::NetContext context;
  context.phase = phase;
  context.random = std::make_shared<caffe::Random>(7);
  return context;
}

// A complete spool that contains these rows.
std::shared_ptr<dataset::Spool> SpoolOf(const std::vector<int64_t>& numbers,
                                        batch::BatchBuilder* more = nullptr) {
  ring::RingEnds ends = ring::CreateRing(1 << 20);
  auto spool = std::make_shared<dataset::Spool>(std::move(ends.reader),
                                                dataset::SpoolOptions{::testing::TempDir(), 60});
  ring::RingWriter writer(std::move(ends.writer));
  if (more != nullptr) {
    ArrowSchema schema;
    ArrowArray array;
    more->Export(&schema, &array);
    writer.WriteArrow(schema, array, Soon());
  }
  WriteRows(&writer, numbers.empty() ? std::vector<std::vector<int64_t>>{}
                                     : std::vector<std::vector<int64_t>>{numbers});
  return spool;
}

// Ranks have the same weights and minibatches of four rows.
class ValidatorTest : public ::testing::Test {
 protected:
  // Runs `body` with each rank's validator, with one rank per spool. A rank whose spool is null has
  // no rows.
  void Run(const std::vector<std::shared_ptr<dataset::Spool>>& spools, int64_t test_iter,
           const std::function<void(Validator&, int)>& body) {
    RunGroupThreads(static_cast<int>(spools.size()), [&](collective::Group& group) {
      const auto rank = static_cast<size_t>(group.rank());
      caffe::Net trained(caffe::ParseNet(TestNet(4), "net"), SeededContext(caffe::TRAIN));
      Validator validator(group, trained, Options(spools[rank], test_iter));
      body(validator, group.rank());
    });
  }
  Validator::Options Options(std::shared_ptr<dataset::Spool> spool, int64_t test_iter) const {
    Validator::Options options;
    options.net = caffe::ParseNet(net_, "net");
    options.context = SeededContext(caffe::TEST);
    options.context.on_invalid_row = [this](const std::string& id, const std::string&) {
      const std::lock_guard lock(mutex_);
      invalid_.push_back(id);
    };
    options.rows = std::move(spool);
    options.test_iter = test_iter;
    options.timeout_s = 60;
    return options;
  }

  std::string net_ = TestNet(4);
  mutable std::mutex mutex_;
  mutable std::vector<std::string> invalid_;
};

TEST_F(ValidatorTest, TheMeansDoNotDependOnWhichRankHasTheRows) {
  Validator::Result alone;
  Run({SpoolOf(Numbers(0, 11))}, 100, [&](Validator& validator, int) { alone = validator.Run(0); });
  EXPECT_EQ(alone.rows, 11);
  EXPECT_THAT(alone.names, ElementsAre("accuracy", "loss"));
  Run({SpoolOf(Numbers(0, 3)), nullptr, SpoolOf(Numbers(3, 11))}, 100,
      [&](Validator& validator, int) {
        EXPECT_EQ(validator.total_rows(), 11);
        const Validator::Result result = validator.Run(0);
        EXPECT_EQ(result.rows, 11);
        ASSERT_EQ(result.names, alone.names);
        for (size_t i = 0; i < alone.means.size(); ++i) {
          ASSERT_EQ(result.means[i].size(), 1U);
          EXPECT_NEAR(result.means[i][0], alone.means[i][0], 1e-5);
        }
      });
}

// The weights in training are set to 0, so all four labels are equally likely. The initial weights
// of the validator's own net would yield another loss.
TEST_F(ValidatorTest, UsesTheWeightsInTraining) {
  const auto spool = SpoolOf(Numbers(0, 6));
  RunGroupThreads(1, [&](collective::Group& group) {
    caffe::Net trained(caffe::ParseNet(TestNet(4), "net"), SeededContext(caffe::TRAIN));
    Validator validator(group, trained, Options(spool, 100));
    caffe::Tensor weights = trained.params().data();
    weights.fill_(0);
    EXPECT_NEAR(validator.Run(0).means[1][0], std::log(4.0), 1e-5);
  });
}

// Each validation evaluates eight of the ten rows, so the next one begins with the ninth row.
TEST_F(ValidatorTest, ContinuesWhereTheLastValidationEnded) {
  Run({SpoolOf(Numbers(0, 10))}, 2, [&](Validator& validator, int) {
    const auto loss = [&](int64_t number) { return validator.Run(number).means[1][0]; };
    const float first = loss(0), second = loss(1);
    EXPECT_NE(first, second);
    EXPECT_EQ(loss(5), first) << "after 40 rows they begin again";
    EXPECT_EQ(validator.Run(1).rows, 8);
  });
}

TEST_F(ValidatorTest, InvalidRowsAreSkippedAndCountedOverAllRanks) {
  batch::BatchBuilder invalid;
  invalid.AddString("id", {"too long"})
      .AddFloatList("x", {std::vector<float>(9, 1)})
      .AddInt32("label", {1});
  Run({SpoolOf(Numbers(0, 3), &invalid), SpoolOf(Numbers(3, 6))}, 100,
      [&](Validator& validator, int) {
        const Validator::Result result = validator.Run(0);
        EXPECT_EQ(result.invalid_rows, 1);
        EXPECT_EQ(result.rows, 6);
        EXPECT_EQ(validator.Run(1).invalid_rows, 1) << "in this validation";
      });
  EXPECT_THAT(invalid_, ElementsAre(HasSubstr("too long"), HasSubstr("too long")));
}

TEST_F(ValidatorTest, RowsOfNoRankAreAnErrorOnAll) {
  const std::vector<std::shared_ptr<dataset::Spool>> spools = {SpoolOf({}), nullptr};
  RunGroupThreads(2, [&](collective::Group& group) {
    caffe::Net trained(caffe::ParseNet(TestNet(4), "net"), SeededContext(caffe::TRAIN));
    const auto rank = static_cast<size_t>(group.rank());
    const Error error = Thrown([&] { Validator(group, trained, Options(spools[rank], 10)); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr("no rows"));
  });
}

TEST_F(ValidatorTest, ANetThatIsNotFedCannotUseTheRows) {
  net_ = ConstantNet();
  const Error error =
      Thrown([&] { Run({SpoolOf(Numbers(0, 4))}, 10, [](Validator&, int) { FAIL(); }); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("no layer that reads rows"));
}

TEST_F(ValidatorTest, LogsCaffesLines) {
  std::string text;
  Run({SpoolOf(Numbers(0, 4))}, 1, [&](Validator& validator, int) {
    Validator::Result result = validator.Run(0);
    result.means = {{0.25F}, {1.5F}};
    EXPECT_EQ(result.ToJson(), nlohmann::json::parse(R"({"accuracy": [0.25], "loss": [1.5]})"));
    log::SetSink([&](const log::Record& record) { text += std::string(record.text) + "\n"; });
    validator.Log(20, result);
    log::SetSink({});
  });
  EXPECT_EQ(text,
            "Iteration 20, Testing net (#0)\n"
            "    Test net output #0: accuracy = 0.25\n"
            "    Test net output #1: loss = 1.5 (* 1 = 1.5 loss)\n");
}

}  // namespace
}  // namespace hearth::trainer
