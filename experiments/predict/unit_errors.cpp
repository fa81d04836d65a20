#include "experiments/predict/unit_errors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/product.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/unit.hpp"
#include "experiments/predict/left_out.hpp"
#include "policies/recipe/plain_operand.hpp"

namespace numemu::experiments {
namespace {

constexpr std::int64_t kMostLines = 16;                        // of either operand, in one product
constexpr std::int64_t kMostProducts = std::int64_t{1} << 18;  // in one product, where K is long
constexpr std::int64_t kMostChunks = 8;

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

/// Some lines of a side of one matrix, evenly spaced.
struct Lines {
  net::Tensor numbers;
  unit::Gather gather;
  std::vector<std::byte> matrix;
  std::vector<double> scales;

  unit::Operand operand(const unit::Gather& own) const {
    return {&policies::float32(), matrix.data(), &own, nullptr};
  }
};

Lines lines_of(const net::ProductSide& side, std::int64_t matrix, std::int64_t rows,
               std::int64_t most, const UnitErrors::Scales& scales, bool codes) {
  Lines out;
  out.numbers = unscaled(*side.source, scales, codes);
  const std::int64_t height = side.stack.rows(side.source->size());
  const std::int64_t bytes = side.stack.width * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t b = side.stack.count() == 1 ? 0 : matrix;
  net::StackReader read(side.stack, height, bytes, out.numbers.data.data());
  const std::byte* const from = read.at(b);
  out.matrix.assign(from, from + height * bytes);
  out.gather.padding = side.gather->padding;
  out.gather.depth = side.gather->depth;
  const std::int64_t count = std::min(rows, most);
  for (std::int64_t i = 0; i < count; ++i)
    out.gather.row.push_back(side.gather->row[static_cast<std::size_t>(i * rows / count)]);
  out.scales.assign(static_cast<std::size_t>(count), 1);
  if (scales.of_elements.empty()) return out;
  // The scale of a line is that of its elements; padding has none.
  net::StackReader read_scales(side.stack, height, bytes, scales.of_elements.data());
  const auto* const of_matrix = reinterpret_cast<const float*>(read_scales.at(b));
  std::vector<float> padded(static_cast<std::size_t>(out.gather.padding.padded_size()));
  const float* elements = of_matrix;
  if (!out.gather.padding.identity()) {
    unit::pad(out.gather.padding, of_matrix, padded.data(), 0.0f);
    elements = padded.data();
  }
  for (std::int64_t i = 0; i < count; ++i) {
    float largest = 0;
    for (const std::int32_t k : out.gather.depth)
      largest = std::max(largest, elements[out.gather.row[static_cast<std::size_t>(i)] + k]);
    out.scales[static_cast<std::size_t>(i)] = largest;
  }
  return out;
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

UnitErrors::UnitErrors(const policies::Recipe& recipe, const net::Graph& graph)
    : seed_(recipe.seed()) {
  std::map<std::pair<std::string, bool>, Layer> made;
  for (const net::GemmLayer& gemm : net::gemm_layers(graph)) {
    const policies::LayerRecipe roles = recipe.layer(gemm.name);
    const unit::UnitDescription* const description = roles.fprop->description();
    if (description == nullptr || !unit_is_ignored(roles.fprop->row().name)) continue;
    const bool quantized = roles.activation && roles.role(gemm.right, net::GemmKind::fprop);
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
  const std::int64_t m = std::ssize(a.scales), n = std::ssize(b.scales);
  std::vector<float> exact(static_cast<std::size_t>(m * n)), own(exact.size());
  const auto multiply = [&](const unit::Unit& unit, std::int64_t first, std::int64_t depth,
                            float* d) {
    unit::Gather ga = a.gather, gb = b.gather;
    for (unit::Gather* gather : {&ga, &gb})
      gather->depth.assign(gather->depth.begin() + first, gather->depth.begin() + first + depth);
    unit.multiply({.m = m,
                   .n = n,
                   .k = depth,
                   .a = a.operand(ga),
                   .b = b.operand(gb),
                   .c = nullptr,
                   .d = d,
                   .seed = seed_});
  };
  const auto check_range = [&](const unit::Register& r) {
    const double largest = largest_of(r);
    for (const float sum : exact)
      layer.overflows = layer.overflows || !(2 * std::fabs(double{sum}) <= largest);
  };
  const unit::Unit& exactly = unit::find_unit("exact");
  // Chunks have sums of their own; all together make that of the register they end in.
  const std::int64_t chunk =
      std::max<std::int64_t>(1, layer.own.outer.every != 0   ? layer.own.outer.every
                                : layer.own.chain.chunk != 0 ? layer.own.chain.chunk
                                                             : p.k);
  const std::int64_t chunks = (p.k + chunk - 1) / chunk, looked_at = std::min(chunks, kMostChunks);
  for (std::int64_t i = 0; i < looked_at && chunks > 1; ++i) {
    const std::int64_t first = i * chunks / looked_at * chunk;
    multiply(exactly, first, std::min(chunk, p.k - first), exact.data());
    check_range(layer.own.accumulator);
  }
  multiply(exactly, 0, p.k, exact.data());
  check_range(unit::result_register(layer.own));
  if (layer.on_float32 == nullptr) return;
  const bool fixed = layer.on_float32->d_format() == nullptr;
  if (const Format* const d = layer.on_float32->d_format(); d != nullptr && d->bits > 32) {
    std::vector<double> wide(exact.size());
    multiply(*layer.on_float32, 0, p.k, reinterpret_cast<float*>(wide.data()));
    std::copy(wide.begin(), wide.end(), own.begin());
  } else {
    multiply(*layer.on_float32, 0, p.k, own.data());
  }
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
