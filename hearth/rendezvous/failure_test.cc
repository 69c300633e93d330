#include "hearth/rendezvous/failure.h"

#include <gtest/gtest.h>

namespace hearth::rendezvous {
namespace {

TEST(Failure, DescribesRankHostAndReason) {
  const Failure failure = {.rank = 1, .host = "node7", .message = "layer ip1: bad shape"};
  EXPECT_EQ(failure.Describe(), "rank 1 on host node7 failed: layer ip1: bad shape");
}

TEST(Failure, ALostRankIsNotDescribedAsFailed) {
  const Failure failure = {.rank = 1, .host = "node7", .message = "went away", .lost = true};
  EXPECT_EQ(failure.Describe(), "rank 1 on host node7 went away");
}

TEST(Failure, WithoutARankIsItsMessage) {
  EXPECT_EQ(Failure{.message = "rank 2 of 3 did not join the cluster"}.Describe(),
            "rank 2 of 3 did not join the cluster");
}

TEST(Failure, RoundTripsThroughJson) {
  const Failure sent = {.rank = 1,
                        .host = "h",
                        .code = ErrorCode::kDataLoss,
                        .message = "m",
                        .lost = true,
                        .iteration = 7,
                        .layer = "conv1",
                        .consequence = true};
  const Failure got = Failure::FromJson(Json::parse(sent.ToJson().dump()));
  EXPECT_EQ(got.ToJson(), sent.ToJson());
  EXPECT_EQ(got.code, ErrorCode::kDataLoss);
  EXPECT_EQ(got.iteration, 7);
}

TEST(Failure, ALongTextIsShortenedBetweenCharacters) {
  const std::string most(kMaxFailureText, 'x');
  EXPECT_EQ(Shortened(most), most);
  for (const size_t ahead : {0, 1, 2}) {
    std::string text(ahead, 'a');
    for (int i = 0; i < 20'000; ++i) text += "\u20ac";  // three bytes each
    const std::string kept = Shortened(text);
    EXPECT_LT(kept.size(), kMaxFailureText + 100);
    EXPECT_NO_THROW(Json(kept).dump());  // dump() requires valid UTF-8
  }
}

TEST(Failure, OfAnotherRankIsAborted) {
  try {
    ThrowFailure({.rank = 0, .host = "h", .message = "m"});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_EQ(error.message(), "rank 0 on host h failed: m");
  }
}

TEST(Failure, MissingFieldsKeepTheirDefaults) {
  const Failure failure = Failure::FromJson(Json::object());
  EXPECT_EQ(failure.ToJson(), Failure{}.ToJson());
  EXPECT_EQ(failure.rank, -1);
  EXPECT_EQ(failure.code, ErrorCode::kInternal);
  EXPECT_EQ(Failure::FromJson({{"code", "of a later version"}}).code, ErrorCode::kInternal);
}

TEST(Failure, AFieldOfAnotherTypeIsJsonsError) {
  for (const Json& json : std::vector<Json>{{{"rank", "one"}},
                                            {{"host", 7}},
                                            {{"code", 7}},
                                            {{"message", nullptr}},
                                            {{"lost", "yes"}},
                                            {{"iteration", Json::array()}}}) {
    EXPECT_THROW(Failure::FromJson(json), Json::exception) << json;
  }
}

TEST(Failure, AShortenedTextKeepsBothEndsAndCountsTheRest) {
  std::string text = "begin" + std::string(100'000, 'x') + "end";
  const std::string kept = Shortened(text);
  EXPECT_TRUE(kept.starts_with("beginx"));
  EXPECT_TRUE(kept.ends_with("xend"));
  const size_t omitted = text.size() - kMaxFailureText;
  EXPECT_NE(kept.find(fmt::format("[... {} bytes omitted ...]", omitted)), std::string::npos);
  EXPECT_EQ(Failure{.message = text}.ToJson().at("message"), kept);
  // Invalid UTF-8 must not make the result longer.
  EXPECT_LT(Shortened(std::string(100'000, '\x80')).size(), kMaxFailureText + 100);
}

TEST(Failure, IsTheReportOfARankOnlyIfThatRankReportedIt) {
  EXPECT_TRUE((Failure{.rank = 2}.IsReportOf(2)));
  EXPECT_FALSE((Failure{.rank = 2}.IsReportOf(1)));
  EXPECT_FALSE((Failure{.rank = 2, .lost = true}.IsReportOf(2))) << "others noticed it";
}

}  // namespace
}  // namespace hearth::rendezvous
