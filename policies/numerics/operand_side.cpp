#include "policies/numerics/operand_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/unit/sparse/compress.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::policies {

CopiedSide::CopiedSide(const net::Product& product, const net::ProductSide& side) : side_(side) {
  const unit::Gather& from = *side.gather;
  const std::int64_t count = side.stack.count(), rows = std::ssize(from.row), k = product.k;
  matrices_ = net::Tensor({count * rows, k});
  const std::int64_t each = side.stack.rows(side.source->size());
  net::StackReader reader(side.stack, each,
                          side.stack.width * static_cast<std::int64_t>(sizeof(float)),
                          side.source->data.data());
  std::vector<float> padded;
  for (std::int64_t b = 0; b < count; ++b) {
    const auto* source = reinterpret_cast<const float*>(reader.at(b));
    if (!from.padding.identity()) {
      padded.resize(static_cast<std::size_t>(from.padding.padded_size()));
      unit::pad(from.padding, source, padded.data(), 0.0f);
      source = padded.data();
    }
    float* const to = matrices_.data.data() + b * rows * k;
    net::for_each_row(rows, k, [&](std::int64_t r) {
      const float* const line = source + from.row[static_cast<std::size_t>(r)];
      for (std::int64_t i = 0; i < k; ++i)
        to[r * k + i] = line[from.depth[static_cast<std::size_t>(i)]];
    });
  }
  gather_ = unit::Gather::matrix(rows, k);
  side_.source = &matrices_;
  side_.gather = &gather_;
  side_.stack = {.outer = count, .inner = 1, .width = k};
  side_.along_rows = false;
}

PlainSide::PlainSide(const net::ProductSide& side, const net::SourceCodes& source,
                     std::int64_t rows, std::int64_t depth)
    : format_(source.format),
      gather_(side.gather),
      rows_(rows),
      depth_(depth),
      reader_(side.stack, side.stack.rows(side.source->size()),
              side.stack.width * container_bytes(*source.format), source.codes) {}

OperandRows PlainSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  if (begin != 0 || end != rows_) throw Error("an operand in place has no tiles");
  return {{format_, reader_.at(b), gather_}, nullptr};
}

void multiply_tiles(const unit::Unit& unit, const net::Product& p, OperandSide& a, OperandSide& b,
                    const net::ProductRandom& random, const net::ProductResult& result) {
  net::require_stacks(p);
  const std::int64_t inner = p.d_stack.inner, bytes = result.bytes;
  auto* const out = static_cast<std::byte*>(result.d != nullptr ? result.d : p.d);
  const std::int64_t high = a.rows_at_once(), wide = b.rows_at_once();
  std::vector<std::byte> tile;
  std::uint32_t number = 0;
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    std::byte* const matrix = out + (i / inner * p.m * inner + i % inner) * p.n * bytes;
    for (std::int64_t j = 0; j < p.n; j += wide) {
      const std::int64_t n = std::min(wide, p.n - j);
      const OperandRows right = b.rows(i, j, j + n);
      for (std::int64_t r = 0; r < p.m; r += high) {
        const std::int64_t m = std::min(high, p.m - r);
        const OperandRows left = a.rows(i, r, r + m);
        std::byte* const to = matrix + (r * inner * p.n + j) * bytes;
        const bool in_place = n == p.n && inner == 1;
        if (!in_place) tile.resize(static_cast<std::size_t>(m * n * bytes));
        const net::Section section(net::SectionKind::gemm, p.layer, net::to_string(p.kind),
                                   static_cast<double>(m * n) * static_cast<double>(a.depth()));
        unit.multiply({.m = m,
                       .n = n,
                       .k = a.depth(),
                       .a = left.operand,
                       .b = right.operand,
                       .d = in_place ? to : tile.data(),
                       .scale_a = left.scales,
                       .scale_b = right.scales,
                       .seed = random.seed,
                       .tensor = random.tensor + number++});
        for (std::int64_t y = 0; y < m && !in_place; ++y)
          std::memcpy(to + y * inner * p.n * bytes, tile.data() + y * n * bytes,
                      static_cast<std::size_t>(n * bytes));
      }
    }
  }
}

namespace {

constexpr std::int64_t kTile = (std::int64_t{1} << 20) / sizeof(float);

}  // namespace

