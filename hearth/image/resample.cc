#include "hearth/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "hearth/base/for_each_cpu.h"

namespace hearth::image {
namespace {

// The largest number of bits with which a weight of 1 fits an int16, the type that pmaddwd
// multiplies.
constexpr int kTriangleBits = 14;
constexpr int kTriangleOne = 1 << kTriangleBits;
constexpr int kTriangleHalf = kTriangleOne / 2;

uint8_t Rounded(int sum) {
  return static_cast<uint8_t>(std::clamp((sum + kTriangleHalf) >> kTriangleBits, 0, 255));
}

// Rounds the cumulative sums instead of the weights. So the weights add up to exactly 1, and
// uniform areas keep their level.
void RoundWeights(const std::vector<double>& exact, double sum, int16_t* weights) {
  double total = 0;
  int64_t rounded = 0;
  for (const double weight : exact) {
    total += weight;
    const int64_t next = std::llrint(total / sum * kTriangleOne);
    *weights++ = static_cast<int16_t>(next - rounded);
    rounded = next;
  }
}

// The sums fit 32 bits exactly: the maximum is 255 * 2^14 for all taps together.
void ResampleLinePlainly(const uint8_t* line, const ResampleTable& table, uint32_t* out) {
  for (int64_t i = 0; i < table.count(); ++i) {
    const uint8_t* pixel = line + table.first(i) * 3;
    const int16_t* weights = table.weights(i);
    int sums[3] = {0, 0, 0};
    for (int64_t k = 0; k < table.taps(); ++k, pixel += 3) {
      for (int c = 0; c < 3; ++c) sums[c] += weights[k] * pixel[c];
    }
    out[i] =
        static_cast<uint32_t>(Rounded(sums[0]) | Rounded(sums[1]) << 8 | Rounded(sums[2]) << 16);
  }
}

void BlendLinesPlainly(const uint32_t* const* lines, const int16_t* weights, int64_t taps,
                       int64_t count, uint32_t* out) {
  auto* bytes = reinterpret_cast<uint8_t*>(out);
  for (int64_t i = 0; i < count * 4; ++i) {
    int sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      sum += weights[k] * reinterpret_cast<const uint8_t*>(lines[k])[i];
    }
    bytes[i] = Rounded(sum);
  }
}

#ifdef __x86_64__
// The AVX2 code computes the same integer sums, so every CPU computes the same pixels.
#define HEARTH_AVX2 __attribute__((target("avx2")))

// Adds weighted source pixels, four at a time: two in each half, with their samples interleaved as
// 16-bit numbers.
HEARTH_AVX2 HEARTH_INLINE __m256i SumOf(const uint8_t* pixel, const int16_t* weights,
                                        int64_t taps) {
  // For pixels p0..p3 and weights w0..w3: the shuffle with `spread` puts r0 r1 g0 g1 b0 b1 0 0 into
  // the lower half, as 16-bit numbers, and the same of p2 and p3 into the upper half. `pair`
  // contains w0 w1 four times, then w2 w3 four times. So pmaddwd computes r0 w0 + r1 w1, and the
  // same for g and b, in 32 bits.
  const __m256i spread =
      _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                       -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m256i halves = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  __m256i sum = _mm256_setzero_si256();
  for (int64_t k = 0; k < taps; k += kColumnGroup, pixel += ptrdiff_t{3} * kColumnGroup) {
    const __m256i four =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel)));
    const __m256i pair = _mm256_permutevar8x32_epi32(
        _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(weights + k))),
        halves);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(four, spread), pair));
  }
  return sum;
}

HEARTH_AVX2 HEARTH_INLINE __m128i AddHalves(__m256i sum) {
  // Each half contains the sums of every other pair of taps.
  const __m128i total =
      _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return _mm_srai_epi32(_mm_add_epi32(total, _mm_set1_epi32(kTriangleHalf)), kTriangleBits);
}

HEARTH_AVX2 HEARTH_INLINE __m128i SumAt(const uint8_t* line, const ResampleTable& table,
                                        int64_t taps, int64_t i) {
  return AddHalves(SumOf(line + table.first(i) * 3, table.weights(i), taps));
}

HEARTH_AVX2 HEARTH_INLINE void ResampleByAvx2(const uint8_t* line, const ResampleTable& table,
                                              int64_t taps, uint32_t* out) {
  const int64_t count = table.count();
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    // Two saturating packs, to 16 and to 8 bits, clamp values like Rounded().
    const __m128i low =
        _mm_packs_epi32(SumAt(line, table, taps, i), SumAt(line, table, taps, i + 1));
    const __m128i high =
        _mm_packs_epi32(SumAt(line, table, taps, i + 2), SumAt(line, table, taps, i + 3));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm_packus_epi16(low, high));
  }
  for (; i < count; ++i) {
    const __m128i one = _mm_packs_epi32(SumAt(line, table, taps, i), _mm_setzero_si128());
    out[i] = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(one, one)));
  }
}

