#include "hearth/storage/hadoop_token.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hearth/base/testing/error_testing.h"

namespace hearth::storage {
namespace {

std::string Text(std::string_view text) {
  return static_cast<char>(text.size()) + std::string(text);
}

std::string Token(const std::string& kind, const std::string& service, const std::string& id) {
  return Text("alias") + Text(id) + Text("pw") + Text(kind) + Text(service);
}

std::string Credentials(const std::vector<std::string>& tokens) {
  std::string all("HDTS\0", 5);
  all += static_cast<char>(tokens.size());
  for (const std::string& token : tokens) all += token;
  return all + '\0';  // the number of secrets
}

// Base64 of the token's four fields, each with its length.
constexpr char kOfA[] = "AWECcHcVSERGU19ERUxFR0FUSU9OX1RPS0VOC2hhLWhkZnM6b25l";
constexpr char kKind[] = "HDFS_DELEGATION_TOKEN";

TEST(TokenIn, FindsTheTokenOfAHostOrNameService) {
  const std::string file =
      Credentials({Token("YARN_AM_RM_TOKEN", "ha-hdfs:one", "x"), Token(kKind, "two:8020", "b"),
                   Token(kKind, "ha-hdfs:one", "a")});
  EXPECT_EQ(TokenIn(file, {"one"}), kOfA);
  EXPECT_NE(TokenIn(file, {"two"}), kOfA);
  EXPECT_NE(TokenIn(file, {"two"}), "");
  EXPECT_EQ(TokenIn(file, {"three"}), "");
  EXPECT_EQ(TokenIn(file, {}), "") << "it cannot be known which of the two";
  EXPECT_EQ(TokenIn(Credentials({Token(kKind, "ha-hdfs:one", "a")}), {}), kOfA);
  EXPECT_EQ(TokenIn(Credentials({}), {"one"}), "");
}

TEST(TokenIn, FindsTheTokenOfANameServiceOfWebHdfs) {
  constexpr char kWebKind[] = "WEBHDFS delegation";
  EXPECT_NE(TokenIn(Credentials({Token(kWebKind, "ha-webhdfs:one", "a")}), {"one"}), "");
  EXPECT_NE(TokenIn(Credentials({Token(kWebKind, "ha-swebhdfs:one", "a")}), {"one"}), "");
  EXPECT_NE(TokenIn(Credentials({Token(kWebKind, "ha-one:9870", "a")}), {"ha-one"}), "");
}

TEST(TokenIn, ReturnsNoTokenOfAnotherHost) {
  EXPECT_EQ(TokenIn(Credentials({Token(kKind, "ha-hdfs:one", "a")}), {"three"}), "");
}

TEST(TokenFor, MatchesAddressesAndNameServices) {
  std::string file = (std::filesystem::temp_directory_path() / "hearth_tokens_XXXXXX").string();
  close(mkstemp(file.data()));
  setenv("HADOOP_TOKEN_FILE_LOCATION", file.c_str(), 1);
  const auto write = [&](const std::string& service) {
    std::ofstream(file) << Credentials({Token(kKind, service, "a")});
  };
  HadoopConf conf;
  conf.AddXml(R"(<configuration>
      <property><name>dfs.nameservices</name><value>one</value></property>
      <property><name>dfs.ha.namenodes.one</name><value>a</value></property>
      <property><name>dfs.namenode.rpc-address.one.a</name><value>127.0.0.9:8020</value></property>
      </configuration>)",
              "hdfs-site.xml");
  write("127.0.0.1:8020");
  EXPECT_NE(TokenFor("127.0.0.1:9000", conf), "");
  EXPECT_NE(TokenFor("localhost", conf), "");
  EXPECT_EQ(TokenFor("127.0.0.2:8020", conf), "");
  write("ha-hdfs:one");
  EXPECT_NE(TokenFor("one", conf), "");
  EXPECT_NE(TokenFor("127.0.0.9:9870", conf), "");
  EXPECT_EQ(TokenFor("127.0.0.1:9870", conf), "");
  unsetenv("HADOOP_TOKEN_FILE_LOCATION");
  std::filesystem::remove(file);
}

TEST(TokenIn, ReadsLongFieldsAndProtobuf) {
  const std::string id(300, 'i');
  std::string long_token = Text("alias");
  long_token += std::string("\x8e\x01\x2c", 3) + id;  // the length 300 in two bytes
  long_token += Text("pw") + Text(kKind) + Text("ha-hdfs:one");
  const std::string plain = TokenIn(Credentials({long_token}), {"one"});
  EXPECT_TRUE(plain.starts_with("jgEsaWlp")) << plain;

  const auto member = [](int number, const std::string& value) {
    return static_cast<char>(number << 3 | 2) + Text(value);
  };
  const std::string token =
      member(1, "a") + member(2, "pw") + member(3, kKind) + member(4, "ha-hdfs:one");
  const std::string entry = member(1, member(1, "alias") + member(2, token));
  EXPECT_EQ(TokenIn(std::string("HDTS\1", 5) + Text(entry), {"one"}), kOfA);
}

TEST(TokenIn, RejectsAnInvalidFile) {
  const std::string whole = Credentials({Token(kKind, "ha-hdfs:one", "a")});
  for (size_t size = 0; size < whole.size() - 1; ++size) {
    EXPECT_EQ(Thrown([&] { TokenIn(whole.substr(0, size), {"one"}); }).code(),
              ErrorCode::kDataLoss);
  }
  EXPECT_THROW(TokenIn("XDTS" + whole.substr(4), {"one"}), Error);
}

TEST(WithoutToken, MasksTokensInTextsAndUrls) {
  EXPECT_EQ(WithoutToken("at http://h/a?delegation=abc&op=x, abc", "abc"),
            "at http://h/a?delegation=***&op=x, ***");
  EXPECT_EQ(WithoutToken("delegation=other", ""), "delegation=***");
}

TEST(TokenIn, RejectsDamagedProtobuf) {
  const auto member = [](int number, const std::string& value) {
    return static_cast<char>(number << 3 | 2) + Text(value);
  };
  const std::string token =
      member(1, "a") + member(2, "pw") + member(3, kKind) + member(4, "ha-hdfs:one");
  const std::string entry = member(1, member(1, "alias") + member(2, token));
  const std::string whole = std::string("HDTS\1", 5) + Text(entry);
  ASSERT_EQ(TokenIn(whole, {"one"}), kOfA);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(CodeOf([&] { TokenIn(whole.substr(0, size), {"one"}); }), ErrorCode::kDataLoss)
        << size;
  }
  // A length beyond the end, a varint without an end, and an invalid wire type.
  for (const std::string& body :
       {std::string("\x0a\x7f"), std::string("\x08") + std::string(11, '\x80'),
        std::string("\x0f\1")}) {
    EXPECT_EQ(CodeOf([&] { TokenIn(std::string("HDTS\1", 5) + Text(body), {"one"}); }),
              ErrorCode::kDataLoss);
  }
  EXPECT_EQ(CodeOf([&] { TokenIn("HDTS\2" + whole.substr(5), {"one"}); }), ErrorCode::kDataLoss);
}

