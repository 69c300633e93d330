#include "hearth/caffe/snapshot/snapshot_seal.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/sha256.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
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

  // Writes a seal and two files that stand for a snapshot of `run` after `iteration`.
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
    position.rows = {{12, UINT64_MAX}, {0, 0}, {INT64_MAX, 1}};
    position.row_hash = 2;
    position.batch_size = 4;
    position.datasets = "train: Delta version 3";
    position.losses = {0.1f, 1.0f, std::nanf("")};
    position.counts = {.rows = 700, .bad = 3, .whole_epoch = 1000, .all_bad = 11};
    SealSnapshot(position, files);
    return files;
  }

  // Changes a seal and updates its checksum.
  void Reseal(int iteration, const std::function<void(nlohmann::json&)>& change) {
    const std::string name = path(fmt::format("a_iter_{}.hearth.json", iteration));
    auto seal = nlohmann::json::parse(storage::ReadFile(name));
    seal.erase("sha256");
    change(seal);
    seal["sha256"] = Sha256Hex(seal.dump());
    Write(name, seal.dump());
  }

  std::string found(const std::string& run = "r") const {
    const auto files = FindSnapshot(path("a"), run);
    return files ? fs::path(files->state).filename().string() : "";
  }

  fs::path folder_;
  std::string log_;
};

TEST_F(SnapshotSealTest, RoundTripsThePosition) {
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
  EXPECT_EQ(checked.position->rows,
            (std::vector<SealedRows>{{12, UINT64_MAX}, {0, 0}, {INT64_MAX, 1}}));
  EXPECT_EQ(checked.position->row_hash, 2);
  EXPECT_EQ(checked.position->batch_size, 4);
  EXPECT_EQ(checked.position->datasets, "train: Delta version 3");
  ASSERT_EQ(checked.position->losses.size(), 3u);
  EXPECT_EQ(checked.position->losses[0], 0.1f);
  EXPECT_TRUE(std::isnan(checked.position->losses[2]));
  EXPECT_EQ(checked.position->seal, path("a_iter_7.hearth.json"));
  for (const TrainingPosition& position :
       {*checked.position, PositionFromText(PositionToText(*checked.position))}) {
    ASSERT_TRUE(position.counts);
    EXPECT_EQ(position.counts->rows, 700);
    EXPECT_EQ(position.counts->bad, 3);
    EXPECT_EQ(position.counts->whole_epoch, 1000);
    EXPECT_EQ(position.counts->all_bad, 11);
    EXPECT_EQ(position.seal, checked.position->seal);
    EXPECT_EQ(position.row_hash, 2);
  }
}

TEST_F(SnapshotSealTest, OfAnEarlierVersionHasNoCounts) {
  const SnapshotFiles files = Make(7);
  Reseal(7, [](nlohmann::json& seal) { seal.erase("counts"); });
  EXPECT_FALSE(CheckSnapshot(files).position->counts);
}

