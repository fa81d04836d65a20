// Chooses the scales of blocks, a batch at a time, then converts their elements.
#include "formats/scaling/quantize_blocks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <vector>

#include "formats/blocks/block_convert.hpp"
#include "formats/codec.hpp"
#include "formats/float_guard.hpp"
#include "formats/quantize.hpp"
#include "formats/scaling/fast_blocks.hpp"
#include "formats/scaling/fast_real.hpp"
#include "formats/simd/block_scales.hpp"
#include "formats/simd/philox.hpp"
#include "formats/simd/transpose.hpp"

namespace numemu {
namespace {

// Blocks whose scales are chosen together: enough that a rule's preparations do not count.
constexpr std::int64_t kBlocksOfBatch = 1024;
// Elements of a block that one thread converts at a time.
constexpr std::int64_t kPiece = std::int64_t{1} << 16;

/// What is known of a block before its scale is chosen.
struct Block {
  float amax = 0;  ///< over finite elements
  bool nonfinite = false;
  StoredScale stored;
};

bool finite(float x) { return (std::bit_cast<std::uint32_t>(x) & 0x7f800000) != 0x7f800000; }

/// The call with its format and its tensor scale filled in.
struct BlockJob {
  const BlockQuantization& how;
  const BlockLayout& layout;
  const float* x;
  Conversion element;
  float tensor_scale;

