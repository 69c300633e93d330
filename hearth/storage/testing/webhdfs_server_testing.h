#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/socket.h"
#include "hearth/base/thread.h"

namespace hearth::storage {

// A request that the server has received.
struct ServerRequest {
  std::string method, path;
  std::map<std::string, std::string> query;    // parameters in the URL, decoded
  std::map<std::string, std::string> headers;  // by lower-case name
  std::string body;
  bool at_data_node = false;

  std::string operation() const { return query.contains("op") ? query.at("op") : ""; }
};

// A fake WebHDFS cluster for tests, with files in memory. One port of this process acts as a
// NameNode and, for redirects to itself, as a DataNode. Tests may intercept requests.
class WebHdfsServer {
 public:
  // A whole response including its head. "" closes the connection without a response.
  using Reply = std::string;

  WebHdfsServer();
  ~WebHdfsServer();

  std::string address() const;
  // `intercept` is called for each request, in any thread. If it returns nullopt, the server sends
  // its own response.
  void Intercept(std::function<std::optional<Reply>(const ServerRequest&)> intercept);
  // All requests so far, such as "GET OPEN /a" or, to the DataNode, "GET OPEN /a at data".
  std::vector<std::string> Requests() const;
  // The number of connections so far.
  size_t Connections() const { return connections_; }
  // The queries of all URLs so far.
  std::string Queries() const;

  // Acts like HttpFS, which does not redirect reads and has no rename option that replaces a file.
  void ActAsHttpFs() { is_httpfs_ = true; }
  // Sets the number of entries in a batch of a listing.
  void SetBatch(size_t size) { batch_ = size; }

  static Reply Json(int status, const std::string& body);
  static Reply Exception(int status, const std::string& name, const std::string& message);

 private:
  // A folder or file.
  struct Node {
    bool is_folder = true;
    std::string bytes;
    uint64_t id = 0;
  };

  void Accept();
  void Serve(Connection connection);
  Reply Answer(const ServerRequest& request);
  Reply AnswerData(const ServerRequest& request);
  Reply Redirect(const ServerRequest& request) const;
  Reply Status(const std::string& path) const;
  Reply List(const ServerRequest& request) const;
  Reply Rename(const ServerRequest& request);
  Reply Delete(const ServerRequest& request);
  bool MakeFolders(const std::string& path);

  TcpListener listener_{"127.0.0.1"};
  mutable std::mutex mutex_;
  std::function<std::optional<Reply>(const ServerRequest&)> intercept_;
  std::map<std::string, Node> nodes_{{"/", Node{}}};
  std::vector<std::string> requests_;
  std::string queries_;
  uint64_t last_id_ = 16'384;
  std::atomic<bool> is_httpfs_ = false, ended_ = false;
  std::atomic<size_t> batch_ = 3, connections_ = 0;
  std::list<Thread> served_;  // a thread for each connection, until the server's end
  Thread acceptor_;
};

}  // namespace hearth::storage
