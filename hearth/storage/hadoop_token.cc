#include "hearth/storage/hadoop_token.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/storage/hadoop_conf.h"
#include "hearth/storage/local_files.h"
#include "hearth/storage/uri.h"

namespace hearth::storage {
namespace {

struct Token {
  std::string_view identifier, password, kind, service;
};

[[noreturn]] void ThrowDamaged() {
  Throw(ErrorCode::kDataLoss, "the token file is invalid or in an unknown format");
}

// Reads bytes sequentially. Throws if they end too early.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  std::string_view Take(uint64_t count) {
    if (count > left_.size()) ThrowDamaged();
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  uint8_t Byte() { return static_cast<uint8_t>(Take(1).front()); }

  // Reads an integer in the format of Hadoop's WritableUtils: a small value is one byte; for
  // others, a first byte encodes the sign and the size.
  uint64_t WritableNumber() {
    const auto first = static_cast<int8_t>(Byte());
    if (first >= -112) return NotNegative(first);
    if (first < -120) ThrowDamaged();  // a negative number
    uint64_t value = 0;
    for (int i = 0; i < -112 - first; ++i) value = value << 8 | Byte();
    return value;
  }
  std::string_view WritableText() { return Take(WritableNumber()); }

  // Reads a protobuf varint.
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    ThrowDamaged();
  }

 private:
  static uint64_t NotNegative(int8_t value) {
    if (value < 0) ThrowDamaged();
    return static_cast<uint64_t>(value);
  }

  std::string_view left_;
};

// Reads the format of Hadoop's Credentials.readFields: the number of tokens, then an alias and a
// token for each. The secrets after them are not read.
std::vector<Token> WritableTokens(Bytes bytes) {
  std::vector<Token> tokens;
  for (uint64_t count = bytes.WritableNumber(); count > 0; --count) {
    bytes.WritableText();  // alias
    Token token;
    token.identifier = bytes.WritableText();
    token.password = bytes.WritableText();
    token.kind = bytes.WritableText();
    token.service = bytes.WritableText();
    tokens.push_back(token);
  }
  return tokens;
}

// Returns the length-delimited fields of a protobuf message with their numbers. Skips varint
// fields.
std::vector<std::pair<uint64_t, std::string_view>> Members(Bytes message) {
  std::vector<std::pair<uint64_t, std::string_view>> members;
  while (!message.empty()) {
    const uint64_t tag = message.Varint();
    if ((tag & 7) == 2) {
      members.emplace_back(tag >> 3, message.Take(message.Varint()));
    } else if ((tag & 7) == 0) {
      message.Varint();
    } else {
      ThrowDamaged();
    }
  }
  return members;
}

// TokenProto: identifier = 1, password = 2, kind = 3, service = 4.
Token ProtobufToken(std::string_view message) {
  Token token;
  std::string_view* const fields[] = {&token.identifier, &token.password, &token.kind,
                                      &token.service};
  for (const auto& [number, value] : Members(Bytes(message))) {
    if (number >= 1 && number <= 4) *fields[number - 1] = value;
  }
  return token;
}

// Reads a CredentialsProto, which is preceded by its length. Its repeated field 1 contains messages
// with two fields: 1 is an alias, 2 a token.
std::vector<Token> ProtobufTokens(Bytes bytes) {
  std::vector<Token> tokens;
  for (const auto& [number, entry] : Members(Bytes(bytes.Take(bytes.Varint())))) {
    if (number != 1) continue;
    for (const auto& [part, value] : Members(Bytes(entry))) {
      if (part == 2) tokens.push_back(ProtobufToken(value));
    }
  }
  return tokens;
}

// The inverse of WritableText. A first byte of -112 - n means that the size follows in n bytes,
// most significant byte first.
void AppendWritable(std::string_view field, std::string* to) {
  if (field.size() <= 127) {
    *to += static_cast<char>(field.size());
  } else {
    int bytes = 1;
    while (field.size() >> (8 * bytes) != 0) ++bytes;
    *to += static_cast<char>(-112 - bytes);
    for (int i = bytes - 1; i >= 0; --i) *to += static_cast<char>(field.size() >> (8 * i) & 0xff);
  }
  to->append(field);
}

