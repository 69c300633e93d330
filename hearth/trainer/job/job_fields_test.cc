#include "hearth/trainer/job/job_fields.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>

#include "hearth/base/testing/error_testing.h"

namespace hearth::trainer {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(JobFieldsTest, AbsentAndNullFieldsReturnTheFallback) {
  const json object = {{"null", nullptr}};
  const JobFields fields(object, "");
  for (const char* name : {"absent", "null"}) {
    EXPECT_FALSE(fields.Has(name));
    EXPECT_EQ(fields.String(name, "text"), "text");
    EXPECT_EQ(fields.Integer(name, 7, 8, 9), 7) << "the fallback may be out of range";
    EXPECT_EQ(fields.Unsigned(name, 7), 7U);
    EXPECT_TRUE(fields.Bool(name, true));
    EXPECT_THAT(fields.Strings(name), IsEmpty());
    EXPECT_FALSE(fields.Object(name).has_value());
  }
}

TEST(JobFieldsTest, WrongTypesAreNamedWithTheirPathAndValue) {
  const json object = {{"threads", "four"},       {"text", 1},   {"flag", 0},  {"list", {"a", 1}},
                       {"object", json::array()}, {"count", -1}, {"half", 0.5}};
  const JobFields fields(object, "solver.");
  const auto message = [](const auto& call) {
    const Error error = Thrown(call);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  };
  EXPECT_EQ(message([&] { (void)fields.Integer("threads", 1, 1, 64); }),
            "the job's field \"solver.threads\" must be an integer from 1 to 64, got \"four\"");
  EXPECT_THAT(message([&] { (void)fields.Integer("half", 1, 0, 1); }), HasSubstr("got 0.5"));
  EXPECT_THAT(message([&] { (void)fields.String("text", ""); }), HasSubstr("a string, got 1"));
  EXPECT_THAT(message([&] { (void)fields.Bool("flag", false); }),
              HasSubstr("true or false, got 0"));
  EXPECT_THAT(message([&] { (void)fields.Strings("list"); }), HasSubstr("a list of strings"));
  EXPECT_THAT(message([&] { (void)fields.Object("object"); }), HasSubstr("an object, got []"));
  EXPECT_THAT(message([&] { (void)fields.Unsigned("count", 0); }), HasSubstr("got -1"));
  EXPECT_THAT(message([&] { (void)fields.RequiredString("absent"); }), HasSubstr("got nothing"));
}

TEST(JobFieldsTest, IntegersHaveLimits) {
  const json object = {{"low", -3}, {"high", 9}, {"huge", UINT64_MAX}, {"largest", INT64_MAX}};
  const JobFields fields(object, "");
  EXPECT_EQ(fields.Integer("low", 0, -3, 9), -3);
  EXPECT_EQ(fields.Integer("high", 0, -3, 9), 9);
  EXPECT_EQ(fields.Integer("largest", 0, 0, INT64_MAX), INT64_MAX);
  EXPECT_EQ(fields.Unsigned("huge", 0), UINT64_MAX);
  for (const auto& [name, least, most] :
       {std::tuple{"low", -2, 9}, {"high", -3, 8}, {"huge", -3, 9}}) {
    EXPECT_EQ(CodeOf([&] { (void)fields.Integer(name, 0, least, most); }),
              ErrorCode::kInvalidArgument);
  }
  // Must not be read as -1, which has the same bits as 2^64 - 1.
  EXPECT_EQ(CodeOf([&] { (void)fields.Integer("huge", 0, INT64_MIN, INT64_MAX); }),
            ErrorCode::kInvalidArgument);
}

TEST(JobFieldsTest, TheTokenAndLongValuesAreNotShown) {
  const json object = {{"token", 12345}, {"long", json::array({std::string(1000, 'x')})}};
  const JobFields fields(object, "");
  EXPECT_THAT(Thrown([&] { (void)fields.String("token", ""); }).message(),
              AllOf(HasSubstr("token"), Not(HasSubstr("12345"))));
  EXPECT_LT(Thrown([&] { (void)fields.String("long", ""); }).message().size(), 200U);
}

TEST(JobFieldsTest, UnknownFieldsAreNamedWithTheKnownOnes) {
  const json object = {{"rank", 0}, {"solver", {{"path", "a"}, {"tpye", "SGD"}}}};
  const JobFields fields(object, "");
  (void)fields.Integer("rank", 0, 0, 1);
  (void)fields.Has("world");
  const JobFields solver = *fields.Object("solver");
  EXPECT_NO_THROW(fields.RejectUnknownFields());
  (void)solver.RequiredString("path");
  EXPECT_EQ(Thrown([&] { solver.RejectUnknownFields(); }).message(),
            "the job has an unknown field \"solver.tpye\"; known fields: path");
}

TEST(JobFieldsTest, ListsKeepTheirOrder) {
  const json object = {{"stages", {"b", "a", "b"}}};
  EXPECT_THAT(JobFields(object, "").Strings("stages"), ElementsAre("b", "a", "b"));
}

}  // namespace
}  // namespace hearth::trainer