  BlockJob(const BlockQuantization& q, const BlockLayout& l, const float* numbers)
      : how(q),
        layout(l),
        x(numbers),
        element(q.element),
        tensor_scale(tensor_scale_of(q, numbers, l.elements())) {
    element.format = q.format->element;
  }
  const BlockFormat& format() const { return *how.format; }
  bool nan(const Block& block) const {
    return block.nonfinite && how.nonfinite == Nonfinite::propagate;
  }
};

/// Looks at every element of the blocks [begin, end). The finite ones are appended to `gathered`
/// with the offsets of the blocks, if given.
void survey(const BlockJob& job, std::int64_t begin, std::int64_t end, Block* blocks,
            std::vector<float>* gathered, std::vector<std::int64_t>* offsets) {
  for (std::int64_t b = begin; b < end; ++b) {
    const BlockElements elements = job.layout.block(b);
    Block& block = blocks[b - begin];
    if (gathered == nullptr && elements.contiguous()) {
      const simd::FiniteRange range = simd::finite_range(job.x + elements.first, elements.count);
      block.amax = std::max(std::fabs(range.low), std::fabs(range.high));
      block.nonfinite = !range.all;
      continue;
    }
    for (std::int64_t r = 0; r < elements.runs; ++r) {
      const float* run = job.x + elements.first + r * elements.run_step;
      for (std::int64_t j = 0; j < elements.count; ++j) {
        const float x = run[j * elements.step];
        if (!finite(x)) {
          block.nonfinite = true;
          continue;
        }
        block.amax = std::max(block.amax, std::fabs(x));
        if (gathered != nullptr) gathered->push_back(x);
      }
    }
    if (offsets != nullptr) offsets->push_back(static_cast<std::int64_t>(gathered->size()));
  }
}

void choose_powers(const BlockJob& job, std::int64_t begin, std::int64_t end, Block* blocks) {
  const auto count = static_cast<std::size_t>(end - begin);
  const bool reads = job.how.rule->reads_elements;
  std::vector<float> gathered, amax(count);
  std::vector<std::int64_t> offsets = {0};
  survey(job, begin, end, blocks, reads ? &gathered : nullptr, reads ? &offsets : nullptr);
  for (std::size_t b = 0; b < count; ++b) amax[b] = blocks[b].amax;
  if (job.format().tensor_scale) {  // IEEE divisions under the guard
    for (float& x : gathered) x /= job.tensor_scale;
    for (float& x : amax) x /= job.tensor_scale;
  }
  std::vector<std::int32_t> exponents(count);
  job.how.rule->exponents({&job.format(), &job.element, end - begin, amax.data(), gathered.data(),
                           offsets.data(), exponents.data()});
  for (std::size_t b = 0; b < count; ++b)
    blocks[b].stored.scale = static_cast<std::uint64_t>(exponents[b] + job.format().scale->bias);
}

/// The number beside the scale: zero point or minimum.
std::uint32_t shift_of(const BlockJob& job, const StoredScale& stored, const float* x,
                       std::int64_t n) {
  if (job.format().affine == Affine::sym || n == 0) return 0;
  const float low = simd::finite_range(x, n).low;
  if (job.format().affine == Affine::min) return std::bit_cast<std::uint32_t>(low + 0.0f);
  return zero_point(job.format(), block_scale(job.format(), stored, 1).factor, std::min(low, 0.0f));
}

/// The scales that the caller gives; with their zero points and minima.
void take_given(const BlockJob& job, std::int64_t begin, std::int64_t end, Block* blocks) {
  std::vector<float> gathered;
  for (std::int64_t b = begin; b < end; ++b) {
    Block& block = blocks[b - begin];
    gathered.clear();
    survey(job, b, b + 1, &block, &gathered, nullptr);
    block.stored.scale = load_code(*job.format().scale, job.how.scales, b);
    block.stored.shift =
        shift_of(job, block.stored, gathered.data(), static_cast<std::int64_t>(gathered.size()));
  }
}

void choose_real(const BlockJob& job, std::int64_t begin, std::int64_t end, Block* blocks) {
  std::vector<float> gathered;
  for (std::int64_t b = begin; b < end; ++b) {
    const BlockElements elements = job.layout.block(b);
    Block& block = blocks[b - begin];
    survey(job, b, b + 1, &block, nullptr, nullptr);
    const float* x = job.x + elements.first;
    std::int64_t n = elements.size();
    if (!elements.contiguous() || block.nonfinite) {
      gathered.clear();
      survey(job, b, b + 1, &block, &gathered, nullptr);
      x = gathered.data();
      n = static_cast<std::int64_t>(gathered.size());
    }
    const RoundingMode rounding =
        job.format().tensor_scale ? RoundingMode::rne : job.how.scale_rounding;
    const float scale =
        job.how.rule->scale({x, n, &job.element, &job.format(), job.tensor_scale, rounding});
    block.stored.scale = encode(*job.format().scale, value_of(scale), {}, Overflow::saturate).code;
    block.stored.shift = shift_of(job, block.stored, x, n);
  }
}

/// Chooses and stores the scales of the blocks [begin, end).
BlockCounts choose(const BlockJob& job, std::int64_t begin, std::int64_t end,
                   const BlockArrays& arrays, StoredScale* stored) {
  std::vector<Block> blocks(static_cast<std::size_t>(end - begin));
  (job.how.scales != nullptr           ? take_given
   : job.format().power_of_two_scale() ? choose_powers
                                       : choose_real)(job, begin, end, blocks.data());
  BlockCounts counts{.blocks = end - begin};
  for (std::int64_t b = begin; b < end; ++b) {
    Block& block = blocks[static_cast<std::size_t>(b - begin)];
    if (job.nan(block)) block.stored = nan_scale(job.format());
    counts.nan_blocks += job.nan(block);
    counts.zero_blocks += block.amax == 0 && !block.nonfinite;
    stored[b - begin] = block.stored;
    store_scale(job.format(), arrays, b, block.stored);
  }
  return counts;
}

#pragma omp declare reduction(merge:FlagCounts : omp_out += omp_in)

/// Keeps the first exception of a parallel loop, by the order of its iterations.
class FirstError {
 public:
  template <class Body>
  void guard(std::int64_t index, const Body& body) {
    try {
      body();
    } catch (...) {
#pragma omp critical(numemu_first_error)
      if (!error_ || index < index_) {
        error_ = std::current_exception();
        index_ = index;
      }
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
  std::int64_t index_ = 0;
};

FlagCounts convert(const BlockJob& job, std::int64_t b, const StoredScale& stored,
                   std::int64_t begin, std::int64_t end, const BlockArrays& arrays, float* y) {
  const BlockScale scale = block_scale(job.format(), stored, job.tensor_scale);
  return encode_elements(job.format(), job.element, scale, job.x, job.layout.block(b), begin, end,
                         arrays.codes, y);
}

// Tasks large enough that threads do not wait for each other; few blocks stay in this one.
BlockCounts quantize_fast(const FastBlocks& fast, const BlockJob& job, const BlockArrays& arrays,
                          float* y) {
  constexpr std::int64_t kTask = std::int64_t{1} << 16;  // elements
  const std::int64_t blocks = job.layout.blocks;
  const std::int64_t step = std::max<std::int64_t>(1, kTask / job.layout.block(0).size());
  const std::int64_t tasks = (blocks + step - 1) / step;
  BlockCounts counts;
#pragma omp parallel for schedule(dynamic) if (tasks > 1)
  for (std::int64_t task = 0; task < tasks; ++task) {
    const BlockCounts local = fast.quantize(job.layout, job.x, job.tensor_scale, task * step,
                                            std::min((task + 1) * step, blocks), arrays, y);
#pragma omp critical(numemu_block_counts)
    counts += local;
  }
  return counts;
}

}  // namespace

BlockCounts& BlockCounts::operator+=(const BlockCounts& other) {
  elements += other.elements;
  blocks += other.blocks;
  zero_blocks += other.zero_blocks;
  nan_blocks += other.nan_blocks;
  return *this;
}

float tensor_scale_of(const BlockQuantization& q, const float* x, std::int64_t n) {
  const BlockFormat& f = *q.format;
  if (!f.tensor_scale || !q.use_tensor_scale) return 1;
  if (q.tensor_scale) return *q.tensor_scale;
  const float amax = static_cast<float>(largest_magnitude(x, n));
  if (amax == 0) return 1;
  const Value largest =
      f.power_of_two_scale()
          ? largest_element(f)
          : exact_product(largest_element(f), decode(*f.scale, f.scale->largest_code()));
  const Encoded code = encode(find_format("float32"), exact_quotient(value_of(amax), largest), {},
                              Overflow::saturate);
  return std::max(std::bit_cast<float>(static_cast<std::uint32_t>(code.code)), 0x1p-126f);
}

BlockCounts quantize_blocks_reference(const BlockQuantization& how, const BlockLayout& layout,
                                      const float* x, const BlockArrays& arrays, float* y) {
  const FloatGuard guard;
  const BlockJob job(how, layout, x);
  BlockCounts counts{.tensor_scale = job.tensor_scale};
  if (arrays.tensor_scale != nullptr) *arrays.tensor_scale = job.tensor_scale;
  for (std::int64_t b = 0; b < layout.blocks; ++b) {
    StoredScale stored;
    counts += choose(job, b, b + 1, arrays, &stored);
    counts.elements += convert(job, b, stored, 0, layout.block(b).size(), arrays, y);
  }
  return counts;
}

BlockCounts quantize_blocks(const BlockQuantization& how, const BlockLayout& layout, const float* x,
                            const BlockArrays& arrays, float* y) {
  const BlockJob job(how, layout, x);
  BlockCounts counts{.tensor_scale = job.tensor_scale};
  if (arrays.tensor_scale != nullptr) *arrays.tensor_scale = job.tensor_scale;
  if (layout.blocks == 0) return counts;
  const FastBlocks fast(how);
  const bool converts = arrays.codes != nullptr || y != nullptr || !how.count_flags;
  if (fast.serves(layout, job.tensor_scale) && converts) {
    counts += quantize_fast(fast, job, arrays, y);
    return counts;
  }
  const FastReal real(how);
  const std::int64_t batches = (layout.blocks + kBlocksOfBatch - 1) / kBlocksOfBatch;
  const std::int64_t largest = layout.block(0).size();
  const std::int64_t pieces = std::max<std::int64_t>(1, (largest + kPiece - 1) / kPiece);
  FirstError first_error;
  // One batch at a time stays in the cache between choosing and converting; few large blocks are
  // converted in pieces instead.
#pragma omp parallel for schedule(dynamic) if (batches > 1)
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    first_error.guard(batch, [&] {
      const FloatGuard guard;
      const std::int64_t begin = batch * kBlocksOfBatch;
      const std::int64_t end = std::min(begin + kBlocksOfBatch, layout.blocks);
      std::vector<StoredScale> stored(static_cast<std::size_t>(end - begin));
      BlockCounts local = choose(job, begin, end, arrays, stored.data());
      FlagCounts flags;
#pragma omp parallel for schedule(static) reduction(merge : flags) if (batches == 1)
      for (std::int64_t i = 0; i < (end - begin) * pieces; ++i) {
        const std::int64_t b = begin + i / pieces, size = layout.block(b).size();
        const std::int64_t from = std::min(i % pieces * kPiece, size);
        const StoredScale& scale = stored[static_cast<std::size_t>(b - begin)];
        const std::int64_t to = std::min(from + kPiece, size);
        flags += real.serves() ? real.encode(block_scale(job.format(), scale, job.tensor_scale), x,
                                             layout.block(b), from, to, arrays.codes, y)
                               : convert(job, b, scale, from, to, arrays, y);
      }
      local.elements = flags;
#pragma omp critical(numemu_block_counts)
      counts += local;
    });
  }
  first_error.rethrow();
  return counts;
}

namespace {

// A panel of some columns and rows is turned into lines, quantized and turned back while it lies in
// the first-level cache.

// 16 KiB of elements: a panel and what becomes of it stay in the first-level cache.
constexpr std::int64_t kPanelElements = 4096;
constexpr std::int64_t kCacheLine = 16;  // elements
// Rows of a panel where there are enough: one call of fill_random() per column draws many words.
constexpr std::int64_t kRows = 128;

/// How each matrix is cut: whole blocks in each panel but for the last of a column.
struct Panels {
  std::int64_t outer, length, across;
  std::int64_t rows, columns;  ///< of a panel
  std::int64_t down, beside;   ///< panels

