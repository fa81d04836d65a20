#include "policies/numerics/operands/operand_scales.hpp"

#include <utility>

#include "emu/net/memory_plan.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::policies {
namespace {

using Kind = OperandScales::Kind;

/// Both sides' scales as numbers for one line of D.
struct LineScale {
  float of_line = 1;
  const float* of_column = nullptr;  ///< null: 1
};

LineScale of_line(const OperandScales& s, const net::Product& p, std::int64_t line) {
  if (s.none()) return {};
  if (s.kind == Kind::one) return {s.values[0], nullptr};
  if (s.kind == Kind::line) return {s.values[line], nullptr};
  const std::int64_t inner = p.d_stack.inner, outer = line / (p.m * inner);
  const std::int64_t matrix = s.matrices == 1 ? 0 : outer * inner + line % inner;
  const std::int64_t width = static_cast<std::int64_t>(s.values.size()) / s.matrices;
  if (width == 1) return {s.values[matrix], nullptr};
  return {1, s.values.data() + matrix * width};
}

[[noreturn]] void refuse(const net::Product& p, const char* what, const std::string& why) {
  throw Error("layer " + std::string(p.layer) + ", " + std::string(net::to_string(p.kind)) + ": " +
              what + " " + why);
}

}  // namespace

void apply_scales(const net::Product& p, const OperandScales& a, const OperandScales& b) {
  if (a.none() && b.none()) return;
  net::for_each_row(p.d_stack.count() * p.m, p.n, [&](std::int64_t line) {
    const LineScale sa = of_line(a, p, line), sb = of_line(b, p, line);
    float* const d = p.d + line * p.n;
    if (sb.of_column == nullptr) {
      const float alpha = sa.of_line * sb.of_line;
#pragma omp simd
      for (std::int64_t j = 0; j < p.n; ++j) d[j] *= alpha;
    } else {
#pragma omp simd
      for (std::int64_t j = 0; j < p.n; ++j) d[j] *= sa.of_line * sb.of_column[j];
    }
  });
}

bool reads_whole_lines(const net::Product& p, const net::ProductSide& side) {
  const std::int64_t width = side.stack.width, rows = side.stack.rows(side.source->size());
  const unit::Gather& gather = *side.gather;
  bool whole = gather.padding.identity() && p.k == (side.along_rows ? rows : width);
  for (std::int64_t k = 0; whole && k < p.k; ++k)
    whole = gather.depth[k] == (side.along_rows ? k * width : k);
  return whole;
}

OperandScales row_scales(const net::Product& p, net::Side which, std::vector<float> scales,
                         const char* what) {
  const net::ProductSide& side = p.side(which);
  const unit::Gather& gather = *side.gather;
  const std::int64_t width = side.stack.width, rows = side.stack.rows(side.source->size());
  if (side.along_rows || !reads_whole_lines(p, side)) {
    refuse(p, what,
           "'row': expected an operand whose rows are those of its tensor, as those of linear "
           "layers are in fprop and dgrad");
  }
  const bool left = which == net::Side::a;
  const std::int64_t count = p.d_stack.count();
  const std::int64_t operand_rows = p.rows(which);
  const bool shared = side.stack.count() == 1;
  OperandScales result;
  result.kind = left ? Kind::line : Kind::column;
  result.matrices = left || shared ? 1 : count;
  result.values.resize(static_cast<std::size_t>((left || !shared ? count : 1) * operand_rows));
  for (std::int64_t b = 0; b < (left || !shared ? count : 1); ++b) {
    for (std::int64_t r = 0; r < operand_rows; ++r) {
      const std::int64_t row = gather.row[r] / width;
      // The matrices of the source may lie otherwise than those of D: the heads of scores.
      const std::int64_t line = shared ? row : side.stack.row(b, row, rows);
      result.values[left ? p.d_stack.row(b, r, operand_rows) : b * operand_rows + r] = scales[line];
    }
  }
  return result;
}

OperandScales channel_scales(const net::Product& p, net::Side which, std::vector<float> scales,
                             const char* what) {
  const net::ProductSide& side = p.side(which);
  const net::Stack& stack = side.stack;
  const auto channels = static_cast<std::int64_t>(scales.size());
  if (which != net::Side::b || p.kind != net::GemmKind::fprop || side.along_rows ||
      stack.inner != 1 || channels != stack.outer * p.n)
    refuse(p, what, "'channel': expected the weights of a forward product, one row per channel");
  return {Kind::column, std::move(scales), stack.outer};
}

OperandScales sample_scales(const net::Product& p, const std::vector<float>& scales) {
  if (scales.size() == 1) return {Kind::one, scales};
  const std::int64_t lines = p.d_stack.count() * p.m;
  const std::int64_t share = lines / static_cast<std::int64_t>(scales.size());
  OperandScales result{Kind::line, std::vector<float>(static_cast<std::size_t>(lines))};
  for (std::int64_t l = 0; l < lines; ++l) result.values[l] = scales[l / share];
  return result;
}

std::int64_t separable_samples(const net::Product& p, net::Side which, bool one_sample) {
  const net::ProductSide& side = p.side(which);
  if (one_sample || side.source->shape.empty()) return 1;
  const std::int64_t samples = side.source->dim(0);
  if (samples < 1 || p.d_stack.outer * p.m % samples != 0) return 1;
  // The rows of one matrix belong to several samples only where they are rows of D too.
  const bool own_matrices = side.stack.outer % samples == 0;
  const bool own_rows = which == net::Side::a && !side.along_rows && side.stack.outer == 1 &&
                        side.stack.rows(side.source->size()) % samples == 0;
  return own_matrices || own_rows ? samples : 1;
}

bool takes_one_sample(const net::Graph& graph) {
  try {
    net::value_shapes(graph, net::batch_shapes(graph, 2));
  } catch (const Error&) {  // a reshape to the sizes of one sample
    return true;
  }
  return false;
}

}  // namespace numemu::policies
