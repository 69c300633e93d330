#include "hearth/caffe/memory_plan.h"

#include <algorithm>
#include <map>
#include <vector>

namespace hearth::caffe {
namespace {

constexpr int64_t kAlignment = 16;  // floats: one cache line

// Layers between which a blob's memory is in use, and its place in the shared memory.
struct Span {
  std::vector<int> blobs;         // one, or all that have the same memory
  int lowest = -1, highest = -1;  // layers; -1: never made, never read
  int64_t count = 0, offset = 0;
  bool own = false;  // keeps memory of its own

  bool Meets(const Span& other) const { return lowest <= other.highest && other.lowest <= highest; }
};

// One span per blob, from the layer that makes it to the last one that touches it.
std::vector<Span> FindSpans(const NetGraph& graph) {
  std::vector<Span> spans(graph.blobs.size());
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    const NetLayer& layer = graph.layers[i];
    for (size_t top = 0; top < layer.top_ids.size(); ++top) {
      Span& span = spans[layer.top_ids[top]];
      if (span.lowest < 0) span.lowest = static_cast<int>(i);
      span.highest = static_cast<int>(i);
      if (layer.loss_weights[top] != 0) span.own = true;
    }
    for (const int id : layer.bottom_ids) spans[id].highest = static_cast<int>(i);
  }
  for (size_t i = 0; i < spans.size(); ++i) {
    spans[i].blobs = {static_cast<int>(i)};
    spans[i].count = graph.blobs[i]->count();
  }
  return spans;
}

void EraseThoseWithMemoryOfTheirOwn(std::vector<Span>* spans) {
  std::erase_if(*spans, [](const Span& s) { return s.own || s.lowest < 0 || s.count == 0; });
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

// Gives every span a place, the largest ones first.
MemoryPlan Place(std::vector<Span> spans, NetGraph& graph,
                 void (Blob::*bind)(at::Tensor, at::Tensor)) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.count > b.count; });
  MemoryPlan plan;
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
    const at::Tensor place = memory.narrow(0, span.offset, span.count);
    for (const int blob : span.blobs) (graph.blobs[blob].get()->*bind)(place, {});
  }
  return plan;
}

}  // namespace

MemoryPlan ShareDiffs(NetGraph& graph, const std::vector<int>& freed) {
  std::vector<Span> spans = FindSpans(graph);
  std::vector<bool> wanted(graph.blobs.size());
  for (const NetLayer& layer : graph.layers) {
    for (size_t bottom = 0; bottom < layer.bottom_ids.size(); ++bottom) {
      if (layer.need_backward && layer.bottom_need_backward[bottom]) {
        wanted[layer.bottom_ids[bottom]] = true;
      }
    }
  }
  std::map<const void*, int> readers;
  for (const Span& span : spans) {
    const void* memory = graph.blobs[span.blobs[0]]->diff_identity();
    if (wanted[span.blobs[0]] && memory != nullptr) ++readers[memory];
  }
  for (Span& span : spans) {
    const void* memory = graph.blobs[span.blobs[0]]->diff_identity();
    if (!wanted[span.blobs[0]] || (memory != nullptr && readers[memory] > 1)) span.own = true;
  }
  EraseThoseWithMemoryOfTheirOwn(&spans);
  MemoryPlan plan = Place(spans, graph, &Blob::BindDiff);
  // Each Forward writes them anew, so there is nothing to keep.
  for (const int id : freed) {
    Blob& blob = *graph.blobs[id];
    blob.BindData(blob.diff().as_strided({blob.count()}, {1}));
    plan.separate_bytes += blob.count() * static_cast<int64_t>(sizeof(float));
    ++plan.values;
  }
  return plan;
}

MemoryPlan ShareData(NetGraph& graph, const std::vector<std::string>& kept) {
  std::vector<Span> spans = FindSpans(graph);
  const auto keep = [&](const std::string& name) {
    const auto id = graph.blob_ids.find(name);
    if (id != graph.blob_ids.end()) spans[id->second].own = true;
  };
  for (const std::string& name : kept) keep(name);
  for (const std::string& name : graph.outputs) keep(name);
  for (const NetLayer& layer : graph.layers) {
    if (!layer.bottom_ids.empty()) continue;
    for (const int id : layer.top_ids) spans[id].own = true;
  }
  // Split, Reshape and their like hand on the memory of their bottom: that is one span.
  std::map<const void*, size_t> first;
  for (size_t i = 0; i < spans.size(); ++i) {
    const void* memory = graph.blobs[i]->data_identity();
    if (memory == nullptr) continue;
    const auto [found, is_first] = first.emplace(memory, i);
    if (is_first) continue;
    Span& all = spans[found->second];
    all.blobs.push_back(static_cast<int>(i));
    all.lowest = std::min(all.lowest, spans[i].lowest);
    all.highest = std::max(all.highest, spans[i].highest);
    all.own = all.own || spans[i].own || all.count != spans[i].count;
    spans[i].count = 0;
  }
  EraseThoseWithMemoryOfTheirOwn(&spans);
  return Place(std::move(spans), graph, &Blob::BindData);
}

}  // namespace hearth::caffe