  Panels(std::int64_t matrices, std::int64_t n, std::int64_t width, std::int64_t block)
      : outer(matrices), length(n), across(width) {
    const auto whole_blocks = [&](std::int64_t most) {
      return std::min(length, std::max(block, most / block * block));
    };
    rows = whole_blocks(kRows);
    columns = std::clamp<std::int64_t>(kPanelElements / rows, 1, across);
    if (columns < across && columns > kCacheLine) columns -= columns % kCacheLine;
    rows = std::max(rows, whole_blocks(kPanelElements / columns));
    down = (length + rows - 1) / rows;
    beside = (across + columns - 1) / columns;
  }
  std::int64_t count() const { return outer * down * beside; }
};

class PanelJob {
 public:
  PanelJob(const BlockQuantization& how, const FastBlocks& fast, const Panels& panels,
           float tensor_scale, const float* x, float* y)
      : how_(how), fast_(fast), panels_(panels), tensor_scale_(tensor_scale), x_(x), y_(y) {}

  BlockCounts run(std::int64_t panel) const {
    const Panels& p = panels_;
    const std::int64_t c0 = panel % p.beside * p.columns, c = std::min(p.columns, p.across - c0);
    const std::int64_t r0 = panel / p.beside % p.down * p.rows, r = std::min(p.rows, p.length - r0);
    const std::int64_t o = panel / (p.beside * p.down), first = (o * p.length + r0) * p.across + c0;
    alignas(64) float lines[kPanelElements], values[kPanelElements];
    alignas(64) std::uint32_t words[kPanelElements];
    simd::transpose_words(x_ + first, r, c, p.across, lines, r);
    if (how_.element.rounding.stochastic()) draw(o * p.across + c0, c, r0, r, words);
    BlockLayout layout;
    layout.outer = c;
    layout.length = r;
    layout.size = how_.format->size;
    layout.per_line = (r + layout.size - 1) / layout.size;
    layout.blocks = c * layout.per_line;
    const BlockCounts counts =
        fast_.quantize(layout, lines, tensor_scale_, 0, layout.blocks, {}, values, words);
    simd::transpose_words(values, c, r, r, y_ + first, p.across);
    return counts;
  }