GatheredSide::GatheredSide(const RoleQuantizer& quantizer, const net::Product& product,
                           const net::ProductSide& side, const RandomPiece& random,
                           std::int64_t samples, bool scaled)
    : quantizer_(quantizer),
      product_(product),
      side_(side),
      random_(random),
      scaled_(scaled),
      left_(&side == &product.a),
      rows_(left_ ? product.m : product.n),
      at_once_(rows_),
      reader_(side.stack, side.stack.rows(side.source->size()), side.stack.width * sizeof(float),
              side.source->data.data()) {
  const std::int64_t matrix = side.source->size() / side.stack.count();
  for (std::int64_t d = 0; d < product.k; ++d) {
    const std::int32_t from = side.gather->depth[d];
    if (!spans_.empty() && from == spans_.back().from + spans_.back().count) {
      ++spans_.back().count;
    } else {
      spans_.push_back({from, d, 1});
    }
  }
  if (quantizer.policy().block->tensor_scale) {
    // Shares of one matrix; where samples have matrices of their own, those are their tensors.
    if (side.stack.outer == 1 && rows_ % samples == 0) at_once_ = rows_ / samples;
  } else if (rows_ * product.k > matrix) {
    at_once_ = std::clamp<std::int64_t>(kTile / std::max<std::int64_t>(1, product.k), 1, rows_);
  }
}

void GatheredSide::gather(std::int64_t matrix, std::int64_t begin, std::int64_t end) {
  const unit::Gather& from = *side_.gather;
  const auto* source = reinterpret_cast<const float*>(reader_.at(matrix));
  if (!from.padding.identity()) {
    if (padded_matrix_ != matrix) {
      padded_.resize(static_cast<std::size_t>(from.padding.padded_size()));
      unit::pad(from.padding, source, padded_.data(), 0.0f);
      padded_matrix_ = matrix;
    }
    source = padded_.data();
  }
  const std::int64_t k = product_.k;
  x_.resize(static_cast<std::size_t>((end - begin) * k));
  net::for_each_row(end - begin, k, [&](std::int64_t r) {
    const float* const line = source + from.row[begin + r];
    float* const to = x_.data() + r * k;
    for (const Span& span : spans_) std::copy_n(line + span.from, span.count, to + span.to);
  });
}

OperandRows GatheredSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  const std::int64_t matrix = side_.stack.count() == 1 ? 0 : b, k = product_.k;
  const std::int64_t block = quantizer_.policy().block->size;
  const std::int64_t per_row = scaled_ ? (k + block - 1) / block : 0;
  const auto ready = [&]() -> OperandRows {
    if (scaled_)
      return {{quantizer_.policy().block->element, codes_.data(), &gather_}, scale_codes_.data()};
    return {{&float32(), y_.data(), &gather_}, nullptr};
  };
  if (matrix == matrix_ && begin == begin_) return ready();
  gather(matrix, begin, end);
  const std::int64_t first = matrix * rows_ + begin, n = (end - begin) * k;
  const RandomPiece random{random_.source, random_.first + first * k};
  const BlockLayout layout = block_layout(*quantizer_.policy().block, {end - begin, k}, 1);
  BlockCounts counts;
  if (scaled_) {
    codes_.resize(static_cast<std::size_t>(n));
    scale_codes_.resize(static_cast<std::size_t>((end - begin) * per_row));
    float tensor_scale = 1;
    counts = quantizer_.quantize(
        layout, x_.data(), random,
        {.codes = codes_.data(), .scales = scale_codes_.data(), .tensor_scale = &tensor_scale},
        nullptr);
    if (first >= counted_) tensor_scales_.push_back(tensor_scale);
  } else {
    y_.resize(static_cast<std::size_t>(n));
    counts = quantizer_.quantize(layout, x_.data(), random, {}, y_.data());
  }
  if (first >= counted_) {
    flags_ += counts.elements;
    counted_ = first + end - begin;
  }
  if (matrix_ < 0 || static_cast<std::int64_t>(gather_.row.size()) != end - begin)
    gather_ = unit::Gather::matrix(end - begin, k);
  matrix_ = matrix;
  begin_ = begin;
  return ready();
}

OperandScales GatheredSide::scales() const {
  if (!scaled_ || !quantizer_.policy().block->tensor_scale || tensor_scales_.empty()) return {};
  if (tensor_scales_.size() == 1) return {OperandScales::Kind::one, tensor_scales_};
  if (!left_) return {OperandScales::Kind::column, tensor_scales_, side_.stack.count()};
  // [matrix, share] to the lines of D.
  const std::int64_t inner = product_.d_stack.inner;
  const std::int64_t shares = (rows_ + at_once_ - 1) / at_once_;
  OperandScales result;
  result.kind = OperandScales::Kind::line;
  result.values.resize(static_cast<std::size_t>(product_.d_stack.count() * rows_));
  for (std::int64_t b = 0; b < product_.d_stack.count(); ++b) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      const std::int64_t share =
          side_.stack.count() == 1 ? r / at_once_ : b * shares + r / at_once_;
      result.values[(b / inner * rows_ + r) * inner + b % inner] = tensor_scales_[share];
    }
  }
  return result;
}

