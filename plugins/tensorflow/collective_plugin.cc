// TensorFlow plug-in for the collective: the ops HearthAllReduce, HearthAllGather, HearthBroadcast
// and HearthStep, registered when TensorFlow loads the library. Their kernels submit to a queue and
// return; no TensorFlow thread waits. The ops are stateful, so a tf.function runs them in program
// order, which is the same on all ranks.
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "plugins/tensorflow/collective_call.h"

namespace hearth::tensorflow {
namespace {

const Functions* tf = nullptr;
// Number of HearthStep calls. Every operation carries this number, so that operations of different
// steps never match, even if a rank skipped the operations of a step.
std::atomic<uint64_t> steps{0};

// The attributes of an op.
struct Settings {
  hearth_operation_kind kind = HEARTH_ALL_REDUCE;
  int reduction = HEARTH_SUM;
  int wire = HEARTH_WIRE_AS_IS;
  int root = 0;
  std::vector<std::string> names;
};

// The collective's data type for a TensorFlow type. Types with a `name` are sent as bytes and
// cannot be reduced.
struct Element {
  TF_DataType theirs;
  hearth_data_type ours;
  size_t size;
  const char* name = nullptr;
};
constexpr Element kElements[] = {{TF_FLOAT, HEARTH_FLOAT32, 4},
                                 {TF_DOUBLE, HEARTH_FLOAT64, 8},
                                 {TF_HALF, HEARTH_FLOAT16, 2},
                                 {TF_BFLOAT16, HEARTH_BFLOAT16, 2},
                                 {TF_INT32, HEARTH_INT32, 4},
                                 {TF_INT64, HEARTH_INT64, 8},
                                 {TF_UINT8, HEARTH_UINT8, 1},
                                 {TF_BOOL, HEARTH_BOOL, 1},
                                 {TF_INT8, HEARTH_UINT8, 1, "int8"},
                                 {TF_INT16, HEARTH_UINT8, 2, "int16"},
                                 {TF_UINT16, HEARTH_UINT8, 2, "uint16"},
                                 {TF_UINT32, HEARTH_UINT8, 4, "uint32"},
                                 {TF_UINT64, HEARTH_UINT8, 8, "uint64"},
                                 {TF_COMPLEX64, HEARTH_UINT8, 8, "complex64"},
                                 {TF_COMPLEX128, HEARTH_UINT8, 16, "complex128"}};
#define HEARTH_REDUCED "float, double, half, bfloat16, int32, int64, uint8, bool"
constexpr char kReduced[] = "{" HEARTH_REDUCED "}";
constexpr char kMoved[] =
    "{" HEARTH_REDUCED ", int8, int16, uint16, uint32, uint64, complex64, complex128}";

const Element& ElementOf(TF_DataType type) {
  for (const Element& element : kElements) {
    if (element.theirs == type) return element;
  }
  return kElements[0];  // the ops accept no other types
}

// Number of the collective's elements per tensor element.
size_t UnitsOf(const Element& element) { return element.name == nullptr ? 1 : element.size; }

std::vector<int64_t> ShapeOf(const TF_Tensor* tensor) {
  std::vector<int64_t> shape;
  for (int axis = 0; axis < tf->NumDims(tensor); ++axis) shape.push_back(tf->Dim(tensor, axis));
  return shape;
}

int IntOf(TF_OpKernelConstruction* construction, const char* attribute, TF_Status* status) {
  int32_t value = 0;
  if (tf->GetCode(status) == TF_OK) {
    tf->OpKernelConstruction_GetAttrInt32(construction, attribute, &value, status);
  }
  return value;
}

std::vector<std::string> NamesOf(TF_OpKernelConstruction* construction, TF_Status* status) {
  int32_t count = 0;
  int32_t bytes = 0;
  if (tf->GetCode(status) != TF_OK) return {};
  tf->OpKernelConstruction_GetAttrSize(construction, "names", &count, &bytes, status);
  if (tf->GetCode(status) != TF_OK || count <= 0) return {};
  std::vector<char*> values(static_cast<size_t>(count));
  std::vector<size_t> lengths(values.size());
  std::string storage(static_cast<size_t>(bytes), '\0');
  tf->OpKernelConstruction_GetAttrStringList(construction, "names", values.data(), lengths.data(),
                                             count, storage.data(), storage.size(), status);
  if (tf->GetCode(status) != TF_OK) return {};
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) names.emplace_back(values[i], lengths[i]);
  return names;
}

template <hearth_operation_kind kKind>
void* Create(TF_OpKernelConstruction* construction) {
  auto settings = std::make_unique<Settings>();
  settings->kind = kKind;
  TF_Status* status = tf->NewStatus();
  if (kKind == HEARTH_ALL_REDUCE) {
    settings->reduction = IntOf(construction, "reduction", status);
    settings->wire = IntOf(construction, "wire", status);
  }
  if (kKind == HEARTH_BROADCAST) settings->root = IntOf(construction, "root", status);
  settings->names = NamesOf(construction, status);
  if (tf->GetCode(status) != TF_OK) tf->OpKernelConstruction_Failure(construction, status);
  tf->DeleteStatus(status);
  return settings.release();
}

void Delete(void* settings) { delete static_cast<Settings*>(settings); }

// An operation to submit.
struct Asked {
  hearth_operation operation = {};
  std::vector<int64_t> shape;