// The seal's checksum is right in each case: it does not protect from an attacker, who can compute
// it, too.
TEST_F(SnapshotSealTest, AnImpossibleFieldIsRejectedByName) {
  const SnapshotFiles files = Make(7);
  const std::string whole = storage::ReadFile(path("a_iter_7.hearth.json"));
  const std::vector<std::pair<const char*, nlohmann::json>> cases = {
      {"fetches", 1'000'000'000'000'000},
      {"fetches", -1},
      {"fetches", UINT64_MAX},
      {"fetches", 2.5},
      {"iteration", -7},
      {"iteration", 1LL << 32},
      {"epoch", -1},
      {"epoch", 8},
      {"current_step", -1},
      {"ranks", 0},
      {"ranks", "three"},
      {"row_hash", "two"},
      {"counts", {{"rows", -1}}}};
  for (const auto& [field, value] : cases) {
    Write(path("a_iter_7.hearth.json"), whole);
    Reseal(7, [&](nlohmann::json& seal) { seal[field] = value; });
    const std::string name = std::string(field) == "counts" ? "rows" : field;
    EXPECT_THAT([&] { CheckSnapshot(files); },
                ThrowsMessage<Error>(AllOf(HasSubstr("a_iter_7.hearth.json cannot be used"),
                                           HasSubstr("field \"" + name + "\" of the seal is "))))
        << value;
    EXPECT_EQ(found(), "");
  }
}

TEST_F(SnapshotSealTest, IsOptional) {
  const SnapshotFiles files = Make(7);
  fs::remove(path("a_iter_7.hearth.json"));
  EXPECT_FALSE(CheckSnapshot(files).position);
  EXPECT_EQ(WholeSnapshot(files).state, files.state);
}

// Flips a bit of every byte of each file, and truncates each file at every length.
TEST_F(SnapshotSealTest, DetectsEveryFlippedBitAndEveryTruncation) {
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
        // White space of the seal may be removed or replaced by other white space, because no data
        // is lost.
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

TEST_F(SnapshotSealTest, TheNewestIntactSnapshotOfARunIsFound) {
  for (const int iteration : {5, 20, 100}) Make(iteration);
  Make(1000, "another");
  Write(path("a_iter_x.hearth.json"), "{}");
  EXPECT_EQ(found(), "a_iter_100.solverstate");
  fs::remove(path("a_iter_100.caffemodel"));
  EXPECT_EQ(found(), "a_iter_20.solverstate");
  EXPECT_THAT(log_, HasSubstr("Skipping the snapshot of iteration 100: "));
  Write(path("a_iter_20.hearth.json"), "{\"version\"");
  EXPECT_EQ(found(), "a_iter_5.solverstate");
  EXPECT_EQ(found("another"), "a_iter_1000.solverstate");
  EXPECT_EQ(found("unknown"), "");
  EXPECT_FALSE(FindSnapshot(path("nowhere/a"), "r"));
}

TEST_F(SnapshotSealTest, ADamagedSnapshotIsReplacedByThePreviousOne) {
  const SnapshotFiles first = Make(9), second = Make(10), third = Make(11);
  Write(second.state, "state");
  EXPECT_EQ(WholeSnapshot(second).state, first.state);
  EXPECT_THAT(log_, HasSubstr("Resuming from " + first.state + " instead of a damaged snapshot: " +
                              second.state + " has 5 bytes instead of "));
  EXPECT_EQ(std::count(log_.begin(), log_.end(), '\n'), 1);
  Write(first.model, "x");
  EXPECT_THAT([&] { WholeSnapshot(second); },
              ThrowsMessage<Error>(
                  HasSubstr("the run has no intact snapshot to resume from: " + second.state)));
}

TEST_F(SnapshotSealTest, ADamagedSnapshotIsNotReplacedByOneOfAnotherRun) {
  Make(8, "another");
  Make(9, "");
  const SnapshotFiles damaged = Make(10);
  Write(damaged.state, "state");
  EXPECT_THAT([&] { WholeSnapshot(damaged); },
              ThrowsMessage<Error>(HasSubstr("the run has no intact snapshot")));
  // The run is unknown if the seal itself is damaged.
  const SnapshotFiles unknown = Make(11);
  Write(path("a_iter_11.hearth.json"), "{}");
  EXPECT_THAT([&] { WholeSnapshot(unknown); },
              ThrowsMessage<Error>(HasSubstr("a_iter_11.hearth.json is truncated or damaged")));
}

TEST_F(SnapshotSealTest, ADeeplyNestedSealIsDamaged) {
  const SnapshotFiles files = Make(9);
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  Write(path("a_iter_9.hearth.json"), R"({"sha256": "", "notes": )" + deep + "}");
  EXPECT_THAT([&] { CheckSnapshot(files); }, ThrowsMessage<Error>(HasSubstr("nested deeper")));
  EXPECT_THAT([&] { PositionFromText(deep); }, ThrowsMessage<Error>(HasSubstr("nested deeper")));
}

TEST(TrainingPosition, OfAnOlderSealHasNoRows) {
  const std::string text =
      R"({"run": "r", "iteration": 7, "current_step": 0, "seed": 1, "ranks": 2, "epoch": 0,
          "fetches": 7, "losses": [1.5]})";
  const TrainingPosition position = PositionFromText(text);
  EXPECT_EQ(position.fetches, 7);
  EXPECT_TRUE(position.rows.empty());
  EXPECT_EQ(position.row_hash, 1);
  EXPECT_EQ(position.batch_size, 0);
}

TEST(TrainingPosition, WithInvalidRowsIsRejected) {
  TrainingPosition position;
  position.rows = {{12, 0xabc}};
  const std::string text = PositionToText(position);
  const size_t at = text.find("0000000000000abc");
  ASSERT_NE(at, std::string::npos);
  EXPECT_THROW(PositionFromText(std::string(text).replace(at, 16, "xyz")), Error);
  EXPECT_THROW(PositionFromText(std::string(text).replace(at, 16, "10000000000000000")), Error);
}

TEST(TrainingPosition, FromGarbageIsRejected) {
  for (const char* text : {"", "[]", "{}", "{\"run\": 1}"}) {
    EXPECT_THAT([&] { PositionFromText(text); },
                ThrowsMessage<Error>(HasSubstr("cannot read another rank's training position")));
  }
}

}  // namespace
}  // namespace hearth::caffe