HEARTH_AVX2 void ResampleLineByAvx2(const uint8_t* line, const ResampleTable& table,
                                    uint32_t* out) {
  // Usually one group of taps is enough, because after the decoder's reduction most images shrink
  // by less than two. The constant number of taps then avoids the inner loop.
  if (table.taps() == kColumnGroup) return ResampleByAvx2(line, table, kColumnGroup, out);
  ResampleByAvx2(line, table, table.taps(), out);
}

HEARTH_AVX2 void BlendLinesByAvx2(const uint32_t* const* lines, const int16_t* weights,
                                  int64_t taps, int64_t count, uint32_t* out) {
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(kTriangleHalf);
  for (int64_t i = 0; i < count; i += 8) {
    __m256i sums[4] = {half, half, half, half};
    for (int64_t k = 0; k < taps; k += 2) {
      const auto* upper = reinterpret_cast<const __m256i*>(lines[k] + i);
      const auto* lower = reinterpret_cast<const __m256i*>(lines[k + 1] + i);
      const __m256i a = _mm256_loadu_si256(upper), b = _mm256_loadu_si256(lower);
      int32_t both;
      std::memcpy(&both, weights + k, sizeof(both));
      const __m256i pair = _mm256_set1_epi32(both);
      // Interleaves two lines byte by byte, so that pmaddwd multiplies a byte of each line with the
      // line's weight and adds the products. Unpacking and packing both work within 128-bit lanes,
      // so the bytes are in their original order afterwards.
      const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
      const __m256i parts[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                                _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
      for (int p = 0; p < 4; ++p) {
        sums[p] = _mm256_add_epi32(sums[p], _mm256_madd_epi16(parts[p], pair));
      }
    }
    for (__m256i& sum : sums) sum = _mm256_srai_epi32(sum, kTriangleBits);
    const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]),
                                               _mm256_packs_epi32(sums[2], sums[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), packed);
  }
}

bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}
#endif

}  // namespace

void ResampleTable::Build(const AxisPlacement& axis, int64_t count, int group, bool mirrored) {
  // weight(k) is max(0, 1 - |k + 0.5 - center| / scale), divided by the sum over all k. If the
  // image is enlarged, scale is 1, which is plain bilinear interpolation.
  const double scale = std::max(axis.step, 1.0);  // also half the width of the triangle
  const auto size = static_cast<double>(axis.high - axis.low);
  const auto center_of = [&](int64_t i) {
    return axis.begin + (static_cast<double>(mirrored ? count - 1 - i : i) + 0.5) * axis.step;
  };
  ranges_.resize(count);
  int64_t most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double center = center_of(i);
    const auto first = static_cast<int64_t>(std::max(0.0, center - scale + 0.5));
    const auto end = static_cast<int64_t>(std::min(size, center + scale + 0.5));
    // At least one pixel, even if rounding at the edge results in none.
    ranges_[i] = {first, std::max(first + 1, end)};
    most = std::max(most, ranges_[i].end - first);
  }
  // The ranges ascend, or descend if mirrored, so the first and the last one are the outermost.
  offset_ = std::min(ranges_.front().first, ranges_.back().first);
  low_ = axis.low + offset_;
  high_ = axis.low + std::max(ranges_.front().end, ranges_.back().end);
  taps_ = (most + group - 1) / group * group;
  weights_.assign(count * taps_, 0);
  for (int64_t i = 0; i < count; ++i) {
    const double center = center_of(i);
    exact_.clear();
    double sum = 0;
    for (int64_t k = ranges_[i].first; k < ranges_[i].end; ++k) {
      exact_.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - center) / scale));
      sum += exact_.back();
    }
    RoundWeights(exact_, sum, &weights_[i * taps_]);
  }
}

// Bytes beyond the end of the line are read by padding taps, whose weight is 0, and by the last
// load of 16 bytes.
int64_t LinePadding(const ResampleTable& table) { return table.taps() * 3 + 16; }

void ResampleLine(const uint8_t* line, const ResampleTable& table, uint32_t* out) {
#ifdef __x86_64__
  if (HasAvx2()) return ResampleLineByAvx2(line, table, out);
#endif
  ResampleLinePlainly(line, table, out);
}

void BlendLines(const uint32_t* const* lines, const int16_t* weights, int64_t taps, int64_t count,
                uint32_t* out) {
#ifdef __x86_64__
  if (HasAvx2()) return BlendLinesByAvx2(lines, weights, taps, count, out);
#endif
  BlendLinesPlainly(lines, weights, taps, count, out);
}

}  // namespace hearth::image