  const hearth_operation& Get() {
    constexpr static int64_t kNone = 0;  // an empty vector's data() may be null
    if (operation.output != nullptr) operation.shape = shape.empty() ? &kNone : shape.data();
    operation.dims = static_cast<int>(shape.size());
    return operation;
  }
};

// The operation is in place if there is no input.
Asked OperationOf(const Settings& settings, size_t index, const TF_Tensor* input,
                  TF_Tensor* output) {
  Asked asked;
  hearth_operation& operation = asked.operation;
  operation.kind = settings.kind;
  operation.reduction = static_cast<hearth_reduction>(settings.reduction);
  operation.wire = static_cast<hearth_wire>(settings.wire);
  operation.root = settings.root;
  operation.name = index < settings.names.size() ? settings.names[index].c_str() : "";
  operation.step = steps;
  if (output == nullptr) return asked;  // the call has already failed
  if (input != nullptr) operation.input = tf->TensorData(input);
  const Element& element = ElementOf(tf->TensorType(output));
  operation.output = tf->TensorData(output);
  operation.count = static_cast<size_t>(tf->TensorElementCount(output)) * UnitsOf(element);
  operation.type = element.ours;
  operation.type_name = element.name;
  asked.shape = ShapeOf(output);
  return asked;
}

// All-reduce and broadcast: each output has the shape of its input.
void ComputeEach(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  const auto& settings = *static_cast<Settings*>(kernel);
  const int count = tf->NumInputs(context);
  auto* call = new CollectiveCall(*tf, context, done, count);
  std::vector<Asked> operations;
  for (int i = 0; i < count; ++i) {
    TF_Tensor* input = nullptr;
    TF_Tensor* output = call->OutputLikeInput(i, input);
    operations.push_back(OperationOf(settings, static_cast<size_t>(i), input, output));
  }
  // The call must not be used after the last Submit, because it may then be complete and deleted.
  for (Asked& operation : operations) call->Submit(operation.Get());
}

// The second input contains the number of rows of each rank.
void ComputeAllGather(void* kernel, TF_OpKernelContext* context,
                      TF_AsyncOpKernelDoneCallback* done) {
  const auto& settings = *static_cast<Settings*>(kernel);
  auto* call = new CollectiveCall(*tf, context, done, 1);
  TF_Tensor* input = call->Input(0);
  TF_Tensor* rows = call->Input(1);
  TF_Tensor* output = nullptr;
  std::vector<size_t> counts;
  if (input != nullptr && rows != nullptr) {
    if (tf->NumDims(input) < 1 || tf->TensorElementCount(rows) != World()) {
      call->Fail(TF_INVALID_ARGUMENT,
                 "HearthAllGather requires a tensor with a first dimension and each rank's number "
                 "of rows");
    } else {
      std::vector<int64_t> shape = ShapeOf(input);
      const Element& element = ElementOf(tf->TensorType(input));
      int64_t row = 1;
      for (size_t axis = 1; axis < shape.size(); ++axis) row *= shape[axis];
      const auto* each = static_cast<const int64_t*>(tf->TensorData(rows));
      shape[0] = 0;
      for (int rank = 0; rank < World(); ++rank) {
        shape[0] += each[rank];
        counts.push_back(static_cast<size_t>(each[rank] * row) * UnitsOf(element));
      }
      const size_t bytes = static_cast<size_t>(shape[0] * row) * element.size;
      output = call->Output(0, tf->TensorType(input), shape, bytes);
    }
  }
  Asked asked = OperationOf(settings, 0, input, output);
  asked.operation.counts = counts.data();
  call->Submit(asked.Get());
}

void ComputeStep(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback* done) {
  ++steps;
  DoneCallback(*tf, done)();
}

void SameShapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* shape = tf->NewShapeHandle();
  const int64_t count = tf->ShapeInferenceContextNumInputs(context);
  for (int i = 0; i < static_cast<int>(count) && tf->GetCode(status) == TF_OK; ++i) {
    tf->ShapeInferenceContextGetInput(context, i, shape, status);
    tf->ShapeInferenceContextSetOutput(context, i, shape, status);
  }
  tf->DeleteShapeHandle(shape);
}

