#include "hearth/collective/gather_texts.h"

#include <cstdint>

#include "hearth/collective/group.h"

namespace hearth::collective {

std::vector<std::string> GatherTexts(Group& group, const std::string& text, Deadline deadline) {
  const auto world = static_cast<size_t>(group.world());
  // Gathers the sizes first, because all ranks must know the part sizes of the second gather.
  std::vector<int64_t> sizes(world);
  sizes[static_cast<size_t>(group.rank())] = static_cast<int64_t>(text.size());
  group.AllGather(sizes.data(), world, DataType::kInt64, deadline);
  Request request = {.operation = Operation::kAllGather, .input = text.data()};
  request.type = DataType::kUint8;
  for (const int64_t size : sizes) {
    request.counts.push_back(static_cast<size_t>(size));
    request.count += static_cast<size_t>(size);
  }
  std::string all(request.count, '\0');
  request.output = all.data();
  group.Run(request, deadline);
  std::vector<std::string> texts;
  size_t at = 0;
  for (const size_t count : request.counts) {
    texts.push_back(all.substr(at, count));
    at += count;
  }
  return texts;
}

}  // namespace hearth::collective
