#include "hearth/caffe/diff_plan.h"

#include <algorithm>
#include <map>
#include <vector>

namespace hearth::caffe {
namespace {

constexpr int64_t kAlignment = 16;  // floats: one cache line

// Layers between which a blob's gradient lives, and its place in the shared memory.
struct Span {
  int blob = 0;
  int lowest = -1, highest = -1;  // layers; -1: never made, never read
  int64_t count = 0, offset = 0;

  bool Meets(const Span& other) const { return lowest <= other.highest && other.lowest <= highest; }
};

bool IsLossTop(const NetLayer& layer, size_t top) { return layer.loss_weights[top] != 0; }

// The blobs whose gradients come from layers that read them, with their lifetimes.
std::vector<Span> FindSpans(NetGraph& graph) {
  std::vector<Span> spans(graph.blobs.size());
  std::vector<bool> wanted(graph.blobs.size()), own(graph.blobs.size());
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const NetLayer& layer = graph.layers[i];
    for (size_t top = 0; top < layer.top_ids.size(); ++top) {
      Span& span = spans[layer.top_ids[top]];
      if (span.lowest < 0) span.lowest = static_cast<int>(i);
      span.highest = std::max(span.highest, static_cast<int>(i));
      if (IsLossTop(layer, top)) own[layer.top_ids[top]] = true;
    }
    for (size_t bottom = 0; bottom < layer.bottom_ids.size(); ++bottom) {
      const int id = layer.bottom_ids[bottom];
      spans[id].highest = std::max(spans[id].highest, static_cast<int>(i));
      if (layer.need_backward && layer.bottom_need_backward[bottom]) wanted[id] = true;
    }
  }
  std::map<const float*, int> readers;
  for (size_t i = 0; i < spans.size(); ++i) {
    spans[i].blob = static_cast<int>(i);
    spans[i].count = graph.blobs[i]->count();
    if (wanted[i] && spans[i].count > 0) ++readers[graph.blobs[i]->diff_ptr()];
  }
  std::erase_if(spans, [&](const Span& span) {
    return !wanted[span.blob] || own[span.blob] || span.lowest < 0 || span.count == 0 ||
           readers[graph.blobs[span.blob]->diff_ptr()] > 1;
  });
  return spans;
}

// The lowest offset at which the span meets none of those placed already.
int64_t LowestOffset(const Span& span, const std::vector<Span>& placed) {
  std::vector<const Span*> others;
  for (const Span& other : placed) {
    if (other.Meets(span)) others.push_back(&other);
  }
  std::sort(others.begin(), others.end(),
            [](const Span* a, const Span* b) { return a->offset < b->offset; });
  int64_t offset = 0;
  for (const Span* other : others) {
    if (offset + span.count <= other->offset) break;
    const int64_t end = other->offset + other->count;
    offset = std::max(offset, (end + kAlignment - 1) / kAlignment * kAlignment);
  }
  return offset;
}

}  // namespace

DiffPlan ShareDiffs(NetGraph& graph) {
  std::vector<Span> spans = FindSpans(graph);
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.count > b.count; });
  DiffPlan plan;
  std::vector<Span> placed;
  int64_t total = 0;
  for (Span& span : spans) {
    span.offset = LowestOffset(span, placed);
    placed.push_back(span);
    total = std::max(total, span.offset + span.count);
    plan.separate_bytes += span.count * static_cast<int64_t>(sizeof(float));
  }
  plan.blobs = static_cast<int64_t>(spans.size());
  plan.planned_bytes = total * static_cast<int64_t>(sizeof(float));
  const at::Tensor memory = at::empty({total}, at::kFloat);
  for (const Span& span : spans) {
    graph.blobs[span.blob]->BindDiff(memory.narrow(0, span.offset, span.count));
  }
  return plan;
}

}  // namespace hearth::caffe