namespace {

/// An offset of a gather as a place on a line, and the line.
struct Place {
  std::int64_t on_line, line;
};

/// The code of the scale that a block of nothing but zeros is given: the blocks of a border.
std::uint8_t scale_of_zeros(const RoleQuantizer& quantizer) {
  const std::vector<float> zeros(static_cast<std::size_t>(quantizer.policy().block->size));
  const auto size = static_cast<std::int64_t>(zeros.size());
  std::vector<std::uint8_t> codes(zeros.size());
  std::uint8_t scale = 0;
  quantizer.quantize(block_layout(*quantizer.policy().block, {1, size}, 1), zeros.data(), {},
                     {.codes = codes.data(), .scales = &scale}, nullptr);
  return scale;
}

/// The pieces of a line of `length` elements of every group, the first of which begins where a
/// block does.
std::vector<std::vector<LinePiece>> cut(std::int64_t groups, std::int64_t length,
                                        std::int64_t block) {
  std::vector<std::vector<LinePiece>> pieces(static_cast<std::size_t>(groups));
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t from = 0, next = 0; from < length; from = next) {
      const std::int64_t end_of_group = from + block - (g * length + from) % block;
      const std::int64_t end_of_own = from + block - from % block;
      next = std::min({length, end_of_group, end_of_own});
      pieces[g].push_back({from, next - from});
    }
  }
  return pieces;
}

}  // namespace

std::optional<ScaledGather> scaled_gather(const net::Product& p, const net::ProductSide& side,
                                          std::int64_t block) {
  const unit::Gather& from = *side.gather;
  const std::int64_t width = side.stack.width, rows = side.stack.rows(side.source->size());
  const bool across = side.along_rows;
  ScaledGather result;
  result.block = block;
  result.length = across ? rows : width;
  if (result.length == 0) return std::nullopt;
  const bool grouped = groups_share_blocks(p, p.a) || groups_share_blocks(p, p.b);
  result.pieces = cut(grouped ? p.d_stack.count() : 1, result.length, block);
  for (const std::vector<LinePiece>& pieces : result.pieces)
    result.padded = std::max(result.padded, std::ssize(pieces) * block);
  if (across ? !from.padding.identity() : from.padding.channels % width != 0) return std::nullopt;
  const auto place = [&](std::int32_t offset) -> Place {
    if (across) return {offset / width, offset % width};
    return {offset % width, offset / width};
  };
  std::int64_t last_row = 0, last_run = 0;
  for (const std::int32_t offset : from.row) {
    const Place at = place(offset);
    if (at.on_line != 0) return std::nullopt;
    result.row_line.push_back(static_cast<std::int32_t>(at.line));
    last_row = std::max(last_row, at.line);
  }
  const auto depth = static_cast<std::int64_t>(from.depth.size());
  if (depth % result.length != 0) return std::nullopt;
  for (std::int64_t k = 0; k < depth; ++k) {
    const Place at = place(from.depth[k]);
    if (at.on_line != k % result.length) return std::nullopt;
    if (at.on_line == 0) result.run_line.push_back(static_cast<std::int32_t>(at.line));
    if (at.line != result.run_line.back()) return std::nullopt;
    last_run = std::max(last_run, at.line);
  }
  if (across && last_row + last_run >= width) return std::nullopt;

  unit::Padding& padding = result.codes.padding;
  if (across) {
    padding.outer = width;
    padding.channels = result.padded;
  } else {
    padding = from.padding;
    padding.channels = padding.channels / width * result.padded;
  }
  if (padding.padded_size() > std::numeric_limits<std::int32_t>::max()) {
    throw Error("an operand of " + std::to_string(padding.padded_size()) +
                " elements in whole blocks is beyond the 2^31 a gather can address; use a smaller "
                "batch");
  }
  for (const std::int32_t line : result.row_line)
    result.codes.row.push_back(static_cast<std::int32_t>(line * result.padded));
  for (const std::int32_t line : result.run_line) {
    for (std::int64_t i = 0; i < result.padded; ++i)
      result.codes.depth.push_back(static_cast<std::int32_t>(line * result.padded + i));
  }
  return result;
}

