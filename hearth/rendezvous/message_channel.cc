#include "hearth/rendezvous/message_channel.h"

#include <string>
#include <utility>

#include "hearth/base/descriptors.h"
#include "hearth/base/error.h"

namespace hearth::rendezvous {
namespace {

// Returns a shared owner of the connection, for the duration of a call. If another thread calls
// Close() in the meantime, the descriptor is closed only after the call, so its number is not
// reused during the call.
std::shared_ptr<Connection> Open(std::shared_ptr<Connection> connection) {
  Require(connection != nullptr, ErrorCode::kUnavailable, "this process has closed the channel");
  return connection;
}

}  // namespace

MessageChannel::MessageChannel(Connection connection)
    : connection_(std::make_shared<Connection>(std::move(connection))) {}

std::shared_ptr<Connection> MessageChannel::connection() const {
  const std::lock_guard lock(mutex_);
  return connection_;
}

void MessageChannel::Send(const Json& message, std::span<const int> descriptors,
                          std::string_view data) {
  const std::string frames = EncodeMessage(message);
  const auto connection = Open(this->connection());
  const std::lock_guard lock(sending_);
  // WriteWithDescriptors sends the descriptors with the first bytes; the rest is written below.
  const size_t sent = descriptors.empty() ? 0
                                          : WriteWithDescriptors(*connection, frames, descriptors,
                                                                 Deadline::Never());
  connection->Write(std::string_view(frames).substr(sent), Deadline::Never());
  connection->Write(data, Deadline::Never());
}

std::optional<MessageChannel::Received> MessageChannel::Receive(Deadline deadline) {
  const auto connection = Open(this->connection());
  Received received;
  FrameReader reader;
  std::string bytes(reader.missing(), '\0');
  const size_t got =
      ReadWithDescriptors(*connection, bytes.data(), bytes.size(), &received.descriptors, deadline);
  if (got == 0) return std::nullopt;
  reader.Append(std::string_view(bytes).substr(0, got));
  while (true) {
    if (auto message = reader.Next()) {
      received.message = std::move(*message);
      return received;
    }
    // Reads no more than the message: bytes after it belong to ReceiveData() or to the next owner.
    bytes.resize(reader.missing());
    connection->Read(bytes.data(), bytes.size(), deadline);
    reader.Append(bytes);
  }
}

void MessageChannel::ReceiveData(void* data, size_t size) {
  Open(this->connection())->Read(data, size, Deadline::Never());
}

void MessageChannel::End() noexcept {
  if (const auto connection = this->connection()) connection->Shutdown();
}

void MessageChannel::Close() noexcept {
  End();
  const std::lock_guard lock(mutex_);
  // A blocked call of another thread has a reference, so the descriptor is closed when it returns.
  connection_.reset();
}

Fd MessageChannel::Release() {
  const std::lock_guard lock(mutex_);
  return Open(std::exchange(connection_, nullptr))->Release();
}

}  // namespace hearth::rendezvous
