#include "hearth/storage/curl_library.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::storage {
namespace {

using testing::AllOf;
using testing::ExitedWithCode;
using testing::HasSubstr;

// Death tests without a usable libcurl. Each runs its statement in a new process of this program,
// with a library path on which a file hides the host's libcurl.
class CurlLibraryTest : public testing::Test {
 protected:
  CurlLibraryTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (const char* path = std::getenv("LD_LIBRARY_PATH")) before_ = path;
    // The child of a death test runs this constructor again. It must use its parent's folder, which
    // the parent has put into LD_LIBRARY_PATH.
    folder_ = testing::internal::InDeathTestChild() ? *before_ : TestFolder() + "curl/";
    std::filesystem::create_directories(folder_);
  }
  ~CurlLibraryTest() override {
    ::unsetenv("LD_LIBRARY_PATH");
    if (before_) ::setenv("LD_LIBRARY_PATH", before_->c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  std::string Hidden(const std::string& name) const {
    ::setenv("LD_LIBRARY_PATH", folder_.c_str(), 1);
    return folder_ + name;
  }

  // Called in the child: writes the error of Curl() to stderr and exits, with 0 for kUnimplemented.
  [[noreturn]] static void ExitWithCurlError() {
    const Error error = Thrown([] { Curl(); });
    std::fprintf(stderr, "%s\n", error.message().c_str());
    ::_exit(error.code() == ErrorCode::kUnimplemented ? 0 : 1);
  }

  std::string folder_;
  std::optional<std::string> before_;
};

TEST_F(CurlLibraryTest, IsLoadedOnceWithWorkingFunctions) {
  const CurlLibrary& curl = Curl();
  EXPECT_EQ(&curl, &Curl());
  CURL* handle = curl.init();
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(curl.set(handle, CURLOPT_URL, "file:///dev/null"), CURLE_OK);
  EXPECT_STRNE(curl.text_of(CURLE_COULDNT_CONNECT), "");
  long status = -1;
  EXPECT_EQ(curl.get(handle, CURLINFO_RESPONSE_CODE, &status), CURLE_OK);
  EXPECT_EQ(status, 0);
  curl.reset(handle);
  EXPECT_NE(curl.perform(handle), CURLE_OK) << "the URL must be gone";
  curl.cleanup(handle);
  curl_slist* list = curl.append(nullptr, "a: b");
  ASSERT_NE(list, nullptr);
  EXPECT_STREQ(list->data, "a: b");
  curl.free_list(list);
}

TEST_F(CurlLibraryTest, AMissingLibraryIsReportedWithItsPackages) {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    std::ofstream(Hidden(name)) << "text";
  }
  EXPECT_EXIT(ExitWithCurlError(), ExitedWithCode(0),
              AllOf(HasSubstr("libcurl.so.4"), HasSubstr("libcurl4 (Debian, Ubuntu)"),
                    HasSubstr("HEARTH_HDFS=libhdfs")));
}

TEST_F(CurlLibraryTest, ALibraryWithoutAFunctionIsReportedWithItsName) {
  std::filesystem::copy_file(HEARTH_STAND_IN_LIBHDFS, Hidden("libcurl.so.4"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EXIT(ExitWithCurlError(), ExitedWithCode(0),
              HasSubstr("lacks curl_global_init; install a newer one"));
}

}  // namespace
}  // namespace hearth::storage