// Base64 with the URL alphabet and without padding.
std::string Base64Url(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (const char each : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(each);
    for (count += 8; count >= 6; count -= 6) text += kLetters[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kLetters[bits << (6 - count) & 63];
  return text;
}

// Encodes a token like Hadoop's Token.encodeToUrlString, for WebHDFS's parameter "delegation".
std::string Encoded(const Token& token) {
  std::string bytes;
  for (const auto field : {token.identifier, token.password, token.kind, token.service}) {
    AppendWritable(field, &bytes);
  }
  return Base64Url(bytes);
}

// Returns "host" for "host:port", and "v6" for "[v6]:port".
std::string_view HostIn(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

bool IsFor(const Token& token, std::string_view host) {
  std::string_view service = token.service;
  // If the token is for a name service, a prefix shows the scheme for which it was requested.
  for (const std::string_view prefix : {"ha-hdfs:", "ha-webhdfs:", "ha-swebhdfs:"}) {
    if (service.starts_with(prefix)) service.remove_prefix(prefix.size());
  }
  return HostIn(service) == host;
}

void AddAddresses(const std::string& host, std::vector<std::string>* names) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) == 0) {
      names->emplace_back(text);
    }
  }
  freeaddrinfo(found);
}

// The names by which a token may refer to the host of a URI: the host name, its addresses, and its
// name service.
std::vector<std::string> NamesOf(std::string_view authority, const HadoopConf& conf) {
  if (authority.empty()) return {};
  const std::string host(HostIn(authority));
  std::vector<std::string> names = {host};
  for (const std::string& service : conf.GetList("dfs.nameservices")) {
    if (service == host) return names;
    for (const std::string& id : conf.GetList("dfs.ha.namenodes." + service)) {
      const std::string rpc = conf.Get("dfs.namenode.rpc-address." + service + "." + id);
      if (HostIn(rpc) == host) names.push_back(service);
    }
  }
  AddAddresses(host, &names);
  return names;
}

}  // namespace

std::string TokenIn(std::string_view credentials, const std::vector<std::string>& hosts) {
  Bytes bytes(credentials);
  // The magic number is followed by the format: 0 is Writable, which YARN writes; 1 is protobuf
  // (since Hadoop 3).
  if (bytes.Take(4) != "HDTS") ThrowDamaged();
  const uint8_t form = bytes.Byte();
  if (form > 1) ThrowDamaged();
  std::vector<Token> tokens = form == 0 ? WritableTokens(bytes) : ProtobufTokens(bytes);
  std::erase_if(tokens, [](const Token& token) {
    return token.kind != "HDFS_DELEGATION_TOKEN" && token.kind != "WEBHDFS delegation" &&
           token.kind != "SWEBHDFS delegation";
  });
  // If the host's names are unknown, a choice among several tokens could send one to the wrong
  // server.
  if (hosts.empty()) return tokens.size() == 1 ? Encoded(tokens.front()) : "";
  const auto match = std::ranges::find_if(tokens, [&](const Token& token) {
    return std::ranges::any_of(hosts, [&](const std::string& host) { return IsFor(token, host); });
  });
  return match != tokens.end() ? Encoded(*match) : "";
}

std::string TokenFor(std::string_view authority, const HadoopConf& conf) {
  const std::string file = Environment("HADOOP_TOKEN_FILE_LOCATION");
  if (file.empty()) return "";
  try {
    return TokenIn(LocalFiles().ReadAll(file), NamesOf(authority, conf));
  } catch (const Error& error) {
    throw Error(error.code(), "cannot use the tokens of HADOOP_TOKEN_FILE_LOCATION=" + file, error);
  }
}

std::string CurrentToken::Get() const {
  const std::lock_guard lock(mutex_);
  return token_;
}

bool CurrentToken::Replace(const std::string& refused) {
  if (Get() != refused) return true;  // another thread has already replaced the token
  std::string found;
  try {
    if (find_) found = find_();  // called without holding mutex_, because it may wait for DNS
  } catch (const Error& error) {
    log::Warning("No newer delegation token is available: {}", error.what());
  }
  const std::lock_guard lock(mutex_);
  // Checked again, because another thread may have replaced the token while find_() was running.
  if (token_ != refused) return true;
  if (found.empty() || found == refused) return false;
  token_ = std::move(found);
  return true;
}

std::string WithoutToken(std::string text, const std::string& token) {
  // Three passes are needed, because an error may contain a redirect of the server (with any token
  // after "delegation="), a URL with a password, or only the token.
  text = WithoutPassword(std::move(text));
  constexpr std::string_view kParameter = "delegation=";
  for (size_t at = 0; (at = text.find(kParameter, at)) != text.npos;) {
    at += kParameter.size();
    text.replace(at, std::min(text.find_first_of("& \t\r\n'\"", at), text.size()) - at, "***");
  }
  for (size_t at = 0; !token.empty() && (at = text.find(token, at)) != text.npos; at += 3) {
    text.replace(at, token.size(), "***");
  }
  return text;
}

}  // namespace hearth::storage
