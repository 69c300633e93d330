#include "hearth/caffe/tools/progress_log.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "hearth/base/log.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;

class ProgressLogTest : public testing::Test {
 protected:
  ProgressLogTest() {
    log::SetSink([this](const log::Record& record) { lines_.emplace_back(record.text); });
  }
  ~ProgressLogTest() override { log::SetSink({}); }

  std::vector<std::string> lines_;
};

TEST_F(ProgressLogTest, LogsAfterEveryThousandAndAtTheEnd) {
  ProgressLog progress;
  for (const int items : {256, 999, 1024, 1500, 2100}) progress.Done(items);
  progress.Finish(2300);
  EXPECT_THAT(lines_, ElementsAre("Processed 1024 files.", "Processed 2100 files.",
                                  "Processed 2300 files."));
}

TEST_F(ProgressLogTest, DoesNotRepeatALine) {
  ProgressLog progress;
  progress.Done(1000);
  progress.Done(1000);
  progress.Finish(1000);
  EXPECT_THAT(lines_, ElementsAre("Processed 1000 files."));
}

TEST_F(ProgressLogTest, LogsAfterTwoSeconds) {
  ProgressLog progress;
  progress.Done(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));
  progress.Done(2);
  EXPECT_THAT(lines_, ElementsAre("Processed 2 files."));
}

}  // namespace
}  // namespace hearth::caffe
