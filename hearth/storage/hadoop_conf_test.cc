#include "hearth/storage/hadoop_conf.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "hearth/base/error.h"
#include "hearth/base/testing/error_testing.h"
#include "hearth/base/testing/test_folder_testing.h"

namespace hearth::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sets environment variables while the object exists.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      const char* before = getenv(name.c_str());
      before_[name] = before ? std::optional<std::string>(before) : std::nullopt;
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

HadoopConf Conf(const std::string& properties) {
  HadoopConf conf;
  conf.AddXml("<?xml version=\"1.0\"?>\n<configuration>" + properties + "</configuration>",
              "x.xml");
  return conf;
}

std::string Property(const std::string& name, const std::string& value) {
  return "<property>\n <name>" + name + "</name>\n <value>" + value + "</value></property>";
}

TEST(HadoopConf, ReadsPropertiesAndResolvesReferences) {
  setenv("HEARTH_TEST_HOST", "remote", 1);
  const HadoopConf conf =
      Conf(Property("a", " one\n") + "<!-- " + Property("a", "two") + "-->" +
           Property("b", "${a}/${env.HEARTH_TEST_HOST}/${unknown}") + Property("c", "x &lt;&amp;") +
           Property("circle", "${circle}") +
           "<property><name>d</name><final>true</final><value> p , q,, </value></property>");
  EXPECT_EQ(conf.Get("a"), "one");
  EXPECT_EQ(conf.Get("b"), "${a}/${env.HEARTH_TEST_HOST}/${unknown}");
  EXPECT_EQ(conf.Get("c"), "x <&");
  EXPECT_EQ(conf.Get("circle"), "${circle}");
  EXPECT_EQ(conf.Get("nothing", "otherwise"), "otherwise");
  EXPECT_THAT(conf.GetList("d"), ElementsAre("p", "q"));
  EXPECT_EQ(Conf(Property("a", "one") + Property("b", "${a}/${env.HEARTH_TEST_HOST}")).Get("b"),
            "one/remote");
  EXPECT_THAT(Thrown([] { HadoopConf().AddXml("garbage", "x.xml"); }).message(),
              HasSubstr("x.xml"));
}

TEST(HadoopConf, UsesTheDefaultsOfEnvironmentVariables) {
  setenv("HEARTH_TEST_HOST", "remote", 1);
  setenv("HEARTH_TEST_EMPTY", "", 1);
  unsetenv("HEARTH_TEST_UNSET");
  const auto resolved = [](const std::string& value) {
    return Conf(Property("a", value)).Get("a");
  };
  EXPECT_EQ(resolved("${env.HEARTH_TEST_HOST:-local}:1"), "remote:1");
  EXPECT_EQ(resolved("${env.HEARTH_TEST_HOST-local}:1"), "remote:1");
  EXPECT_EQ(resolved("${env.HEARTH_TEST_UNSET:-on-site}:1"), "on-site:1");
  EXPECT_EQ(resolved("${env.HEARTH_TEST_UNSET-local}:1"), "local:1");
  EXPECT_EQ(resolved("${env.HEARTH_TEST_EMPTY:-local}:1"), "local:1");
  EXPECT_EQ(resolved("${env.HEARTH_TEST_EMPTY-local}:1"), ":1");
}

TEST(HadoopConf, UsesTheShippedConfigurationInAYarnContainer) {
  const std::string home = TestFolder() + "hearth-container";
  const std::string folder = home + "/__spark_conf__/__hadoop_conf__";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/core-site.xml")
      << "<configuration>" << Property("fs.defaultFS", "hdfs://nn:8020") << "</configuration>";
  const Variables variables({{"PWD", home}, {"HADOOP_CONF_DIR", ""}, {"CONTAINER_ID", ""}});
  EXPECT_EQ(HadoopConfFolder(), "");  // outside of YARN, the folder is ignored
  setenv("CONTAINER_ID", "container_1_0001_01_000002", 1);
  EXPECT_EQ(HadoopConfFolder(), folder);
  EXPECT_EQ(HadoopConf::FromEnvironment().Get("fs.defaultFS"), "hdfs://nn:8020");
  setenv("HADOOP_CONF_DIR", "/configured", 1);
  EXPECT_EQ(HadoopConfFolder(), "/configured");
  setenv("HADOOP_CONF_DIR", "", 1);
  std::filesystem::remove_all(home);
  EXPECT_EQ(HadoopConfFolder(), "");
}

TEST(WithAuthority, UsesTheHostOfTheDefaultFileSystem) {
  const HadoopConf conf = Conf(Property("fs.defaultFS", "hdfs://nn:8020"));
  EXPECT_EQ(WithAuthority(ParseRemote("hdfs:///a"), conf).text(), "hdfs://nn:8020/a");
  EXPECT_EQ(WithAuthority(ParseRemote("hdfs://other/a"), conf).text(), "hdfs://other/a");
  const Error error = Thrown([] { WithAuthority(ParseRemote("hdfs:///a"), HadoopConf()); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("HADOOP_CONF_DIR"));
}

TEST(WebAddresses, ComeFromTheConfigurationOrTheDefaultPort) {
  const HadoopConf none;
  EXPECT_THAT(WebAddresses(ParseRemote("hdfs://nn/a"), none), ElementsAre("http://nn:9870"));
  EXPECT_THAT(WebAddresses(ParseRemote("hdfs://nn:19000/a"), none), ElementsAre("http://nn:9870"));
  EXPECT_THAT(WebAddresses(ParseRemote("webhdfs://nn:50070/a"), none),
              ElementsAre("http://nn:50070"));
  EXPECT_THAT(WebAddresses(ParseRemote("swebhdfs://nn:50470/a"), none),
              ElementsAre("https://nn:50470"));
  const HadoopConf own = Conf(Property("fs.defaultFS", "hdfs://nn:8020") +
                              Property("dfs.namenode.http-address", "0.0.0.0:50070"));
  EXPECT_THAT(WebAddresses(ParseRemote("hdfs://nn:8020/a"), own), ElementsAre("http://nn:50070"));
  EXPECT_THAT(WebAddresses(ParseRemote("hdfs://other:8020/a"), own),
              ElementsAre("http://other:9870"));
}

TEST(WebAddresses, IncludeAllNameNodesOfAService) {
  const std::string service = Property("dfs.nameservices", "prod, other") +
                              Property("dfs.ha.namenodes.prod", "nn1,nn2") +
                              Property("dfs.namenode.rpc-address.prod.nn1", "one:8020") +
                              Property("dfs.namenode.rpc-address.prod.nn2", "two:8020") +
                              Property("dfs.namenode.http-address.prod.nn1", "one:50070");
  EXPECT_THAT(WebAddresses(ParseRemote("hdfs://prod/a"), Conf(service)),
              ElementsAre("http://one:50070", "http://two:9870"));
  EXPECT_THAT(WebAddresses(ParseRemote("hdfs://prod/a"),
                           Conf(service + Property("dfs.http.policy", "HTTPS_ONLY"))),
              ElementsAre("https://one:9871", "https://two:9871"));
}

TEST(HadoopUser, ComesFromTheEnvironmentOrTheProcess) {
  setenv("HADOOP_USER_NAME", "alice", 1);
  EXPECT_EQ(HadoopUser(), "alice");
  unsetenv("HADOOP_USER_NAME");
  EXPECT_NE(HadoopUser(), "");
}

}  // namespace
}  // namespace hearth::storage
