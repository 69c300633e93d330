#include "hearth/storage/testing/webhdfs_server_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hearth/base/error.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

using nlohmann::json;

std::string Decoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

void ReadTarget(const std::string& target, ServerRequest* request) {
  const size_t question = target.find('?');
  request->path = Decoded(target.substr(0, question));
  request->at_data_node = request->path.starts_with("/data");
  if (request->at_data_node) request->path.erase(0, 5);
  if (request->path.starts_with("/webhdfs/v1")) request->path.erase(0, 11);
  std::string_view rest = std::string_view(target).substr(question + 1);
  while (question != std::string::npos && !rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    request->query[std::string(pair.substr(0, equals))] =
        equals < pair.size() ? Decoded(pair.substr(equals + 1)) : "";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// Reads the next request on a connection. Returns false if the connection ends before it.
bool ReadRequest(Connection* connection, std::string* buffer, ServerRequest* request) {
  const Deadline deadline = Deadline::After(60);
  const auto more = [&] {
    char chunk[64 << 10];
    const size_t count = connection->ReadSome(chunk, sizeof chunk, deadline);
    buffer->append(chunk, count);
    return count > 0;
  };
  size_t head = 0;
  while ((head = buffer->find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return false;
  }
  std::istringstream lines(buffer->substr(0, head + 2));
  buffer->erase(0, head + 4);
  std::string target, line;
  lines >> request->method >> target;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.size() > 1) {
    const size_t colon = line.find(':');
    request->headers[Lower(line.substr(0, colon))] =
        line.substr(colon + 2, line.size() - colon - 3);
  }
  ReadTarget(target, request);
  const auto length = request->headers.find("content-length");
  const size_t size = length == request->headers.end() ? 0 : std::stoull(length->second);
  while (buffer->size() < size) {
    if (!more()) return false;
  }
  request->body = buffer->substr(0, size);
  buffer->erase(0, size);
  return true;
}

std::string Bytes(int status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n\r\n{}", status, body.size(), body);
}

// Returns true if the server must close the connection after `reply`, because the reply has no
// Content-Length or a wrong one.
bool EndsTheConnection(const std::string& reply) {
  constexpr std::string_view kLength = "Content-Length: ";
  const size_t head = reply.find("\r\n\r\n"), length = reply.find(kLength);
  if (length == std::string::npos) return true;
  return head != std::string::npos &&
         std::stoull(reply.substr(length + kLength.size())) != reply.size() - head - 4;
}

}  // namespace

WebHdfsServer::WebHdfsServer() : acceptor_("webhdfs", [this] { Accept(); }) {}

WebHdfsServer::~WebHdfsServer() {
  ended_ = true;
  try {
    Connection::Connect("127.0.0.1", listener_.port(), Deadline::After(10));
  } catch (const Error&) {
    // The acceptor has already ended.
  }
  acceptor_ = {};
}

std::string WebHdfsServer::address() const {
  return fmt::format("http://127.0.0.1:{}", listener_.port());
}

void WebHdfsServer::Intercept(std::function<std::optional<Reply>(const ServerRequest&)> intercept) {
  const std::lock_guard lock(mutex_);
  intercept_ = std::move(intercept);
}

std::vector<std::string> WebHdfsServer::Requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::string WebHdfsServer::Queries() const {
  const std::lock_guard lock(mutex_);
  return queries_;
}

void WebHdfsServer::Accept() {
  while (!ended_) {
    auto connection = std::make_shared<Connection>(listener_.Accept(Deadline::Never()));
    if (ended_) return;
    ++connections_;
    served_.emplace_back("webhdfs", [this, connection] { Serve(std::move(*connection)); });
  }
}

void WebHdfsServer::Serve(Connection connection) {
  std::string buffer;
  try {
    while (!ended_) {
      // Uses a short timeout, so that an idle connection does not block the server's shutdown.
      if (buffer.empty() && !connection.WaitReadable(Deadline::After(0.05))) continue;
      ServerRequest request;
      if (!ReadRequest(&connection, &buffer, &request)) return;
      const Reply reply = Answer(request);
      if (reply.empty()) return;
      connection.Write(reply, Deadline::After(60));
      if (EndsTheConnection(reply)) return;
    }
  } catch (const Error&) {
    // The client has disconnected.
  }
}

WebHdfsServer::Reply WebHdfsServer::Json(int status, const std::string& body) {
  return Bytes(status, body);
}

WebHdfsServer::Reply WebHdfsServer::Exception(int status, const std::string& name,
                                              const std::string& message) {
  const json body = {{"RemoteException", {{"exception", name}, {"message", message}}}};
  return Bytes(status, body.dump());
}

WebHdfsServer::Reply WebHdfsServer::Answer(const ServerRequest& request) {
  std::unique_lock lock(mutex_);
  requests_.push_back(fmt::format("{} {} {}{}", request.method, request.operation(), request.path,
                                  request.at_data_node ? " at data" : ""));
  for (const auto& [name, value] : request.query) queries_ += name + "=" + value + " ";
  if (intercept_) {
    const auto intercept = intercept_;
    lock.unlock();
    if (auto reply = intercept(request)) return *reply;
    lock.lock();
  }
  const std::string operation = request.operation();
  if (operation == "GETFILESTATUS") return Status(request.path);
  if (operation.starts_with("LISTSTATUS")) return List(request);
  if (operation == "MKDIRS") {
    return MakeFolders(request.path)
               ? Json(200, R"({"boolean": true})")
               : Exception(400, "ParentNotDirectoryException", "a parent is a file");
  }
  if (operation == "RENAME") return Rename(request);
  if (operation == "DELETE") return Delete(request);
  const bool to_data = !is_httpfs_ || operation != "OPEN";
  if (!request.at_data_node && to_data) return Redirect(request);
  return AnswerData(request);
}

WebHdfsServer::Reply WebHdfsServer::Redirect(const ServerRequest& request) const {
  std::string query;
  for (const auto& [name, value] : request.query) query += fmt::format("{}={}&", name, value);
  std::string path;
  for (const char each : request.path) {
    path += std::isalnum(static_cast<unsigned char>(each)) || each == '/'
                ? std::string(1, each)
                : fmt::format("%{:02X}", static_cast<unsigned char>(each));
  }
  return fmt::format(
      "HTTP/1.1 307 X\r\nLocation: {}/data/webhdfs/v1{}?{}\r\nContent-Length: 0\r\n\r\n", address(),
      path, query);
}

WebHdfsServer::Reply WebHdfsServer::AnswerData(const ServerRequest& request) {
  const auto found = nodes_.find(request.path);
  const bool is_file = found != nodes_.end() && !found->second.is_folder;
  if (request.operation() == "CREATE") {
    if (!MakeFolders(FolderOf(request.path))) {
      return Exception(400, "ParentNotDirectoryException", "a parent is a file");
    }
    nodes_[request.path] = {.is_folder = false, .bytes = request.body, .id = ++last_id_};
    return Bytes(201, "");
  }
  if (!is_file) return Exception(404, "FileNotFoundException", request.path + " is not there");
  if (request.operation() == "APPEND") {
    found->second.bytes += request.body;
    return Bytes(200, "");
  }
  const size_t offset = std::stoull(request.query.at("offset"));
  if (offset > found->second.bytes.size()) {
    return Exception(403, "IOException", "Offset=9 out of the range [0, 5); OPEN, path=/a");
  }
  return Bytes(200, found->second.bytes.substr(offset, std::stoull(request.query.at("length"))));
}

WebHdfsServer::Reply WebHdfsServer::Status(const std::string& path) const {
  const auto found = nodes_.find(path);
  if (found == nodes_.end()) {
    return Exception(404, "FileNotFoundException", "File does not exist: " + path);
  }
  const Node& node = found->second;
  json status = {{"type", node.is_folder ? "DIRECTORY" : "FILE"},
                 {"length", node.bytes.size()},
                 {"modificationTime", 1'700'000'000'000},
                 {"pathSuffix", ""}};
  if (!is_httpfs_) status["fileId"] = node.id;
  return Json(200, json{{"FileStatus", status}}.dump());
}

WebHdfsServer::Reply WebHdfsServer::List(const ServerRequest& request) const {
  const auto folder = nodes_.find(request.path);
  if (folder == nodes_.end()) {
    return Exception(404, "FileNotFoundException", request.path + " does not exist.");
  }
  const bool batch = request.operation() == "LISTSTATUS_BATCH";
  const auto after = request.query.find("startAfter");
  json entries = json::array();
  size_t left = 0;
  for (const auto& [path, node] : nodes_) {
    const bool itself = path == request.path;
    if (itself ? node.is_folder : FolderOf(path) != request.path) continue;
    const std::string name = itself ? "" : NameOf(path);
    if (after != request.query.end() && name <= after->second) continue;
    if (batch && entries.size() == batch_) {
      ++left;
      continue;
    }
    entries.push_back({{"pathSuffix", name},
                       {"type", node.is_folder ? "DIRECTORY" : "FILE"},
                       {"length", node.bytes.size()},
                       {"modificationTime", 1'700'000'000'000}});
  }
  const json statuses = {{"FileStatuses", {{"FileStatus", entries}}}};
  if (!batch) return Json(200, statuses.dump());
  const json listing = {{"partialListing", statuses}, {"remainingEntries", left}};
  return Json(200, json{{"DirectoryListing", listing}}.dump());
}

WebHdfsServer::Reply WebHdfsServer::Rename(const ServerRequest& request) {
  const std::string& to = request.query.at("destination");
  const bool has_options = !is_httpfs_ && request.query.contains("renameoptions");
  const bool replace = has_options && request.query.at("renameoptions") == "OVERWRITE";
  if (!nodes_.contains(request.path)) {
    return has_options ? Exception(404, "FileNotFoundException", "rename source is not found")
                       : Json(200, R"({"boolean": false})");
  }
  if (!nodes_.contains(FolderOf(to))) {
    return has_options
               ? Exception(404, "FileNotFoundException", "rename destination parent not found")
               : Json(200, R"({"boolean": false})");
  }
  if (nodes_.contains(to) && !replace) {
    return has_options ? Exception(403, "FileAlreadyExistsException", "rename destination exists")
                       : Json(200, R"({"boolean": false})");
  }
  std::map<std::string, Node> moved;
  for (const auto& [path, node] : nodes_) {
    const bool inside = path == request.path || path.starts_with(request.path + "/");
    moved[inside ? to + path.substr(request.path.size()) : path] = node;
  }
  // Replaces an existing node of the new name.
  moved[to] = nodes_.at(request.path);
  nodes_ = std::move(moved);
  return has_options ? Bytes(200, "") : Json(200, R"({"boolean": true})");
}

WebHdfsServer::Reply WebHdfsServer::Delete(const ServerRequest& request) {
  const bool holds = std::ranges::any_of(
      nodes_, [&](const auto& each) { return each.first.starts_with(request.path + "/"); });
  const auto recursive = request.query.find("recursive");
  if (holds && (recursive == request.query.end() || recursive->second != "true")) {
    return Exception(403, "PathIsNotEmptyDirectoryException", request.path + " is non empty");
  }
  const size_t removed = std::erase_if(nodes_, [&](const auto& each) {
    return each.first == request.path || each.first.starts_with(request.path + "/");
  });
  return Json(200, removed > 0 ? R"({"boolean": true})" : R"({"boolean": false})");
}

bool WebHdfsServer::MakeFolders(const std::string& path) {
  for (size_t end = 1; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string folder = path.substr(0, end);
    const auto [node, made] = nodes_.try_emplace(folder.empty() ? "/" : folder);
    if (!node->second.is_folder) return false;
  }
  return true;
}

}  // namespace hearth::storage
