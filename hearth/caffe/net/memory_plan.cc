#include "hearth/caffe/net/memory_plan.h"

#include <algorithm>
#include <map>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/caffe/tensor/tensor_error.h"

namespace hearth::caffe {
namespace {

constexpr int64_t kAlignment = 16;  // in floats: one cache line

// The range of layers in which a blob's memory is in use, and the memory's offset in the shared
// buffer.
struct Span {
  std::vector<int> blobs;         // a single blob, or all blobs that share the same memory
  int lowest = -1, highest = -1;  // indices of layers; -1 if the blob is never written or read
  int64_t count = 0, offset = 0;
  bool own = false;  // true if the blob has separate memory
};

// Returns one span per blob, from the layer that writes the blob to the last layer that uses it.
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

// Removes the blobs that do not share memory: those with separate memory, unused ones and empty
// ones.
void EraseUnshared(std::vector<Span>* spans) {
  std::erase_if(*spans, [](const Span& s) { return s.own || s.lowest < 0 || s.count == 0; });
}

// The spans that already have an offset, indexed by the layers at which they are in use.
class Placement {
 public:
  explicit Placement(size_t layers) : at_(layers) {}

  // Sets the lowest offset at which the span overlaps no other span that is in use at the same
  // layers. Returns false, without setting an offset, if the search takes too long. That happens in
  // nets of many thousand blobs that are nearly all in use at all layers; they could share little
  // memory anyway.
  bool Add(Span* span) {
    std::vector<const Span*> others;
    for (int layer = span->lowest; layer <= span->highest; ++layer) {
      const std::vector<const Span*>& here = at_[layer];
      steps_ += 1 + static_cast<int64_t>(here.size());
      if (steps_ > kMaxSteps) return false;
      others.insert(others.end(), here.begin(), here.end());
    }
    span->offset = LowestOffset(*span, &others);
    for (int layer = span->lowest; layer <= span->highest; ++layer) at_[layer].push_back(span);
    return true;
  }

 private:
  static constexpr int64_t kMaxSteps = 4'000'000;  // takes some tenths of a second

  static int64_t LowestOffset(const Span& span, std::vector<const Span*>* others) {
    std::sort(others->begin(), others->end(), [](const Span* a, const Span* b) {
      // `others` may contain a span several times: once for each common layer.
      return a->offset < b->offset;
    });
    int64_t offset = 0;
    // First fit: `offset` is after the end of all spans so far. Each iteration tests whether the
    // gap before `other` is large enough.
    for (const Span* other : *others) {
      if (offset + span.count <= other->offset) break;
      const int64_t end = other->offset + other->count;
      offset = std::max(offset, (end + kAlignment - 1) / kAlignment * kAlignment);
    }
    return offset;
  }

  std::vector<std::vector<const Span*>> at_;  // by layer
  int64_t steps_ = 0;
};

// Allocates `count` floats, which `spans` share. The first span is the largest.
Tensor TakeMemory(int64_t count, const std::vector<Span>& spans, const NetGraph& graph) {
  try {
    return Tensor::Empty({count});
  } catch (const TensorError& error) {
    if (!error.out_of_memory()) throw;
  }
  const int largest = spans.front().blobs.front();
  Throw(ErrorCode::kResourceExhausted,
        "out of memory: {} blobs of net '{}' share {} MB, the largest is '{}' of shape {}",
        spans.size(), graph.name, count * static_cast<int64_t>(sizeof(float)) >> 20,
        graph.blob_names[largest], graph.blobs[largest]->ShapeString());
}

// Sets the offset of every span with the algorithm "greedy by size" of Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference" (2020): large spans are placed first,
// and small ones fill the gaps.
MemoryPlan Place(std::vector<Span> spans, NetGraph& graph, void (Blob::*bind)(Tensor, Tensor)) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.count > b.count; });
  MemoryPlan plan;
  Placement placement(graph.layers.size());
  int64_t total = 0;
  for (Span& span : spans) {
    if (!placement.Add(&span)) {
      span.own = true;
      continue;
    }
    total = std::max(total, span.offset + span.count);
    plan.separate_bytes += span.count * static_cast<int64_t>(sizeof(float));
  }
  EraseUnshared(&spans);
  plan.blobs = static_cast<int64_t>(spans.size());
  plan.planned_bytes = total * static_cast<int64_t>(sizeof(float));
  const Tensor memory = TakeMemory(total, spans, graph);
  for (const Span& span : spans) {
    const Tensor slice = memory.narrow(0, span.offset, span.count);
    for (const int blob : span.blobs) (graph.blobs[blob].get()->*bind)(slice, {});
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
  // If several blobs share a diff, such as the bottom and top of a Reshape layer, the diff is in
  // use at more layers than the span of each blob shows.
  std::map<const void*, int> readers;
  for (const Span& span : spans) {
    const void* memory = graph.blobs[span.blobs[0]]->diff_identity();
    if (wanted[span.blobs[0]] && memory != nullptr) ++readers[memory];
  }
  for (Span& span : spans) {
    const void* memory = graph.blobs[span.blobs[0]]->diff_identity();
    if (!wanted[span.blobs[0]] || (memory != nullptr && readers[memory] > 1)) span.own = true;
  }
  EraseUnshared(&spans);
  MemoryPlan plan = Place(spans, graph, &Blob::BindDiff);
  // The values need not be copied, because each Forward overwrites them.
  for (const int id : freed) {
    Blob& blob = *graph.blobs[id];
    blob.BindData(blob.diff().in_memory_order());
    plan.separate_bytes += blob.count() * static_cast<int64_t>(sizeof(float));
    ++plan.values;
  }
  return plan;
}

MemoryPlan ShareData(NetGraph& graph, const std::vector<std::string>& kept) {
  std::vector<Span> spans = FindSpans(graph);
  // Blobs that are read after the forward pass, or written before it, keep separate memory.
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
  // Split, Reshape and similar layers reuse the memory of their bottom, so the spans are merged.
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
  EraseUnshared(&spans);
  return Place(std::move(spans), graph, &Blob::BindData);
}

}  // namespace hearth::caffe
