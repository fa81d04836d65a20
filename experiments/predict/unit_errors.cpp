#include "experiments/predict/unit_errors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "emu/net/product.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/unit.hpp"
#include "experiments/predict/left_out.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::experiments {
namespace {

constexpr std::int64_t kMostLines = 16;                        // of either operand, in one product
constexpr std::int64_t kMostProducts = std::int64_t{1} << 18;  // in one product, where K is long

/// The unit with operands and results of float32, so that it takes numbers that are not rounded.
/// Block scales are part of the numbers; operands that are quantized are in the unit's formats.
unit::UnitDescription on_float32(unit::UnitDescription u, bool quantized) {
  u.name = "float32-operands";  // not one of the catalogue's
  u.a = u.b = &policies::float32();
  u.scaling = {};
  u.sparsity = {};
  if (quantized) u.input = {};
  if (const Format* const d = unit::result_format(u); d != nullptr && d->bits < 32) {
    u.d = &policies::float32();
    u.nan = unit::NanRule::canonical;
    u.nan_code = 0x7fc00000;
  }
  return u;
}

/// Whether a table holds the products of its codes.
bool multiplies_exactly(const unit::UnitDescription& u) {
  const auto value = [](const Format& f, std::int64_t code) {
    return f.is_signed && code >> (f.bits - 1) != 0 ? code - (std::int64_t{1} << f.bits) : code;
  };
  if (u.a->kind != Kind::integer || u.b->kind != Kind::integer) return false;
  for (std::int64_t i = 0; i < std::ssize(*u.products); ++i) {
    const std::int64_t a = i >> u.b->bits, b = i & ((std::int64_t{1} << u.b->bits) - 1);
    if ((*u.products)[static_cast<std::size_t>(i)] != value(*u.a, a) * value(*u.b, b)) return false;
  }
  return true;
}

double largest_of(const unit::Register& r) {
  return r.format != nullptr ? largest_value(*r.format) : std::ldexp(1.0, r.bits - 1 - r.fraction);
}

/// Numbers that a unit multiplies: codes of float32.
net::Tensor unscaled(const net::Tensor& x, const UnitErrors::Scales& scales, bool codes) {
  net::Tensor v = x;
  for (std::size_t i = 0; i < scales.of_elements.size(); ++i) {
    const float scale = scales.of_elements[i];
    v.data[i] = scale == 0 ? 0 : x.data[i] / scale;
  }
  if (codes && scales.zero_point != 0) {
    for (float& value : v.data) value += static_cast<float>(scales.zero_point);
  }
  return v;
}

/// Some lines of a side of one matrix, evenly spaced, one after the other.
struct Lines {
  std::vector<float> numbers;
  std::vector<double> scales;
  std::int64_t depth = 0;

  std::int64_t count() const { return std::ssize(scales); }
  float at(std::int64_t line, std::int64_t k) const {
    return numbers[static_cast<std::size_t>(line * depth + k)];
  }
};

Lines lines_of(const net::ProductSide& side, std::int64_t matrix, std::int64_t rows,
               std::int64_t most, const UnitErrors::Scales& scales, bool codes) {
  const net::Tensor numbers = unscaled(*side.source, scales, codes);
  const std::int64_t height = side.stack.rows(side.source->size());
  const std::int64_t bytes = side.stack.width * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t b = side.stack.count() == 1 ? 0 : matrix;
  const unit::Gather& gather = *side.gather;
  Lines out;
  out.depth = std::ssize(gather.depth);
  const std::int64_t count = std::min(rows, most);
  const auto for_each = [&](const float* source, const auto& visit) {
    net::StackReader read(side.stack, height, bytes, source);
    const auto* const own = reinterpret_cast<const float*>(read.at(b));
    std::vector<float> padded;
    if (!gather.padding.identity()) {
      padded.resize(static_cast<std::size_t>(gather.padding.padded_size()));
      unit::pad(gather.padding, own, padded.data(), 0.0f);
    }
    const float* const elements = padded.empty() ? own : padded.data();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t row = gather.row[static_cast<std::size_t>(i * rows / count)];
      for (const std::int32_t k : gather.depth) visit(i, elements[row + k]);
    }
  };
  for_each(numbers.data.data(), [&](std::int64_t, float x) { out.numbers.push_back(x); });
  out.scales.assign(static_cast<std::size_t>(count), scales.of_elements.empty() ? 1 : 0);
  if (scales.of_elements.empty()) return out;
  // The scale of a line is that of its elements; padding has none.
  for_each(scales.of_elements.data(), [&](std::int64_t i, float scale) {
    double& largest = out.scales[static_cast<std::size_t>(i)];
    largest = std::max(largest, double{scale});
  });
  return out;
}

bool wraps(const unit::Register& r) {
  return r.format == nullptr && r.integer == unit::IntegerOverflow::wrap;
}