TEST(TokenIn, RejectsNegativeLengths) {
  for (const char* length : {"\xff", "\x87\1", "\x80\1"}) {
    EXPECT_EQ(CodeOf([&] { TokenIn(std::string("HDTS\0\1", 6) + length + "rest", {"one"}); }),
              ErrorCode::kDataLoss);
  }
}

TEST(TokenFor, NamesTheFileThatItCannotUse) {
  setenv("HADOOP_TOKEN_FILE_LOCATION", "/nowhere/tokens", 1);
  const Error error = Thrown([] { TokenFor("127.0.0.1:8020", HadoopConf()); });
  unsetenv("HADOOP_TOKEN_FILE_LOCATION");
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.message(), ::testing::HasSubstr("HADOOP_TOKEN_FILE_LOCATION=/nowhere/tokens"));
  EXPECT_EQ(TokenFor("127.0.0.1:8020", HadoopConf()), "") << "no file";
}

TEST(CurrentTokenTest, IsReplacedByAnotherTokenOnly) {
  CurrentToken fixed("old");
  EXPECT_FALSE(fixed.Replace("old"));
  EXPECT_EQ(fixed.Get(), "old");

  std::string newest = "old";
  int searches = 0;
  CurrentToken current("old", [&] {
    ++searches;
    return newest;
  });
  EXPECT_FALSE(current.Replace("old")) << "the file has the refused token still";
  newest = "";
  EXPECT_FALSE(current.Replace("old")) << "the file has none";
  EXPECT_EQ(current.Get(), "old");
  newest = "new";
  EXPECT_TRUE(current.Replace("old"));
  EXPECT_EQ(current.Get(), "new");
  EXPECT_EQ(searches, 3);
  EXPECT_TRUE(current.Replace("old")) << "another thread's request had the old one";
  EXPECT_EQ(searches, 3) << "no search for a token that is already there";
}

TEST(CurrentTokenTest, AFailedSearchKeepsTheToken) {
  CurrentToken current("old", []() -> std::string { Throw(ErrorCode::kDataLoss, "damaged"); });
  EXPECT_FALSE(current.Replace("old"));
  EXPECT_EQ(current.Get(), "old");
}

}  // namespace
}  // namespace hearth::storage
