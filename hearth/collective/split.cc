// Implements Group::Split. The parent group exchanges the ranks' connection data, as the rendezvous
// does for the first group.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hearth/collective/connector.h"
#include "hearth/collective/gather_texts.h"
#include "hearth/collective/group_impl.h"

namespace hearth::collective {
namespace {

// A Gather among the ranks of one color, through the parent group. All ranks of the parent take
// part, so one operation serves all colors.
std::vector<nlohmann::json> GatherOfColor(Group& group, const std::vector<int64_t>& colors,
                                          const nlohmann::json& value, Deadline deadline) {
  const int64_t own = colors[static_cast<size_t>(group.rank())];
  const std::vector<std::string> texts = GatherTexts(group, value.dump(), deadline);
  std::vector<nlohmann::json> mine;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (colors[rank] == own) mine.push_back(nlohmann::json::parse(texts[rank]));
  }
  return mine;
}

}  // namespace

std::unique_ptr<Group> Group::Split(int color, Deadline deadline) {
  std::vector<int64_t> colors(static_cast<size_t>(world()));
  colors[static_cast<size_t>(rank())] = color;
  AllGather(colors.data(), colors.size(), DataType::kInt64, deadline);
  if (color < 0) {
    // This rank takes part in the gathers of the ranks that get a group, because the gathers are
    // collective operations of the parent.
    for (int i = 0; i < Connector::kGathers; ++i) GatherTexts(*this, "", deadline);
    return nullptr;
  }
  Identity identity = impl_->identity;
  // Each rank connects alone, even if other ranks of its process have the same color. The connector
  // treats it as a process with one rank, numbered by its position within the color.
  identity.options.local_ranks = 1;
  const auto before = colors.begin() + rank();
  const Setup setup = {.identity = identity,
                       .gather =
                           [&](const std::string&, const nlohmann::json& value) {
                             return GatherOfColor(*this, colors, value, deadline);
                           },
                       .process = static_cast<int>(std::count(colors.begin(), before, color)),
                       .deadline = deadline};
  std::vector<PendingRank> pending;
  pending.push_back(MakePendingRank(identity));
  // Aborts are forwarded before Connect is called, so that an abort of the parent also ends the
  // wait for the new group's ranks.
  impl_->abort->PassOnTo(pending.front().abort);
  return std::move(Connector(setup, pending).Connect().front());
}

}  // namespace hearth::collective
