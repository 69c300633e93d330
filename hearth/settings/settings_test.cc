#include "hearth/settings/settings.h"

#include <gmock/gmock.h>

#include <set>
#include <utility>

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
      if (setting.allows) {
        EXPECT_TRUE(setting.allows(defaults.**text)) << setting.name;
        EXPECT_FALSE(setting.must_be.empty()) << setting.name;
      }
    } else {
      EXPECT_THAT(setting.values, IsEmpty()) << setting.name;
    }
  }
}

TEST(InvalidRowLimit, IsANumberOfRowsOrAFraction) {
  const auto parse = [](const char* text) {
    const InvalidRowLimit limit = ParseInvalidRowLimit(text).value();
    return std::pair(limit.rows, limit.fraction);
  };
  EXPECT_EQ(parse(""), std::pair(int64_t{-1}, -1.0));
  EXPECT_EQ(parse("0"), std::pair(int64_t{0}, -1.0));
  EXPECT_EQ(parse("10"), std::pair(int64_t{10}, -1.0));
  EXPECT_EQ(parse("0.25"), std::pair(int64_t{-1}, 0.25));
  EXPECT_EQ(parse("1e-3"), std::pair(int64_t{-1}, 0.001));
  EXPECT_EQ(parse("1.0"), std::pair(int64_t{-1}, 1.0));
  for (const char* text :
       {"some", "1.5", "-1", "-0.5", "0.1 ", "nan", "inf", "0x1", "99999999999999999999"}) {
    EXPECT_EQ(ParseInvalidRowLimit(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hearth::settings