 private:
  /// Random bits of `count` lines' elements [r0, r0 + r).
  void draw(std::int64_t line, std::int64_t count, std::int64_t r0, std::int64_t r,
            std::uint32_t* words) const {
    const Conversion& element = how_.element;
    for (std::int64_t i = 0; i < count; ++i, words += r) {
      const std::int64_t from = (line + i) * panels_.length + r0;
      if (element.random_words != nullptr) {
        std::copy_n(element.random_words + from, r, words);
      } else {
        simd::fill_random(element.random, element.rounding.random_bits,
                          static_cast<std::uint64_t>(from), r, words);
      }
    }
  }

  const BlockQuantization& how_;
  const FastBlocks& fast_;
  const Panels& panels_;
  float tensor_scale_;
  const float* x_;
  float* y_;
};

}  // namespace

BlockCounts quantize_columns(const BlockQuantization& how, std::int64_t outer, std::int64_t length,
                             std::int64_t across, const float* x, float* y) {
  const BlockLayout layout = block_layout(*how.format, {outer * across, length}, 1);
  BlockCounts counts{.tensor_scale = tensor_scale_of(how, x, layout.elements())};
  if (layout.elements() == 0) return counts;
  const FastBlocks fast(how);
  if (!fast.serves(layout, counts.tensor_scale))
    return quantize_columns_reference(how, outer, length, across, x, y);
  const Panels panels(outer, length, across, how.format->size);
  const PanelJob job(how, fast, panels, counts.tensor_scale, x, y);
  const std::int64_t n = panels.count();
#pragma omp parallel if (n > 4)
  {
    BlockCounts local;
#pragma omp for schedule(static) nowait
    for (std::int64_t panel = 0; panel < n; ++panel) local += job.run(panel);
#pragma omp critical(numemu_block_counts)
    counts += local;
  }
  return counts;
}

BlockCounts quantize_columns_reference(const BlockQuantization& how, std::int64_t outer,
                                       std::int64_t length, std::int64_t across, const float* x,
                                       float* y) {
  const BlockLayout layout = block_layout(*how.format, {outer * across, length}, 1);
  thread_local std::vector<float> lines, values;
  lines.resize(static_cast<std::size_t>(layout.elements()));
  values.resize(lines.size());
  transpose(x, outer, length, across, lines.data());
  const BlockCounts counts = quantize_blocks(how, layout, lines.data(), {}, values.data());
  transpose(values.data(), outer, across, length, y);
  return counts;
}

void transpose(const float* in, std::int64_t count, std::int64_t rows, std::int64_t columns,
               float* out) {
  const std::int64_t bands = (rows + kCacheLine - 1) / kCacheLine, tasks = count * bands;
#pragma omp parallel for schedule(static) if (tasks > 1 && count * rows * columns > kPanelElements)
  for (std::int64_t task = 0; task < tasks; ++task) {
    const std::int64_t matrix = task / bands * rows * columns, first = task % bands * kCacheLine;
    simd::transpose_words(in + matrix + first * columns, std::min(kCacheLine, rows - first),
                          columns, columns, out + matrix + first, rows);
  }
}

}  // namespace numemu