/// Whether a register's sums come within a factor of two of its largest value, on the way, too, but
/// where it wraps: that leaves no trace. Those of `chunk` products each begin at 0 and end in
/// `outer`.
bool comes_near_end(const Lines& a, const Lines& b, std::int64_t chunk, const unit::Register& r,
                    const unit::Register& outer) {
  const double most = largest_of(r) / 2, outer_most = largest_of(outer) / 2;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    for (std::int64_t j = 0; j < b.count(); ++j) {
      double total = 0, sum = 0;
      for (std::int64_t k = 0; k < a.depth; ++k) {
        sum += double{a.at(i, k)} * b.at(j, k);
        const bool last = (k + 1) % chunk == 0 || k + 1 == a.depth;
        if ((last || !wraps(r)) && !(std::fabs(sum) <= most)) return true;
        if (!last) continue;
        total += std::exchange(sum, 0);
        if ((k + 1 == a.depth || !wraps(outer)) && !(std::fabs(total) <= outer_most)) return true;
      }
    }
  }
  return false;
}

}  // namespace

struct UnitErrors::Layer {
  std::string name;                        ///< of the unit
  unit::UnitDescription own;               ///< as the recipe has it
  std::shared_ptr<unit::Unit> on_float32;  ///< null: an integer core
  bool approximates = false, overflows = false;
  double squares = 0;
  std::int64_t outputs = 0;
};

UnitErrors::UnitErrors(const policies::BoundRecipe& recipe) : seed_(recipe->seed()) {
  std::map<std::pair<std::string, bool>, Layer> made;
  for (const auto& [gemm, roles] : recipe.products()) {
    const unit::UnitDescription* const description = roles.fprop->description();
    if (description == nullptr || !unit_is_ignored(roles.fprop->row().name)) continue;
    const bool quantized =
        roles[policies::RolePart::activation] && roles.role(gemm.right, net::GemmKind::fprop);
    const auto [found, added] = made.try_emplace({roles.fprop->row().name, quantized});
    Layer& layer = found->second;
    if (added) {
      layer.name = roles.fprop->row().name;
      layer.own = *description;
      if (!unit::is_integer_core(*description)) {
        layer.on_float32 = unit::make_unit(on_float32(*description, quantized));
      } else if (description->core == unit::CoreKind::table) {
        layer.approximates = !multiplies_exactly(*description);
      }
    }
    layers_[gemm.name] = layer;
  }
}

UnitErrors::~UnitErrors() = default;

bool UnitErrors::reads(std::string_view layer) const {
  return layers_.find(layer) != layers_.end();
}

void UnitErrors::add(const net::Product& p, const Scales& left, const Scales& right) {
  const auto found = layers_.find(p.layer);
  if (found == layers_.end() || p.m == 0 || p.n == 0 || p.k == 0) return;
  Layer& layer = found->second;
  const bool codes = unit::is_integer_core(layer.own);
  const std::int64_t middle = p.d_stack.count() / 2;
  const auto affordable =
      static_cast<std::int64_t>(std::sqrt(static_cast<double>(kMostProducts / p.k)));
  const std::int64_t most = std::clamp<std::int64_t>(affordable, 2, kMostLines);
  const Lines a = lines_of(p.a, middle, p.m, most, left, codes),
              b = lines_of(p.b, middle, p.n, most, right, codes);
  const std::int64_t m = a.count(), n = b.count();
  std::vector<float> exact(static_cast<std::size_t>(m * n)), own(exact.size());
  const unit::Gather ga = unit::Gather::matrix(m, p.k), gb = unit::Gather::matrix(n, p.k);
  const auto multiply = [&](const unit::Unit& unit, void* d) {
    unit.multiply({.m = m,
                   .n = n,
                   .k = p.k,
                   .a = {&policies::float32(), a.numbers.data(), &ga, nullptr},
                   .b = {&policies::float32(), b.numbers.data(), &gb, nullptr},
                   .c = nullptr,
                   .d = d,
                   .seed = seed_});
  };
  // Chunks have sums of their own; all together make that of the register they end in.
  const std::int64_t chunk = layer.own.outer.every != 0   ? layer.own.outer.every
                             : layer.own.chain.chunk != 0 ? layer.own.chain.chunk
                                                          : p.k;
  layer.overflows = layer.overflows || comes_near_end(a, b, chunk, layer.own.accumulator,
                                                      unit::result_register(layer.own));
  if (layer.on_float32 == nullptr) return;
  const bool fixed = layer.on_float32->d_format() == nullptr;
  if (const Format* const d = layer.on_float32->d_format(); d != nullptr && d->bits > 32) {
    std::vector<double> wide(exact.size());
    multiply(*layer.on_float32, wide.data());
    std::copy(wide.begin(), wide.end(), own.begin());
  } else {
    multiply(*layer.on_float32, own.data());
  }
  multiply(unit::find_unit("exact"), exact.data());
  for (std::int64_t i = 0; i < m * n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double result =
        fixed ? std::ldexp(static_cast<double>(std::bit_cast<std::int32_t>(own[at])),
                           -unit::result_register(layer.own).fraction)
              : own[at];
    const double error = (result - double{exact[at]}) * a.scales[static_cast<std::size_t>(i / n)] *
                         b.scales[static_cast<std::size_t>(i % n)];
    layer.squares += error * error;
  }
  layer.outputs += m * n;
}

std::map<std::string, UnitError> UnitErrors::errors() const {
  std::map<std::string, UnitError> out;
  for (const auto& [name, layer] : layers_) {
    out[name] = {layer.name,
                 layer.outputs > 0 ? layer.squares / static_cast<double>(layer.outputs) : 0,
                 layer.overflows, layer.approximates};
  }
  return out;
}

}  // namespace numemu::experiments
