#include "message_channel.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "buffer_view.h"
#include "gil.h"
#include "hearth/base/error.h"
#include "hearth/base/on_signal.h"
#include "hearth/base/socket.h"
#include "hearth/rendezvous/handshake.h"
#include "hearth/rendezvous/message_channel.h"
#include "limited_api.h"
#include "python_json.h"
#include "signal_handlers.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::bindings {
namespace {

using rendezvous::MessageChannel;

// Parameters of a handshake, which must be equal on both sides.
struct Terms {
  rendezvous::Credentials credentials;
  rendezvous::Identity identity;
};

using Handshake = void(Connection&, const rendezvous::Credentials&, rendezvous::Identity, Deadline);

// Waits without the GIL and runs signal handlers as signals arrive. If a handler raises, closes the
// channel, because a message may have been transferred only in part.
template <typename Wait>
auto WaitAsPython(MessageChannel& self, Wait wait) {
  try {
    const ReleasedGil released;
    const OnSignal handlers(RunSignalHandlers);
    return wait();
  } catch (const nb::python_error&) {
    self.End();
    throw;
  }
}

template <Handshake* kSide>
void Shake(MessageChannel& self, const Terms& terms, double timeout_s) {
  const auto connection = self.connection();
  Require(connection != nullptr, ErrorCode::kUnavailable, "this process has closed the channel");
  WaitAsPython(self, [&] {
    kSide(*connection, terms.credentials, terms.identity, Deadline::After(timeout_s));
  });
}

// Waits for a message's first byte. A handler that raises ends only this wait, not the channel.
// Returns false at the deadline.
bool WaitReadable(const MessageChannel& self, Deadline deadline) {
  const auto connection = self.connection();
  const ReleasedGil released;
  const OnSignal handlers(RunSignalHandlers);
  // If the channel is closed, Receive throws.
  return connection == nullptr || connection->WaitReadable(deadline);
}

nb::object Receive(MessageChannel& self, std::optional<double> timeout_s) {
  const Deadline deadline = timeout_s ? Deadline::After(*timeout_s) : Deadline::Never();
  // Waits in two steps, so that Ctrl-C or the deadline leaves the channel usable if no byte has
  // arrived.
  Require(WaitReadable(self, deadline), ErrorCode::kDeadlineExceeded,
          "the other process sent nothing within {} s", timeout_s.value_or(0));
  std::optional<MessageChannel::Received> received;
  try {
    received = WaitAsPython(self, [&] { return self.Receive(deadline); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDataLoss) throw;
    throw Error(ErrorCode::kInvalidArgument, error.message());  // becomes a ValueError
  }
  if (!received) return nb::none();
  const nb::object message = ToPython(received->message);
  nb::list descriptors;
  for (const Fd& fd : received->descriptors) descriptors.append(fd.get());
  // The descriptors are released only now that the list is complete. If Python had run out of
  // memory before, the Fds would have closed them.
  for (Fd& fd : received->descriptors) fd.Release();
  return nb::make_tuple(message, descriptors);
}

nb::bytes ReceiveData(MessageChannel& self, size_t count) {
  nb::bytes data =
      nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count)));
  if (!data.is_valid()) nb::raise_python_error();
  // The bytes may be written, because no other code has seen the object yet.
  char* const bytes = PyBytes_AS_STRING(data.ptr());
  WaitAsPython(self, [&] { self.ReceiveData(bytes, count); });
  return data;
}

void Send(MessageChannel& self, const nb::dict& message, const std::vector<int>& fds,
          nb::handle data) {
  const BufferView view(data);
  const rendezvous::Json json = FromPython(message);
  WaitAsPython(self, [&] { self.Send(json, fds, view.bytes()); });
}

void DefineTerms(nb::module_& m) {
  nb::class_<Terms>(m, "HandshakeTerms",
                    R"(Handshake parameters that both ends of a channel must share.

`service` prevents reuse of a proof for another purpose; `rank` is the server's. The token is
64 hex digits and appears in no error or log.)")
      .def(
          "__init__",
          [](Terms* self, const std::string& token, std::string service, uint32_t rank,
             uint32_t generation) {
            new (self) Terms{{token, std::move(service)}, {generation, rank}};
          },
          "token"_a, "service"_a, "rank"_a = 0, "generation"_a = 0);
}

}  // namespace

void DefineMessageChannel(nb::module_& m) {
  DefineTerms(m);
  nb::class_<MessageChannel>(m, "MessageChannel", R"(Messages over one connected stream socket.

One thread receives; any thread may call the other methods. Raises ConnectionError if the peer has
closed the connection, or after close().)")
      .def(
          "__init__",
          [](MessageChannel* self, int fd, std::string peer) {
            new (self) MessageChannel(Connection(Fd(fd), std::move(peer)));
          },
          "fd"_a, "peer"_a, "Takes ownership of the descriptor; errors name the other side `peer`.")
      .def("accept_handshake", &Shake<rendezvous::AcceptHandshake>, "terms"_a, "timeout_s"_a,
           "Listening side. Raises PermissionError for other terms, ValueError for bytes that "
           "are not a handshake, TimeoutError even while bytes arrive.")
      .def("offer_handshake", &Shake<rendezvous::OfferHandshake>, "terms"_a, "timeout_s"_a,
           "Connecting side. Raises PermissionError if it is refused, or if the other side does "
           "not authenticate, and TimeoutError.")
      .def(
          "send", Send, "message"_a, "fds"_a, "data"_a,
          "Sends a message, with descriptors, followed by bytes. Raises ValueError for values that "
          "JSON does not support.")
      .def("receive", Receive, "timeout_s"_a.none(),
           "(message, descriptors) of the next message, None at the stream's end. Raises "
           "TimeoutError, and ValueError for bytes that are not a message.")
      .def("receive_data", ReceiveData, "count"_a, "Reads bytes that follow a message.")
      .def(
          "fileno",
          [](const MessageChannel& self) {
            const auto connection = self.connection();
            return connection ? connection->fd() : -1;
          },
          "-1 if it is closed.")
      .def("end", &MessageChannel::End,
           "Shuts the connection down, and ends waits of other threads.")
      .def("close", &MessageChannel::Close, "Ends it and closes the descriptor. Idempotent.")
      .def(
          "detach", [](MessageChannel& self) { return self.Release().Release(); },
          "The descriptor, which this object no longer owns.");
}

}  // namespace hearth::bindings
