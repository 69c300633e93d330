#include "hearth/caffe/snapshot_seal.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class SnapshotSealTest : public testing::Test {
 protected:
  SnapshotSealTest() {
    std::string name = (fs::temp_directory_path() / "hearth_seal_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    log::SetSink([this](const log::Record& record) { log_ += std::string(record.text) + "\n"; });
  }
  ~SnapshotSealTest() override {
    log::SetSink({});
    fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  // Three files that could be a snapshot of `run` after `iteration`.
  SnapshotFiles Make(int iteration, const std::string& run = "r") {
    const std::string stem = path("a_iter_" + std::to_string(iteration));
    SnapshotFiles files{stem + ".caffemodel", stem + ".solverstate"};
    Write(files.model, "model of " + stem);
    Write(files.state, "state of " + stem);
    TrainingPosition position;
    position.run = run;
    position.iteration = iteration;
    position.seed = UINT64_MAX;
    position.ranks = 3;
    position.epoch = 2;
    position.fetches = 5;
    position.losses = {0.1f, 1.0f, std::nanf("")};
    SealSnapshot(position, files);
    return files;
  }

  std::string found(const std::string& run = "r") const {
    const auto files = FindSnapshot(path("a"), run);
    return files ? fs::path(files->state).filename().string() : "";
  }

  fs::path folder_;
  std::string log_;
};

TEST_F(SnapshotSealTest, KeepsThePosition) {
  SnapshotFiles files = Make(7);
  files.model.clear();
  const SnapshotFiles checked = CheckSnapshot(files);
  EXPECT_EQ(checked.model, path("a_iter_7.caffemodel"));
  ASSERT_TRUE(checked.position);
  EXPECT_EQ(checked.position->iteration, 7);
  EXPECT_EQ(checked.position->seed, UINT64_MAX);
  EXPECT_EQ(checked.position->ranks, 3);
  EXPECT_EQ(checked.position->epoch, 2);
  EXPECT_EQ(checked.position->fetches, 5);
  ASSERT_EQ(checked.position->losses.size(), 3u);
  EXPECT_EQ(checked.position->losses[0], 0.1f);
  EXPECT_TRUE(std::isnan(checked.position->losses[2]));
}

TEST_F(SnapshotSealTest, IsNotNeeded) {
  const SnapshotFiles files = Make(7);
  fs::remove(path("a_iter_7.hearth.json"));
  EXPECT_FALSE(CheckSnapshot(files).position);
  EXPECT_EQ(WholeSnapshot(files).state, files.state);
}

// A bit of every byte of each file in turn, and each file cut off at every length.
TEST_F(SnapshotSealTest, RecognizesEveryFlippedBitAndEveryTruncation) {
  const SnapshotFiles files = Make(7);
  for (const char* extension : {"caffemodel", "solverstate", "hearth.json"}) {
    SCOPED_TRACE(extension);
    const std::string name = path(std::string("a_iter_7.") + extension);
    const std::string whole = storage::ReadFile(name);
    ASSERT_GT(whole.size(), 0u);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
      for (const std::string& content : {damaged, whole.substr(0, i)}) {
        // White space of the seal may go or become another one: nothing is lost with it.
        if (std::string(extension) == "hearth.json" &&
            (std::isspace(whole[i]) || i + 1 >= whole.size())) {
          continue;
        }
        Write(name, content);
        EXPECT_THROW(CheckSnapshot(files), Error) << "byte " << i << " of " << content.size();
        EXPECT_EQ(found(), "");
      }
    }
    Write(name, whole);
    EXPECT_EQ(found(), "a_iter_7.solverstate");
  }
}

TEST_F(SnapshotSealTest, OfTheNewestWholeSnapshotOfARunIsFound) {
  for (const int iteration : {5, 20, 100}) Make(iteration);
  Make(1000, "another");
  Write(path("a_iter_x.hearth.json"), "{}");
  EXPECT_EQ(found(), "a_iter_100.solverstate");
  fs::remove(path("a_iter_100.caffemodel"));
  EXPECT_EQ(found(), "a_iter_20.solverstate");
  EXPECT_THAT(log_, HasSubstr("Passing over the snapshot of iteration 100: "));
  Write(path("a_iter_20.hearth.json"), "{\"version\"");
  EXPECT_EQ(found(), "a_iter_5.solverstate");
  EXPECT_EQ(found("another"), "a_iter_1000.solverstate");
  EXPECT_EQ(found("unknown"), "");
  EXPECT_FALSE(FindSnapshot(path("nowhere/a"), "r"));
}

TEST_F(SnapshotSealTest, ADamagedSnapshotGivesWayToTheOneBefore) {
  const SnapshotFiles first = Make(9), second = Make(10), third = Make(11);
  Write(second.state, "state");
  EXPECT_EQ(WholeSnapshot(second).state, first.state);
  EXPECT_THAT(log_, HasSubstr("Resuming from " + first.state + " instead of a damaged snapshot: " +
                              second.state + " has 5 bytes instead of "));
  EXPECT_EQ(std::count(log_.begin(), log_.end(), '\n'), 1);
  Write(first.model, "x");
  EXPECT_THAT([&] { WholeSnapshot(second); },
              ThrowsMessage<Error>(HasSubstr("no whole snapshot to resume from: " + second.state)));
}

TEST(TrainingPosition, FromGarbageIsRefused) {
  for (const char* text : {"", "[]", "{}", "{\"run\": 1}"}) {
    EXPECT_THAT([&] { PositionFromText(text); },
                ThrowsMessage<Error>(HasSubstr("position cannot be read")));
  }
}

}  // namespace
}  // namespace hearth::caffe
