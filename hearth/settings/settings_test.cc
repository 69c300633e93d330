#include "hearth/settings/settings.h"

#include <gmock/gmock.h>

#include <set>

namespace hearth::settings {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

TEST(Settings, HaveUniqueNamesAndFlags) {
  std::set<std::string> names, flags;
  for (const Setting& setting : Table()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    if (!setting.flag.empty()) {
      EXPECT_TRUE(flags.insert(setting.flag).second) << setting.flag;
    }
  }
}

TEST(Settings, AllowTheirDefaults) {
  const Settings defaults;
  for (const Setting& setting : Table()) {
    if (const auto* number = std::get_if<int Settings::*>(&setting.field)) {
      EXPECT_GE(defaults.**number, setting.least) << setting.name;
      EXPECT_LE(defaults.**number, setting.most) << setting.name;
    }
    if (const auto* text = std::get_if<std::string Settings::*>(&setting.field)) {
      if (!setting.values.empty()) {
        EXPECT_THAT(setting.values, Contains(defaults.**text)) << setting.name;
      }
    } else {
      EXPECT_THAT(setting.values, IsEmpty()) << setting.name;
    }
  }
}

}  // namespace
}  // namespace hearth::settings
