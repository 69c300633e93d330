#include <gmock/gmock.h>

#include "hearth/base/error.h"
#include "hearth/caffe/upgrade/net_file.h"

namespace hearth::caffe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(UpgradeLayers, RejectsBothFormatsInOneNet) {
  EXPECT_THAT([] { ParseNet("layer { name: 'a' } layers { name: 'b' }", "mixed"); },
              ThrowsMessage<Error>(HasSubstr("mixed: it has 1 `layer` and 1 `layers`")));
}

}  // namespace
}  // namespace hearth::caffe
