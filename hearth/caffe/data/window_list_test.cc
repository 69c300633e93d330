#include "hearth/caffe/data/window_list.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;

class WindowListTest : public testing::Test {
 protected:
  ~WindowListTest() override { std::filesystem::remove(path_); }

  WindowList Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadWindowList(path_, 0.5F, 0.3F);
  }
  std::string ErrorOf(const std::string& text) {
    const Error error = Thrown([&] { Read(text); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }

  const std::string path_ = TestFolder() + "window_list_test.txt";
};

TEST_F(WindowListTest, SortsWindowsByTheirOverlap) {
  const WindowList list = Read(
      "# 0\na.jpg\n3 20 30 3\n5 0.9 0 0 9 9\n5 0.4 1 1 9 9\n5 0.1 2 2 9 9\n"
      "# 1\nb.jpg\n1 8 8 1\n2 0.5 0 0 7 7\n");
  ASSERT_EQ(list.images.size(), 2u);
  EXPECT_EQ(list.images[1].path, "b.jpg");
  ASSERT_EQ(list.foreground.size(), 2u);
  EXPECT_EQ(list.foreground[0].label, 5);
  EXPECT_EQ(list.foreground[1].image, 1u);
  // A window between the two limits is neither foreground nor background. Background windows have
  // label 0.
  ASSERT_EQ(list.background.size(), 1u);
  EXPECT_EQ(list.background[0].label, 0);
  EXPECT_EQ(list.background[0].x1, 2);
}

TEST_F(WindowListTest, NamesTheEntryThatIsIncomplete) {
  EXPECT_THAT(ErrorOf("# 0\na.jpg\n3 20 30"), HasSubstr("entry 0 is not"));
  EXPECT_THAT(ErrorOf("# 0\na.jpg\n3 20 30 0\n# 1\nb.jpg\n3 0 30 0"), HasSubstr("entry 1 is not"));
  EXPECT_THAT(ErrorOf("# 0\na.jpg\n3 20 30 2\n5 0.9 0 0 9 9\n"), HasSubstr("window 1 of a.jpg"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("has no images"));
}

TEST_F(WindowListTest, RejectsWindowsOutsideTheImage) {
  for (const char* corners : {"-1 0 9 9", "0 0 30 9", "0 0 9 20", "9 0 8 9"}) {
    EXPECT_THAT(ErrorOf(std::string("# 0\na.jpg\n3 20 30 1\n5 0.9 ") + corners),
                HasSubstr("inside 20 x 30 pixels"))
        << corners;
  }
}

}  // namespace
}  // namespace hearth::caffe
