#include "hearth/collective/shared_memory/shared_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "hearth/base/hmac.h"

namespace hearth::collective {

OwnPage CreateSharedPage() {
  const size_t bytes = RoundUpToPages(sizeof(SharedPage));
  OwnPage own;
  own.fd = CreateSharedMemory("hearth-collective-page", bytes);
  own.mapping = Mapping(own.fd.get(), 0, bytes);
  own.address = {::getpid(), own.fd.get(), RandomBytes(kNonceBytes)};
  // Starts the lifetime of the atomics, which zeroed memory alone does not, before any peer can
  // know the address.
  auto* page = new (own.mapping.data()) SharedPage{};
  std::memcpy(page->nonce, own.address.nonce.data(), kNonceBytes);
  return own;
}

std::optional<Mapping> OpenSharedPage(const PageAddress& address) {
  if (address.nonce.size() != kNonceBytes) return std::nullopt;
  const size_t bytes = RoundUpToPages(sizeof(SharedPage));
  const Fd fd = OpenForeignFd(address.pid, address.fd);
  struct stat status = {};
  // In another container, the process id may belong to an unrelated process, so the descriptor can
  // refer to anything.
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size != static_cast<off_t>(bytes)) {
    return std::nullopt;
  }
  // The page may be read, because the size has been checked; access beyond the end of a shorter
  // file would raise SIGBUS.
  Mapping mapping(fd.get(), 0, bytes);
  if (std::memcmp(PageIn(mapping).nonce, address.nonce.data(), kNonceBytes) != 0) {
    return std::nullopt;
  }
  return mapping;
}

Fd OpenForeignFd(int pid, int fd) {
  // Threads of one process must be able to share memory even without access to /proc.
  if (pid == ::getpid()) return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  // Without O_NONBLOCK, opening a FIFO would block until its other end is opened.
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  return Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

}  // namespace hearth::collective
