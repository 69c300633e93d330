#include "hearth/collective/transport/listen_address.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "hearth/base/error.h"

namespace hearth::collective {
namespace {

using Bytes = std::vector<uint8_t>;

// Returns the 4 or 16 bytes of a numeric address, or nullopt for any other text.
std::optional<Bytes> Parse(const std::string& address) {
  const bool is_v6 = address.find(':') != std::string::npos;
  Bytes bytes(is_v6 ? sizeof(in6_addr) : sizeof(in_addr));
  if (::inet_pton(is_v6 ? AF_INET6 : AF_INET, address.c_str(), bytes.data()) == 1) return bytes;
  return std::nullopt;
}

struct AddressRange {
  Bytes first;
  size_t bits = 0;

  bool Has(const Bytes& address) const {
    if (address.size() != first.size()) return false;
    // Compares the whole bytes of the prefix, then its remaining bits.
    const auto whole = static_cast<std::ptrdiff_t>(bits / 8);
    if (!std::equal(first.begin(), first.begin() + whole, address.begin())) return false;
    const size_t rest = bits % 8;
    if (rest == 0) return true;
    const auto differing = static_cast<unsigned>(first[bits / 8] ^ address[bits / 8]);
    return (differing >> (8 - rest)) == 0;
  }
};

AddressRange ParseRange(const std::string& text) {
  // The caller has found a slash in the text.
  const size_t slash = text.find('/');
  const std::optional<Bytes> first = Parse(text.substr(0, slash));
  size_t bits = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, bits);
  Require(first && problem == std::errc() && stop == end && bits <= first->size() * 8,
          ErrorCode::kInvalidArgument,
          "HEARTH_INTERFACE={} in the environment is not an address range: write 10.20.0.0/16 or "
          "fd00:20::/32",
          text);
  return {*first, bits};
}

std::string TextOf(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool is_v6 = address.sa_family == AF_INET6;
  const void* bytes =
      is_v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
            : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  ::inet_ntop(address.sa_family, bytes, text, sizeof(text));
  return text;
}

// Link-local addresses are invalid on other hosts.
bool IsLinkLocal(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Addresses of all interfaces that are up.
std::vector<HostAddress> OwnAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) ThrowErrno(errno, "cannot list this host's addresses");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<HostAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if ((family != AF_INET && family != AF_INET6) || IsLinkLocal(*entry->ifa_addr)) continue;
    addresses.push_back({entry->ifa_name, TextOf(*entry->ifa_addr)});
  }
  return addresses;
}

std::string Describe(const std::vector<HostAddress>& addresses) {
  std::vector<std::string> texts;
  for (const HostAddress& each : addresses) {
    texts.push_back(fmt::format("{} ({})", each.address, each.interface));
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

std::string ListenAddress(const std::string& usual) {
  const char* choice = std::getenv("HEARTH_INTERFACE");
  if (choice == nullptr || *choice == '\0') return usual;
  return ChooseAddress(choice, usual, OwnAddresses());
}

std::string ChooseAddress(const std::string& choice, const std::string& usual,
                          const std::vector<HostAddress>& addresses) {
  std::optional<AddressRange> range;
  if (choice.find('/') != std::string::npos) range = ParseRange(choice);
  const bool usual_is_v6 = usual.find(':') != std::string::npos;
  // Peers may have no route for the other IP version, so an address of the same version as `usual`
  // is preferred even if it is listed later.
  const std::string* found = nullptr;
  for (const HostAddress& each : addresses) {
    const std::optional<Bytes> bytes = Parse(each.address);
    if (!bytes || !(range ? range->Has(*bytes) : each.interface == choice)) continue;
    const bool is_v6 = bytes->size() == sizeof(in6_addr);
    if (is_v6 == usual_is_v6) return each.address;
    if (found == nullptr) found = &each.address;
  }
  Require(
      found != nullptr, ErrorCode::kInvalidArgument,
      "HEARTH_INTERFACE={} in the environment: this host has no address in that range; it has {}",
      choice, Describe(addresses));
  return *found;
}

}  // namespace hearth::collective
