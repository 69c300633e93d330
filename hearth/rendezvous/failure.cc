#include "hearth/rendezvous/failure.h"

#include "hearth/rendezvous/rank_name.h"

namespace hearth::rendezvous {

std::string Failure::Describe() const {
  if (rank < 0) return message;
  return fmt::format("{} {}{}", RankName(rank, host), lost ? "" : "failed: ", message);
}

std::string Shortened(const std::string& text) {
  if (text.size() <= kMaxFailureText) return text;
  // True inside a multi-byte UTF-8 character, where a cut would leave invalid bytes.
  const auto is_inside = [&](size_t at) { return (text[at] & 0xc0) == 0x80; };
  // The start says what failed; the end of a traceback says why.
  size_t head = kMaxFailureText * 3 / 4, tail = text.size() - kMaxFailureText / 4;
  for (int i = 0; i < 3 && is_inside(head); ++i) --head;
  for (int i = 0; i < 3 && is_inside(tail); ++i) ++tail;
  return fmt::format("{} [... {} bytes omitted ...] {}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

Json Failure::ToJson() const {
  return {{"rank", rank},
          {"host", host},
          {"code", ErrorCodeName(code)},
          {"message", Shortened(message)},
          {"lost", lost},
          {"iteration", iteration},
          {"layer", layer},
          {"consequence", consequence}};
}

Failure Failure::FromJson(const Json& json) {
  Failure failure;
  failure.rank = json.value("rank", failure.rank);
  failure.host = json.value("host", failure.host);
  failure.code = ErrorCodeFromName(json.value("code", std::string("internal")));
  failure.message = json.value("message", failure.message);
  failure.lost = json.value("lost", failure.lost);
  failure.iteration = json.value("iteration", failure.iteration);
  failure.layer = json.value("layer", failure.layer);
  failure.consequence = json.value("consequence", failure.consequence);
  return failure;
}

void ThrowFailure(const Failure& failure) { throw Error(ErrorCode::kAborted, failure.Describe()); }

}  // namespace hearth::rendezvous
