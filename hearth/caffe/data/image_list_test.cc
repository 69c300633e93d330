#include "hearth/caffe/data/image_list.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::caffe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImageListTest : public testing::Test {
 protected:
  ~ImageListTest() override { std::filesystem::remove(path_); }

  const std::string& Write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }

  const std::string path_ = TestFolder() + "image_list_test.txt";
};

TEST_F(ImageListTest, TheLabelIsBehindTheLastBlank) {
  const auto images = ReadImageList(Write("a.jpg 3\n\n  b c.jpg\t-1  \r\nd.jpg   0"));
  ASSERT_EQ(images.size(), 3u);
  EXPECT_EQ(images[0].path, "a.jpg");
  EXPECT_EQ(images[0].label, 3);
  EXPECT_EQ(images[1].path, "b c.jpg");
  EXPECT_EQ(images[1].label, -1);
  EXPECT_EQ(images[2].path, "d.jpg");
}

TEST_F(ImageListTest, NamesTheLineWithoutALabel) {
  for (const char* line : {"b.jpg", "b.jpg x", "b.jpg 1.5", "b.jpg 99999999999"}) {
    const Error error = Thrown([&] { ReadImageList(Write("a.jpg 1\n" + std::string(line))); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << line;
    EXPECT_THAT(error.message(), HasSubstr("image_list_test.txt:2: 'b.jpg")) << line;
  }
  EXPECT_THAT(Thrown([&] { ReadImageList(Write("\n \n")); }).message(), HasSubstr("no images"));
}

TEST_F(ImageListTest, LinesAreStrippedAndEmptyOnesDropped) {
  EXPECT_THAT(ReadLines(Write(" one \n\n\ttwo words\r\n")), ElementsAre("one", "two words"));
  EXPECT_EQ(CodeOf([] { ReadLines("/nowhere/list.txt"); }), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace hearth::caffe