void UnknownShape(TF_ShapeInferenceContext* context, TF_Status* status) {
  tf->ShapeInferenceContextSetUnknownShape(context, status);
}

void RegisterOp(const char* name, const std::vector<std::string>& attributes,
                const std::vector<std::string>& inputs, const char* output,
                void (*shapes)(TF_ShapeInferenceContext*, TF_Status*), TF_Status* status) {
  TF_OpDefinitionBuilder* builder = tf->NewOpDefinitionBuilder(name);
  for (const auto& each : attributes) tf->OpDefinitionBuilderAddAttr(builder, each.c_str());
  for (const auto& each : inputs) tf->OpDefinitionBuilderAddInput(builder, each.c_str());
  if (output != nullptr) tf->OpDefinitionBuilderAddOutput(builder, output);
  tf->OpDefinitionBuilderSetIsStateful(builder, true);
  tf->OpDefinitionBuilderSetShapeInferenceFunction(builder, shapes);
  tf->RegisterOpDefinition(builder, status);
}

void RegisterKernel(const char* name, void* (*create)(TF_OpKernelConstruction*),
                    void (*compute)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*),
                    TF_Status* status) {
  if (tf->GetCode(status) != TF_OK) return;
  TF_KernelBuilder* builder = tf->NewAsyncKernelBuilder(name, "CPU", create, compute, &Delete);
  tf->RegisterKernelBuilder(name, builder, status);
}

bool Register() {
  tf = FindFunctions();
  if (tf == nullptr) return false;
  TF_Status* status = tf->NewStatus();
  const auto list = [](const char* types) { return std::string("T: list(") + types + ") >= 1"; };
  const std::string names = "names: list(string) = []";
  RegisterOp("HearthAllReduce", {list(kReduced), "reduction: int = 0", "wire: int = 0", names},
             {"inputs: T"}, "outputs: T", &SameShapes, status);
  RegisterKernel("HearthAllReduce", &Create<HEARTH_ALL_REDUCE>, &ComputeEach, status);
  RegisterOp("HearthBroadcast", {list(kMoved), "root: int = 0", names}, {"inputs: T"}, "outputs: T",
             &SameShapes, status);
  RegisterKernel("HearthBroadcast", &Create<HEARTH_BROADCAST>, &ComputeEach, status);
  RegisterOp("HearthAllGather", {std::string("T: ") + kMoved, names}, {"input: T", "rows: int64"},
             "output: T", &UnknownShape, status);
  RegisterKernel("HearthAllGather", &Create<HEARTH_ALL_GATHER>, &ComputeAllGather, status);
  RegisterOp("HearthStep", {}, {}, nullptr, &UnknownShape, status);
  RegisterKernel("HearthStep", nullptr, &ComputeStep, status);
  const bool done = tf->GetCode(status) == TF_OK;
  if (!done)
    std::fprintf(stderr, "hearth: TensorFlow registered no ops: %s\n", tf->Message(status));
  tf->DeleteStatus(status);
  return done;
}

const bool registered = Register();

}  // namespace
}  // namespace hearth::tensorflow

// Returns 1 if the ops are registered, 0 if this TensorFlow lacks functions of the C interface.
extern "C" __attribute__((visibility("default"))) int hearth_tensorflow_registered() {
  return hearth::tensorflow::registered ? 1 : 0;
}

// Makes the ops use this collective, or none if null. Returns once no thread is submitting to the
// previous one.
extern "C" __attribute__((visibility("default"))) void hearth_tensorflow_use(
    const hearth_collective* collective) {
  // Steps of a new group are counted from 0.
  if (collective != nullptr) hearth::tensorflow::steps = 0;
  hearth::tensorflow::Use(collective);
}
