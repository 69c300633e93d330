// Base class of tests with a fake cluster whose operations can be made to fail.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hearth/storage/testing/webhdfs_server_testing.h"
#include "hearth/storage/webhdfs.h"

namespace hearth::storage {

// Base class of tests, each with a separate fake NameNode and DataNode.
class WebHdfsTest : public ::testing::Test {
 protected:
  WebHdfsOptions Options() { return {.addresses = {server_.address()}, .user = "alice"}; }

  void Write(FileSystem& files, const std::string& uri, std::string_view bytes) {
    const auto file = files.Create(uri);
    file->Append(bytes);
    file->Commit();
  }
  // Sends `reply` to the first `count` requests of an operation.
  void Refuse(const std::string& operation, int count, const WebHdfsServer::Reply& reply) {
    server_.Intercept([=, left = std::make_shared<std::atomic<int>>(count)](
                          const ServerRequest& request) -> std::optional<WebHdfsServer::Reply> {
      if (request.operation() != operation || left->fetch_sub(1) <= 0) return std::nullopt;
      return reply;
    });
  }
  size_t Asked(const std::string& operation) const {
    size_t count = 0;
    for (const std::string& each : server_.Requests()) {
      if (each.find(" " + operation + " ") != std::string::npos) ++count;
    }
    return count;
  }

  WebHdfsServer server_;
  WebHdfs files_{Options()};
};

}  // namespace hearth::storage
