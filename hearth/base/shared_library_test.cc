#include "hearth/base/shared_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace hearth {
namespace {

using ::testing::HasSubstr;

TEST(SharedLibrary, FindsItsFunctions) {
  const SharedLibrary library({"libc.so.6"});
  ASSERT_TRUE(library.loaded()) << library.problem();
  decltype(&std::strlen) length = nullptr;
  ASSERT_TRUE(library.Find("strlen", &length));
  EXPECT_EQ(length("four"), 4u);
  EXPECT_FALSE(library.Find("no_such_function", &length));
  EXPECT_EQ(length, nullptr);
}

TEST(SharedLibrary, LoadsTheFirstAvailableFile) {
  const SharedLibrary library({"libnone.so.1", "libc.so.6"});
  EXPECT_TRUE(library.loaded());
  EXPECT_EQ(library.problem(), "");
}

TEST(SharedLibrary, SupportsNoLoad) {
  EXPECT_TRUE(SharedLibrary({"libc.so.6"}, RTLD_NOLOAD).loaded());
  EXPECT_NE(SharedLibrary({"libcurl.so.4"}, RTLD_NOLOAD).problem(), "");
}

TEST(SharedLibrary, ReportsWhyTheFirstFileCannotBeLoaded) {
  const SharedLibrary library({"libnone.so.1", "libneither.so.1"});
  EXPECT_FALSE(library.loaded());
  EXPECT_THAT(library.problem(), HasSubstr("libnone.so.1"));
  decltype(&std::strlen) length = nullptr;
  EXPECT_FALSE(library.Find("strlen", &length)) << "the process has one, the library none";
}

}  // namespace
}  // namespace hearth
