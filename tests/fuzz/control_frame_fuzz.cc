// The control connection: an unauthenticated handshake, and a member's messages in 7-byte reads.
#include <string>

#include "hearth/rendezvous/failure.h"
#include "hearth/rendezvous/frame.h"
#include "hearth/rendezvous/handshake.h"
#include "tests/fuzz/input.h"

using namespace hearth;  // this file defines only an entry function

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::Text(data, size);
  fuzz::Refusable([&] {
    static const rendezvous::Credentials credentials(std::string(64, 'a'), "control");
    const std::string hello = rendezvous::MakeHello(std::string(32, 'n'));
    rendezvous::CheckClaim(credentials, hello, bytes.substr(0, rendezvous::kClaimBytes));
    __builtin_trap();  // the proof cannot be guessed
  });
  fuzz::Refusable([&] {
    rendezvous::FrameReader reader;
    for (size_t at = 0; at < bytes.size(); at += 7) {
      reader.Append(bytes.substr(at, 7));
      while (const auto frame = reader.Next()) {
        // Like the coordinator, copy a part of the frame into another message.
        const rendezvous::Json copy = {{"type", "membership"}, {"members", *frame}};
        rendezvous::EncodeMessage(copy);
        try {
          rendezvous::Failure::FromJson(frame->value("failure", rendezvous::Json::object()));
        } catch (const rendezvous::Json::exception&) {
          // A field is missing or has another type. The server then disconnects the member.
        }
      }
    }
  });
  return 0;
}
