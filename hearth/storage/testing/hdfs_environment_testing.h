// Test helper for HDFS clients: an environment without this host's settings.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace hearth::storage {

// Removes this host's settings from the environment and restores them at the end.
class HdfsEnvironmentTest : public testing::Test {
 protected:
  HdfsEnvironmentTest() {
    std::string name = (std::filesystem::temp_directory_path() / "hearth_libhdfs_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    for (const char* variable : kVariables) {
      if (const char* value = getenv(variable)) before_[variable] = value;
      unsetenv(variable);
    }
  }
  ~HdfsEnvironmentTest() override {
    for (const char* variable : kVariables) unsetenv(variable);
    for (const auto& [variable, value] : before_) setenv(variable.c_str(), value.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  void Set(const char* variable, const std::string& value) { setenv(variable, value.c_str(), 1); }
  void SetClassPath(const std::vector<std::string>& jars) {
    std::filesystem::create_directories(folder_ / "jars");
    for (const std::string& jar : jars) std::ofstream(folder_ / "jars" / jar) << "x";
    Set("CLASSPATH", (folder_ / "conf").string() + ":" + (folder_ / "jars").string() + "/*");
  }

  static constexpr const char* kVariables[] = {
      "HEARTH_HDFS",     "HEARTH_LIBHDFS", "CLASSPATH",        "HADOOP_HOME", "ARROW_LIBHDFS_DIR",
      "HADOOP_CONF_DIR", "HEARTH_WEBHDFS", "HADOOP_USER_NAME", "JAVA_HOME"};
  std::filesystem::path folder_;
  std::map<std::string, std::string> before_;
};

}  // namespace hearth::storage
