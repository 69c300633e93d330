#include "hearth/trainer/rows/reader_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "hearth/base/error.h"
#include "hearth/ring/ring_reader.h"
#include "hearth/storage/file.h"
#include "hearth/trainer/testing/trainer_testing.h"

namespace hearth::trainer {
namespace {

using ::testing::HasSubstr;

class ReaderProcessTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("HEARTH_PYTHON"); }

  // Replaces the interpreter.
  void UseInterpreter(const std::string& script) {
    const std::string path = folder_.path("python");
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    chmod(path.c_str(), 0755);
    setenv("HEARTH_PYTHON", path.c_str(), 1);
  }

  TestFolder folder_;
  ring::RingEnds ring_ = ring::CreateRing(1 << 20);
};

TEST_F(ReaderProcessTest, StartsTheReaderOnTheRingWithColumns) {
  UseInterpreter("echo \"$@\" > " + folder_.path("arguments") + "; ls /proc/self/fd > " +
                 folder_.path("fds"));
  const std::string ring_fd = std::to_string(ring_.writer.memory.get());
  const std::string signal_fd = std::to_string(ring_.writer.signal.get());
  ring::RingReader reader(std::move(ring_.reader));
  ReaderProcess process({"file:/data/x.parquet", "parquet", {"image", "label"}}, ring_.writer);
  ring_.writer = {};
  EXPECT_THROW(reader.Next(Deadline::After(10)), Error) << "the child's exit is noticed";
  EXPECT_THAT(
      storage::ReadFile(folder_.path("arguments")),
      HasSubstr(
          "-m hearth.rows.file_reader --source file:/data/x.parquet --format parquet --columns "
          "image,label --rank 0 --world 1 --ring-fd " +
          ring_fd + " --signal-fd " + signal_fd));
  EXPECT_THAT(storage::ReadFile(folder_.path("fds")), HasSubstr("\n" + ring_fd + "\n"));
}

TEST_F(ReaderProcessTest, CtrlCDoesNotReachTheReader) {
  UseInterpreter("read pid name state parent group rest < /proc/$$/stat; echo $pid $group > " +
                 folder_.path("ids"));
  ring::RingReader reader(std::move(ring_.reader));
  ReaderProcess process({"x.parquet", "parquet", {}}, ring_.writer);
  ring_.writer = {};
  EXPECT_THROW(reader.Next(Deadline::After(10)), Error) << "the child has ended";
  std::istringstream ids(storage::ReadFile(folder_.path("ids")));
  int pid = 0, group = -1;
  ids >> pid >> group;
  EXPECT_EQ(pid, group);
}

TEST_F(ReaderProcessTest, AMissingInterpreterIsNamedWithTheRemedy) {
  setenv("HEARTH_PYTHON", "/no/such/python", 1);
  try {
    ReaderProcess process({"x.parquet", "parquet", {}}, ring_.writer);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.message(), HasSubstr("/no/such/python"));
    EXPECT_THAT(error.message(), HasSubstr("HEARTH_PYTHON"));
  }
}

TEST_F(ReaderProcessTest, KillsAChildThatStillReads) {
  UseInterpreter("exec sleep 1000");
  ring::RingReader reader(std::move(ring_.reader));
  { ReaderProcess process({"x.parquet", "parquet", {}}, ring_.writer); }
  ring_.writer = {};
  EXPECT_THROW(reader.Next(Deadline::After(10)), Error);
}

}  // namespace
}  // namespace hearth::trainer
