#include "hearth/caffe/kernels/lstm_device.h"

#include "hearth/caffe/kernels/device_kernel.h"

namespace hearth::caffe {
namespace {

// Each output has a thread for each of its four gates, and a CUDA block has at most 1,024 threads.
constexpr int64_t kMaxOutputs = 256;

// A block computes all steps of one row. Adjacent threads read adjacent weights. The 1 in
// __launch_bounds__ gives all registers of a multiprocessor to one block, so that each thread can
// have more loads in flight. This costs nothing, because there are usually fewer rows than
// multiprocessors.
//
// On entry, `gates` contains W_x x + b. A step computes, as in lstm_step.cc:
//   sums = gates + W_h (cont * h_before); i, f, o = sigmoid(sums), g = tanh(sums); f *= cont
//   c = f * c_before + i * g; h = o * tanh(c)
// Barriers separate the three parts of a step: `from` must be complete before it is summed, the
// gates before the cells are computed from them, and both must have been read before the next step
// overwrites them.
constexpr char kForward[] = R"(
extern "C" __global__ __launch_bounds__(1024, 1) void hearth_lstm_forward(
    int steps, int rows, int size, const float* weight,  // size x 4 size
    const float* cont, const float* first, float* gates, float* cells, float* squashed,
    float* hidden, float* carried) {
  extern __shared__ float shared[];
  float* from = shared;            // the hidden values used in this step, times cont
  float* gate = shared + size;     // of this step
  const int row = blockIdx.x, j = threadIdx.x, width = 4 * size;
  for (int t = 0; t < steps; ++t) {
    const size_t at = (size_t)t * rows + row;
    const float keeps = cont[at];
    if (j < size) {
      const float before = t == 0 ? first[(size_t)row * size + j] : hidden[(at - rows) * size + j];
      from[j] = keeps * before;
      carried[at * size + j] = from[j];
    }
    __syncthreads();
    float sum = gates[at * width + j];
#pragma unroll 8
    for (int k = 0; k < size; ++k) sum += from[k] * weight[(size_t)k * width + j];
    float value = j < 3 * size ? 1.f / (1.f + expf(-sum)) : tanhf(sum);
    if (j >= size && j < 2 * size) value *= keeps;
    gate[j] = value;
    gates[at * width + j] = value;
    __syncthreads();
    if (j < size) {
      const float cell = gate[size + j] * cells[at * size + j] + gate[j] * gate[3 * size + j];
      const float flat = tanhf(cell);
      cells[(at + rows) * size + j] = cell;
      squashed[at * size + j] = flat;
      hidden[at * size + j] = gate[2 * size + j] * flat;
    }
    __syncthreads();
  }
}
)";

// Four groups of threads share the sum over the gates' gradients. Group g adds the products of gate
// g, and the threads below `size` add the four partial sums to cont * W_h^T d_gates, the gradient
// of the previous step's hidden values. These threads keep d_hidden and d_cell in registers.
constexpr char kBackward[] = R"(
extern "C" __global__ __launch_bounds__(1024, 1) void hearth_lstm_backward(
    int steps, int rows, int size, const float* weight,  // 4 size x size
    const float* cont, const float* gates, const float* cells, const float* squashed,
    const float* d_top, float* d_gates) {
  extern __shared__ float shared[];
  float* d_gate = shared;              // 4 size
  float* partial = shared + 4 * size;  // 4 size
  const int row = blockIdx.x, j = threadIdx.x, width = 4 * size;
  const int unit = j % size, group = j / size;
  float d_hidden = 0, d_cell = 0;      // of the threads below size
  for (int t = steps - 1; t >= 0; --t) {
    const size_t at = (size_t)t * rows + row;
    if (j < size) {
      const float* gate = gates + at * width;
      const float i = gate[j], f = gate[size + j], o = gate[2 * size + j], g = gate[3 * size + j];
      const float flat = squashed[at * size + j];
      d_hidden += d_top[at * size + j];
      d_cell += d_hidden * o * (1 - flat * flat);
      d_gate[j] = d_cell * g * i * (1 - i);
      d_gate[size + j] = d_cell * cells[at * size + j] * f * (1 - f);
      d_gate[2 * size + j] = d_hidden * flat * o * (1 - o);
      d_gate[3 * size + j] = d_cell * i * (1 - g * g);
      d_cell *= f;
    }
    __syncthreads();
    d_gates[at * width + j] = d_gate[j];
    float sum = 0;
#pragma unroll 8
    for (int k = group * size; k < (group + 1) * size; ++k) {
      sum += d_gate[k] * weight[(size_t)k * size + unit];
    }
    partial[j] = sum;
    __syncthreads();
    if (j < size) {
      d_hidden = cont[at] * (partial[j] + partial[size + j] + partial[2 * size + j] +
                             partial[3 * size + j]);
    }
    __syncthreads();
  }
}
)";

// Pointers to a kernel's arguments.
class Arguments {
 public:
  Arguments(const DeviceLstmArrays& a)
      : numbers_{static_cast<int>(a.steps), static_cast<int>(a.rows), static_cast<int>(a.size)} {
    for (int& number : numbers_) list_.push_back(&number);
  }
  void Add(const Tensor& tensor) { pointers_.push_back(tensor.data_ptr()); }
  // Returns pointers into this object, which must not move or grow afterwards.
  std::vector<void*> List() {
    for (float*& pointer : pointers_) list_.push_back(&pointer);
    return list_;
  }

 private:
  int numbers_[3];
  std::vector<float*> pointers_;
  std::vector<void*> list_;
};

// Returns true if the kernels support these arrays. Otherwise the caller launches each product
// separately.
bool Takes(const DeviceLstmArrays& a) {
  return a.weight.device().is_cuda() && a.size <= kMaxOutputs && a.rows > 0 && a.steps > 0;
}

}  // namespace

bool LstmForward(const DeviceLstmArrays& a, const Tensor& first) {
  static auto* const kernel = new DeviceKernel("hearth_lstm_forward", kForward);
  if (!Takes(a)) return false;
  // The weight is transposed, so that adjacent threads read adjacent weights: thread j of the
  // forward kernel reads column j. The copy may be released while the kernel still runs, because
  // ATen's allocator reuses memory in stream order.
  const Tensor transposed = a.weight.t().contiguous();
  Arguments arguments(a);
  for (const Tensor& tensor :
       {transposed, a.cont, first, a.gates, a.cells, a.squashed, a.hidden, a.carried}) {
    arguments.Add(tensor);
  }
  // Shared memory contains the hidden values and the gates of a step.
  return kernel->Launch(a.weight.device(), {a.rows, 4 * a.size, 5 * a.size}, arguments.List());
}

bool LstmBackward(const DeviceLstmArrays& a, const Tensor& d_hidden, const Tensor& d_gates) {
  static auto* const kernel = new DeviceKernel("hearth_lstm_backward", kBackward);
  if (!Takes(a)) return false;
  Arguments arguments(a);
  // The weight is not transposed: each thread sums over the gates for one hidden value, the
  // weight's second axis.
  for (const Tensor& tensor : {a.weight, a.cont, a.gates, a.cells, a.squashed, d_hidden, d_gates}) {
    arguments.Add(tensor);
  }
  // Shared memory contains the gates' gradients of a step and the four groups' partial sums.
  return kernel->Launch(a.weight.device(), {a.rows, 4 * a.size, 8 * a.size}, arguments.List());
}

}  // namespace hearth::caffe