ScaledSide::ScaledSide(const RoleQuantizer& quantizer, const net::Product& product,
                       const net::ProductSide& side, ScaledGather gather, const RandomPiece& random,
                       std::int64_t samples)
    : quantizer_(quantizer),
      product_(product),
      side_(side),
      gather_(std::move(gather)),
      rows_(&side == &product.a ? product.m : product.n) {
  const bool tensor_scale = quantizer.policy().block->tensor_scale;
  const Lines lines(product, side);
  flags_ = quantize_lines(quantizer, side, lines, random, tensor_scale ? samples : 1, lines_);
  stack_ = side.along_rows ? net::Stack{.outer = side.stack.count()} : side.stack;
  lines_each_ = lines.elements() / gather_.length / side.stack.count();
  if (gather_.padded != gather_.length || gather_.pieces.size() > 1) cut_lines(lines);
  codes_.emplace(stack_, lines_each_, gather_.padded,
                 cut_codes_.empty() ? lines_.codes.data() : cut_codes_.data());
}

void ScaledSide::cut_lines(const Lines& whole) {
  const std::int64_t length = gather_.length, block = gather_.block,
                     each = gather_.blocks_of_line(), groups = std::ssize(gather_.pieces),
                     per_line = (whole.length + block - 1) / block;
  const std::int64_t lines = whole.elements() / length;
  cut_codes_.assign(static_cast<std::size_t>(lines * gather_.padded), 0);
  cut_scales_.assign(static_cast<std::size_t>(lines * each), scale_of_zeros(quantizer_));
  net::for_each_row(lines, gather_.padded, [&](std::int64_t line) {
    const std::int64_t matrix =
        line / (lines_each_ * stack_.inner) * stack_.inner + line % stack_.inner;
    const std::vector<LinePiece>& pieces = gather_.pieces[groups == 1 ? 0 : matrix];
    for (std::int64_t i = 0; i < std::ssize(pieces); ++i) {
      const std::int64_t first = line * length + pieces[i].from;
      std::copy_n(lines_.codes.data() + first, pieces[i].count,
                  cut_codes_.data() + line * gather_.padded + i * block);
      cut_scales_[line * each + i] =
          lines_.scales[first / whole.length * per_line + first % whole.length / block];
    }
  });
}

void ScaledSide::gather_scales(const std::uint8_t* line_scales) {
  const std::int64_t each = gather_.blocks_of_line();
  const unit::Padding& padding = gather_.codes.padding;
  if (!padding.identity()) {
    unit::Padding of_scales = padding;
    of_scales.channels = padding.channels / gather_.padded * each;
    padded_scales_.resize(static_cast<std::size_t>(of_scales.padded_size()));
    unit::pad(of_scales, line_scales, padded_scales_.data(), scale_of_zeros(quantizer_));
    line_scales = padded_scales_.data();
  }
  const auto runs = static_cast<std::int64_t>(gather_.run_line.size());
  scale_table_.resize(static_cast<std::size_t>(rows_ * runs * each));
  net::for_each_row(rows_, runs * each, [&](std::int64_t r) {
    std::uint8_t* to = scale_table_.data() + r * runs * each;
    for (std::int64_t run = 0; run < runs; ++run, to += each)
      std::copy_n(line_scales + (gather_.row_line[r] + gather_.run_line[run]) * each, each, to);
  });
}

OperandRows ScaledSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  if (begin != 0 || end != rows_) throw Error("an operand in place has no tiles");
  const std::int64_t matrix = side_.stack.count() == 1 ? 0 : b;
  if (matrix != matrix_) {
    net::StackReader scales(stack_, lines_each_, gather_.blocks_of_line(),
                            (cut_scales_.empty() ? lines_.scales : cut_scales_).data());
    gather_scales(reinterpret_cast<const std::uint8_t*>(scales.at(matrix)));
    matrix_ = matrix;
  }
  return {{quantizer_.policy().block->element, codes_->at(matrix), &gather_.codes},
          scale_table_.data()};
}

OperandScales ScaledSide::scales() const {
  if (!quantizer_.policy().block->tensor_scale) return {};
  return sample_scales(product_, lines_.tensor_scales);
}

