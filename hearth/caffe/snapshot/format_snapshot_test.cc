// Compares the example bytes of docs/format_snapshot.md with the code's output.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "hearth/base/hmac.h"
#include "hearth/caffe/snapshot/snapshot.h"
#include "hearth/caffe/snapshot/snapshot_seal.h"
#include "hearth/storage/file.h"

namespace hearth::caffe {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// Reads the files of the page: the hexadecimal digits in its plain block, by file name, and the
// text of its JSON block as "seal".
std::map<std::string, std::string> DocumentedFiles() {
  std::ifstream document(HEARTH_TEST_DATA "/../../docs/format_snapshot.md");
  std::map<std::string, std::string> files;
  std::string block, name;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("```")) {
      block = block.empty() ? line : "";
    } else if (block == "```json") {
      files["seal"] += line + "\n";
    } else if (!block.empty() && !line.starts_with(" ")) {
      name = line;
    } else if (!block.empty()) {
      std::istringstream bytes(line);
      for (std::string byte; bytes >> byte;) files[name] += byte;
    }
  }
  return files;
}

std::string Unhex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

void SetBlob(BlobProto* blob, float first, float second) {
  blob->mutable_shape()->add_dim(1);
  blob->mutable_shape()->add_dim(2);
  blob->add_data(first);
  blob->add_data(second);
}

class FormatSnapshotTest : public testing::Test {
 protected:
  FormatSnapshotTest() {
    std::string name = (fs::temp_directory_path() / "hearth_format_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    files_ = {Path("a_iter_2.caffemodel"), Path("a_iter_2.solverstate")};
  }
  ~FormatSnapshotTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  void WriteSnapshot() const {
    NetParameter model;
    model.set_name("net");
    LayerParameter* layer = model.add_layer();
    layer->set_name("ip");
    layer->set_type("InnerProduct");
    SetBlob(layer->add_blobs(), 1, -2);
    WriteModel(model, files_.model);
    SolverState state;
    state.set_iter(2);
    state.set_learned_net("a_iter_2.caffemodel");
    state.set_current_step(0);
    SetBlob(state.add_history(), 0.5, 0);
    WriteState(state, files_.state);
    TrainingPosition position;
    position.run = "r";
    position.iteration = 2;
    position.seed = 7;
    position.fetches = 2;
    position.losses = {0.5, 0.25};
    position.rows = {{8, 0x0123456789abcdef}};
    position.row_hash = 2;
    position.batch_size = 4;
    position.counts = {.rows = 8, .bad = 1, .whole_epoch = 0, .all_bad = 1};
    SealSnapshot(position, files_);
  }

  fs::path folder_;
  SnapshotFiles files_;
};

TEST_F(FormatSnapshotTest, WritesTheDocumentedBytes) {
  auto documented = DocumentedFiles();
  ASSERT_EQ(documented.size(), 3U);
  WriteSnapshot();
  EXPECT_EQ(HexEncode(storage::ReadFile(files_.model)), documented["a_iter_2.caffemodel"]);
  EXPECT_EQ(HexEncode(storage::ReadFile(files_.state)), documented["a_iter_2.solverstate"]);
  EXPECT_EQ(storage::ReadFile(Path("a_iter_2.hearth.json")), documented["seal"]);
}

TEST_F(FormatSnapshotTest, ReadsTheDocumentedBytes) {
  auto documented = DocumentedFiles();
  std::ofstream(files_.model, std::ios::binary) << Unhex(documented["a_iter_2.caffemodel"]);
  std::ofstream(files_.state, std::ios::binary) << Unhex(documented["a_iter_2.solverstate"]);
  std::ofstream(Path("a_iter_2.hearth.json")) << documented["seal"];
  const SnapshotFiles checked = CheckSnapshot({"", files_.state});
  ASSERT_TRUE(checked.position);
  EXPECT_EQ(checked.position->fetches, 2);
  EXPECT_EQ(checked.position->rows, (std::vector<SealedRows>{{8, 0x0123456789abcdef}}));
  EXPECT_THAT(ReadModel(checked.model).layer(0).blobs(0).data(), ElementsAre(1, -2));
  EXPECT_THAT(ReadState(checked.state).history(0).data(), ElementsAre(0.5, 0));
}

}  // namespace
}  // namespace hearth::caffe
