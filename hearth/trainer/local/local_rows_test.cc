#include "hearth/trainer/local/local_rows.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "hearth/base/testing/deadline_testing.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/caffe/upgrade/net_file.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/storage/file.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::HasSubstr;

class LocalRowsTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("HEARTH_PYTHON"); }

  static std::optional<ring::RingEnd> Open(LocalRows& rows, const std::string& net) {
    caffe::NetParameter param = caffe::ParseNet(net, "net");
    param.mutable_state()->set_phase(caffe::TRAIN);
    return rows.Open(param);
  }

  const TestFolder folder_;
};

TEST_F(LocalRowsTest, ANetThatNeedsNoRowsStartsNoProcess) {
  setenv("HEARTH_PYTHON", "/no/such/python", 1);
  LocalRows rows;
  EXPECT_FALSE(Open(rows, "layer { name: 'd' type: 'DummyData' top: 'x' }").has_value());
}

TEST_F(LocalRowsTest, StartsAReaderOfTheLayersColumnsOnTheRing) {
  const std::string interpreter = folder_.path("python");
  std::ofstream(interpreter) << "#!/bin/sh\necho \"$@\" > " << folder_.path("arguments") << "\n";
  chmod(interpreter.c_str(), 0755);
  setenv("HEARTH_PYTHON", interpreter.c_str(), 1);
  LocalRows rows;
  auto end = Open(rows,
                  "layer { name: 'data' type: 'CoSData' top: 'x' source_class: 'DataFrameSource' "
                  "cos_data_param { source: 'train.parquet' top { name: 'x' } } }");
  ASSERT_TRUE(end.has_value());
  ring::RingReader reader(std::move(*end));
  EXPECT_THROW(reader.Next(Soon()), Error) << "the child's exit is noticed";
  EXPECT_THAT(storage::ReadFile(folder_.path("arguments")),
              HasSubstr("--source train.parquet --format parquet --columns x "));
}

}  // namespace
}  // namespace hearth::trainer
