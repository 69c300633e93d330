#include "hearth/trainer/step/validation_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth::trainer {
namespace {

TEST(ValidationPlanTest, UsesEveryRowEquallyOftenOverTime) {
  const std::vector<int64_t> owned{7, 0, 1, 12};
  for (int64_t wanted : {1, 5, 20, 1000}) {
    for (int64_t own : owned) {
      ValidationPlan plan(wanted, 20, own);
      const int64_t validations = 20;  // 20 validations cover each row plan.rows() times
      int64_t used = 0;
      for (int64_t k = 0; k < validations; ++k) {
        const RowRange share = plan.Share(k);
        EXPECT_EQ(share.begin, used);
        used = share.end;
      }
      EXPECT_EQ(used, plan.rows() * own);
    }
  }
}

TEST(ValidationPlanTest, TakesAllRowsIfTheTestIsLargerThanTheSet) {
  ValidationPlan plan(1000, 9, 9);
  EXPECT_EQ(plan.rows(), 9);
  EXPECT_EQ(plan.Share(0).end - plan.Share(0).begin, 9);
}

TEST(ValidationPlanTest, IsEmptyWithoutRows) {
  ValidationPlan plan(100, 0, 0);
  EXPECT_EQ(plan.rows(), 0);
  EXPECT_EQ(plan.Share(3).begin, plan.Share(3).end);
}

TEST(ValidationPlanTest, LongRunsOnLargeSetsDoNotOverflow) {
  const int64_t billion = 1000000000;
  ValidationPlan plan(billion, 4 * billion, 2 * billion);
  EXPECT_EQ(plan.Share(billion).end - plan.Share(billion).begin, billion / 2);
}

}  // namespace
}  // namespace hearth::trainer
