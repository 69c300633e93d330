// TensorFlow's plug-in for the collective: the ops HearthAllReduce, HearthAllGather and
// HearthBroadcast, registered when TensorFlow loads the library. Their kernels submit to a queue
// and return; no thread of TensorFlow's waits. The ops are stateful, so a tf.function runs them in
// the order in which the program has them, which is the same on all ranks.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "plugins/tensorflow/collective_call.h"

namespace hearth::tensorflow {
namespace {

const Functions* tf = nullptr;

// What the attributes of an op say.
struct Settings {
  hearth_operation_kind kind = HEARTH_ALL_REDUCE;
  int reduction = HEARTH_SUM;
  int wire = HEARTH_WIRE_AS_IS;
  int root = 0;
  std::vector<std::string> names;
};

struct TypePair {
  TF_DataType theirs;
  hearth_data_type ours;
};
constexpr TypePair kTypes[] = {{TF_FLOAT, HEARTH_FLOAT32}, {TF_DOUBLE, HEARTH_FLOAT64},
                               {TF_HALF, HEARTH_FLOAT16},  {TF_BFLOAT16, HEARTH_BFLOAT16},
                               {TF_INT32, HEARTH_INT32},   {TF_INT64, HEARTH_INT64},
                               {TF_UINT8, HEARTH_UINT8},   {TF_BOOL, HEARTH_BOOL}};
constexpr char kTypeList[] = "{float, double, half, bfloat16, int32, int64, uint8, bool}";

hearth_data_type TypeOf(TF_DataType type) {
  for (const TypePair& pair : kTypes) {
    if (pair.theirs == type) return pair.ours;
  }
  return HEARTH_UINT8;  // the ops take no other types
}

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

// Without an input it works in place.
hearth_operation OperationOf(const Settings& settings, size_t index, const TF_Tensor* input,
                             TF_Tensor* output) {
  hearth_operation operation = {};
  operation.kind = settings.kind;
  operation.reduction = static_cast<hearth_reduction>(settings.reduction);
  operation.wire = static_cast<hearth_wire>(settings.wire);
  operation.root = settings.root;
  operation.name = index < settings.names.size() ? settings.names[index].c_str() : "";
  if (output == nullptr) return operation;  // the call has failed
  if (input != nullptr) operation.input = tf->TensorData(input);
  operation.output = tf->TensorData(output);
  operation.count = static_cast<size_t>(tf->TensorElementCount(output));
  operation.type = TypeOf(tf->TensorType(output));
  return operation;
}

// All-reduce and broadcast: each output is like its input.
void ComputeEach(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  const auto& settings = *static_cast<Settings*>(kernel);
  const int count = tf->NumInputs(context);
  auto* call = new CollectiveCall(*tf, context, done, count);
  std::vector<hearth_operation> operations;
  for (int i = 0; i < count; ++i) {
    TF_Tensor* input = nullptr;
    TF_Tensor* output = call->OutputLikeInput(i, input);
    operations.push_back(OperationOf(settings, static_cast<size_t>(i), input, output));
  }
  // The call may be over, and gone, with the last one.
  for (const hearth_operation& operation : operations) call->Submit(operation);
}

// The second input says how many rows each rank brings.
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
                 "HearthAllGather takes a tensor with a first dimension, and each rank's rows");
    } else {
      std::vector<int64_t> shape = ShapeOf(input);
      int64_t row = 1;
      for (size_t axis = 1; axis < shape.size(); ++axis) row *= shape[axis];
      const auto* each = static_cast<const int64_t*>(tf->TensorData(rows));
      shape[0] = 0;
      for (int rank = 0; rank < World(); ++rank) {
        shape[0] += each[rank];
        counts.push_back(static_cast<size_t>(each[rank] * row));
      }
      const size_t elements = static_cast<size_t>(shape[0] * row);
      const auto given = static_cast<size_t>(tf->TensorElementCount(input));
      const size_t bytes =
          given == 0 ? elements * 8 : elements * (tf->TensorByteSize(input) / given);
      output = call->Output(0, tf->TensorType(input), shape, bytes);
    }
  }
  hearth_operation operation = OperationOf(settings, 0, input, output);
  operation.counts = counts.data();
  call->Submit(operation);
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
  tf->OpDefinitionBuilderAddOutput(builder, output);
  tf->OpDefinitionBuilderSetIsStateful(builder, true);
  tf->OpDefinitionBuilderSetShapeInferenceFunction(builder, shapes);
  tf->RegisterOpDefinition(builder, status);
}

template <hearth_operation_kind kKind>
void RegisterKernel(const char* name,
                    void (*compute)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*),
                    TF_Status* status) {
  if (tf->GetCode(status) != TF_OK) return;
  TF_KernelBuilder* builder =
      tf->NewAsyncKernelBuilder(name, "CPU", &Create<kKind>, compute, &Delete);
  tf->RegisterKernelBuilder(name, builder, status);
}

bool Register() {
  tf = FindFunctions();
  if (tf == nullptr) return false;
  TF_Status* status = tf->NewStatus();
  const std::string list = std::string("T: list(") + kTypeList + ") >= 1";
  const std::string names = "names: list(string) = []";
  RegisterOp("HearthAllReduce", {list, "reduction: int = 0", "wire: int = 0", names}, {"inputs: T"},
             "outputs: T", &SameShapes, status);
  RegisterKernel<HEARTH_ALL_REDUCE>("HearthAllReduce", &ComputeEach, status);
  RegisterOp("HearthBroadcast", {list, "root: int = 0", names}, {"inputs: T"}, "outputs: T",
             &SameShapes, status);
  RegisterKernel<HEARTH_BROADCAST>("HearthBroadcast", &ComputeEach, status);
  RegisterOp("HearthAllGather", {std::string("T: ") + kTypeList, names},
             {"input: T", "rows: int64"}, "output: T", &UnknownShape, status);
  RegisterKernel<HEARTH_ALL_GATHER>("HearthAllGather", &ComputeAllGather, status);
  const bool done = tf->GetCode(status) == TF_OK;
  if (!done) std::fprintf(stderr, "hearth: TensorFlow took no ops: %s\n", tf->Message(status));
  tf->DeleteStatus(status);
  return done;
}

const bool registered = Register();

}  // namespace
}  // namespace hearth::tensorflow

// Whether the ops are there: 0 where this TensorFlow lacks functions of its C interface.
extern "C" __attribute__((visibility("default"))) int hearth_tensorflow_registered() {
  return hearth::tensorflow::registered ? 1 : 0;
}

// From now on the ops use this collective, or none. Returns when nobody submits to the last one.
extern "C" __attribute__((visibility("default"))) void hearth_tensorflow_use(
    const hearth_collective* collective) {
  hearth::tensorflow::Use(collective);
}