namespace {

/// The sparse operand of one matrix: kept codes and their places, rows x kept depth.
struct Compressed {
  std::vector<std::byte> kept;
  std::vector<std::uint8_t> index;
};

template <class T>
void compress_rows(const unit::Pattern& pattern, const Format& format, const unit::Gather& gather,
                   const T* source, std::int64_t rows, std::int64_t depth, Compressed& out) {
  std::vector<T> padded, dense(static_cast<std::size_t>(rows * depth));
  if (!gather.padding.identity()) {
    padded.resize(static_cast<std::size_t>(gather.padding.padded_size()));
    unit::pad(gather.padding, source, padded.data(), T{});
    source = padded.data();
  }
  net::for_each_row(rows, depth, [&](std::int64_t r) {
    const T* const line = source + gather.row[r];
    for (std::int64_t k = 0; k < depth; ++k) dense[r * depth + k] = line[gather.depth[k]];
  });
  const std::int64_t kept = rows * unit::kept_depth(pattern, depth);
  out.kept.resize(static_cast<std::size_t>(kept) * sizeof(T));
  out.index.resize(static_cast<std::size_t>(kept));
  unit::compress<T>(pattern, {&format, dense.data(), rows, depth, nullptr},
                    reinterpret_cast<T*>(out.kept.data()), out.index.data());
}

void compress_side(const unit::Pattern& pattern, const Format& format, const unit::Gather& gather,
                   const std::byte* source, std::int64_t rows, std::int64_t depth,
                   Compressed& out) {
  switch (container_bytes(format)) {
    case 1:
      return compress_rows(pattern, format, gather, reinterpret_cast<const std::uint8_t*>(source),
                           rows, depth, out);
    case 2:
      return compress_rows(pattern, format, gather, reinterpret_cast<const std::uint16_t*>(source),
                           rows, depth, out);
    default:
      return compress_rows(pattern, format, gather, reinterpret_cast<const float*>(source), rows,
                           depth, out);
  }
}

}  // namespace

void multiply_sparse(const unit::Unit& unit, const net::Product& p, Side sparse,
                     const net::SourceCodes& a, const net::SourceCodes& b,
                     const net::ProductRandom& random, const net::ProductResult& result) {
  net::require_stacks(p);
  const unit::Pattern pattern{unit.description()->sparsity, false};
  const bool left = sparse == Side::a;
  const net::ProductSide &kept_side = left ? p.a : p.b, &other_side = left ? p.b : p.a;
  const net::SourceCodes &kept_codes = left ? a : b, &other_codes = left ? b : a;
  const std::int64_t rows = left ? p.m : p.n, columns = left ? p.n : p.m;
  const auto reader = [](const net::ProductSide& side, const net::SourceCodes& source) {
    return net::StackReader(side.stack, side.stack.rows(side.source->size()),
                            side.stack.width * container_bytes(*source.format), source.codes);
  };
  net::StackReader kept_reader = reader(kept_side, kept_codes);
  net::StackReader other_reader = reader(other_side, other_codes);
  const auto gather = unit::Gather::matrix(rows, unit::kept_depth(pattern, p.k));
  const std::int64_t bytes = result.bytes, inner = p.d_stack.inner;
  std::vector<std::byte> d(static_cast<std::size_t>(rows * columns * bytes));
  auto* const out = static_cast<std::byte*>(result.d != nullptr ? result.d : p.d);
  Compressed compressed;
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    if (i == 0 || kept_side.stack.count() > 1) {
      try {
        unit::require_whole_groups(pattern, p.k);
        compress_side(pattern, *kept_codes.format, *kept_side.gather, kept_reader.at(i), rows, p.k,
                      compressed);
      } catch (const Error& error) {
        throw Error(
            fmt::format("layer {}, {}: the {} on unit {}: {}", p.layer, net::to_string(p.kind),
                        net::to_string(kept_side.role), unit.row().name, error.what()),
            error.kind());
      }
    }
    {
      const net::Section section(net::SectionKind::gemm, p.layer, net::to_string(p.kind),
                                 static_cast<double>(p.m * p.n) * static_cast<double>(p.k));
      unit.multiply({.m = rows,
                     .n = columns,
                     .k = p.k,
                     .a = {kept_codes.format, compressed.kept.data(), &gather},
                     .b = {other_codes.format, other_reader.at(i), other_side.gather},
                     .c = nullptr,
                     .d = d.data(),
                     .kept = compressed.index.data(),
                     .seed = random.seed,
                     .tensor = random.tensor + static_cast<std::uint32_t>(i)});
    }
    std::byte* const to = out + (i / inner * p.m * inner + i % inner) * p.n * bytes;
    net::for_each_row(p.m, p.n, [&](std::int64_t m) {
      std::byte* const line = to + m * inner * p.n * bytes;
      if (left) {
        std::memcpy(line, d.data() + m * columns * bytes, static_cast<std::size_t>(p.n * bytes));
        return;
      }
      for (std::int64_t n = 0; n < p.n; ++n)
        std::memcpy(line + n * bytes, d.data() + (n * columns + m) * bytes,
                    static_cast<std::size_t>(bytes));
    });
  }
}

}  // namespace numemu::policies
