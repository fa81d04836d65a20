#include "experiments/predict/unit_errors.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "emu/net/product.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/unit.hpp"
#include "formats/portable/spread.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::experiments {
namespace {

constexpr std::int64_t kMostLines = 16;                        // of either operand, in one product
constexpr std::int64_t kMostProducts = std::int64_t{1} << 17;  // in one product, where K is long
/// Where sums come near a register's end, so many lines of the left operand and products in all are
/// looked at: the few sums that leave it lie in few lines.
constexpr std::int64_t kMostLooked = 1024;
constexpr std::int64_t kMostLookedProducts = std::int64_t{1} << 19;

/// The unit with operands and results of float32, so that it takes numbers that are not rounded.
/// Block scales are part of the numbers; operands that are quantized are in the unit's formats.
unit::UnitDescription on_float32(unit::UnitDescription u, bool quantized) {
  u.name = "float32-operands";  // not one of the catalogue's
  u.a = u.b = &float32();
  u.scaling = {};
  u.sparsity = {};
  if (quantized) u.input = {};
  if (const Format* const d = unit::result_format(u); d != nullptr && d->bits < 32) {
    u.d = &float32();
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

/// Some lines of a side of one matrix, one after the other.
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
               std::int64_t most, std::int64_t draw, const UnitErrors::Scales& scales, bool codes) {
  const float zero = codes ? static_cast<float>(scales.zero_point) : 0;
  const std::int64_t b = side.stack.count() == 1 ? 0 : matrix;
  const unit::Gather& gather = *side.gather;
  Lines out;
  out.depth = std::ssize(gather.depth);
  const std::int64_t count = std::min(rows, most);
  const auto for_each = [&](const float* source, const auto& visit) {
    net::StackReader read(side, source);
    const auto* const own = reinterpret_cast<const float*>(read.at(b));
    std::vector<float> padded;
    if (!gather.padding.identity()) {
      padded.resize(static_cast<std::size_t>(gather.padding.padded_size()));
      unit::pad(gather.padding, own, padded.data(), 0.0f);
    }
    const float* const elements = padded.empty() ? own : padded.data();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t row =
          gather.row[static_cast<std::size_t>(count == rows ? i : spread(i, draw, rows))];
      for (const std::int32_t k : gather.depth) visit(i, elements[row + k]);
    }
  };
  for_each(side.source->data.data(),
           [&](std::int64_t, float x) { out.numbers.push_back(x + zero); });
  out.scales.assign(static_cast<std::size_t>(count), scales.of_elements.empty() ? 1 : 0);
  if (scales.of_elements.empty()) return out;
  // The scale of a line is that of its elements; padding has none.
  for_each(scales.of_elements.data(), [&](std::int64_t i, float scale) {
    double& largest = out.scales[static_cast<std::size_t>(i)];
    largest = std::max(largest, double{scale});
  });
  return out;
}

using policies::wraps;

/// Saturates, or stops at its largest number.
bool stays_at_end(const unit::Register& r) { return policies::hides_overflow(r) && !wraps(r); }

/// A sum in a register that stops at its ends, without its rounding.
class Held {
 public:
  explicit Held(const unit::Register& r)
      : low_(-largest_of(r)),
        high_(r.format != nullptr ? -low_ : -low_ - std::ldexp(1.0, -r.fraction)) {}
  void add(double x) { sum_ = std::clamp(sum_ + x, low_, high_); }
  double value() const { return sum_; }
  bool at_end() const { return sum_ == low_ || sum_ == high_; }

 private:
  double low_, high_, sum_ = 0;
};

/// A sum of magnitudes that is this much smaller than a register's largest value comes nowhere
/// near.
constexpr double kFarFromEnds = 4;

/// An exact sum, and where its way led.
struct Path {
  double sum = 0;
  bool near = false;    ///< within a factor of two of a register's largest value, or beyond
  bool beyond = false;  ///< beyond it
  bool at_end = false;  ///< the result of a register that saturates is one of its ends
};

/// Ends count on the way, too, but where a register wraps: that leaves no trace. The sums of
/// `chunk` products each begin at 0 and end in `outer`.
Path path_of(const Lines& a, std::int64_t i, const Lines& b, std::int64_t j, std::int64_t chunk,
             const unit::Register& r, const unit::Register& outer) {
  const double most = largest_of(r), outer_most = largest_of(outer);
  const bool stops = stays_at_end(r) && stays_at_end(outer);
  Path path;
  double magnitudes = 0;  // no sum on the way is larger, but for the last digits of float64
  double part = 0;
  for (std::int64_t first = 0; first < a.depth; first += chunk) {
    for (std::int64_t k = first; k < std::min(a.depth, first + chunk); ++k) {
      const double product = double{a.at(i, k)} * b.at(j, k);
      part += product;
      magnitudes += std::fabs(product);
    }
    path.sum += std::exchange(part, 0);
  }
  if (kFarFromEnds * magnitudes < std::min(most, outer_most)) return path;
  path.sum = 0;
  Held inner(r), held(outer);
  const auto look = [&path](double sum, double end) {
    path.near = path.near || !(2 * std::fabs(sum) <= end);
    path.beyond = path.beyond || !(std::fabs(sum) <= end);
  };
  for (std::int64_t k = 0; k < a.depth; ++k) {
    const double product = double{a.at(i, k)} * b.at(j, k);
    part += product;
    inner.add(product);
    const bool end = k + 1 == a.depth, last = (k + 1) % chunk == 0 || end;
    if (last || !wraps(r)) look(part, most);
    if (!last) continue;
    path.sum += std::exchange(part, 0);
    held.add(std::exchange(inner, Held(r)).value());
    if (end || !wraps(outer)) look(path.sum, outer_most);
  }
  path.at_end = stops && held.at_end();
  return path;
}

/// The unit's results on float32 operands, m x n: of every `slice` of the depth, added in float32.
std::vector<double> results(const unit::Unit& unit, const Lines& a, const Lines& b,
                            std::uint64_t seed, std::int64_t slice) {
  const std::int64_t m = a.count(), n = b.count(), k = a.depth;
  unit::Gather ga = unit::Gather::matrix(m, k), gb = unit::Gather::matrix(n, k);
  const std::vector<std::int32_t> depth = ga.depth;
  std::vector<std::uint64_t> d(static_cast<std::size_t>(m * n));  // of any container
  std::vector<double> sums;
  for (std::int64_t first = 0; first < k; first += slice) {
    const std::int64_t width = std::min(slice, k - first);
    ga.depth.assign(depth.begin() + first, depth.begin() + first + width);
    gb.depth = ga.depth;
    unit.multiply({.m = m,
                   .n = n,
                   .k = width,
                   .a = {&float32(), a.numbers.data(), &ga, nullptr},
                   .b = {&float32(), b.numbers.data(), &gb, nullptr},
                   .c = nullptr,
                   .d = d.data(),
                   .seed = seed,
                   .tensor = static_cast<std::uint32_t>(first / slice)});
    const std::vector<double> part = unit::result_values(unit, d.data(), m * n);
    if (first == 0) {
      sums = part;
    } else {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(sums[i] + part[i]);
    }
  }
  return sums;
}

}  // namespace

struct UnitErrors::Layer {
  std::string name;                        ///< of the unit
  unit::UnitDescription own;               ///< as the recipe has it
  std::shared_ptr<unit::Unit> on_float32;  ///< null: an integer core
  bool approximates = false;
  std::int64_t slice = 0;  ///< of the depth, that one product sums; 0: all of it
};

bool unit_adds_noise(const std::string& unit) {
  return unit != "neutral.f32.sequential" && unit != "neutral.exact" && unit != "host.eigen.f32";
}

UnitErrors::UnitErrors(const policies::BoundRecipe& recipe) : seed_(recipe->seed()) {
  std::map<std::tuple<std::string, bool, std::int64_t>, Layer> made;
  for (const auto& [gemm, roles] : recipe.products()) {
    const unit::UnitDescription* const description = roles.fprop->description();
    if (description == nullptr || !unit_adds_noise(roles.fprop->row().name)) continue;
    const bool quantized =
        roles[policies::RolePart::activation] && roles.role(gemm.right, net::GemmKind::fprop);
    const std::optional<policies::RolePolicy>& left = roles[policies::RolePart::activation];
    const std::int64_t slice =
        left && policies::reads_slices(*roles.fprop, *left) ? left->block->size : 0;
    const auto [found, added] = made.try_emplace({roles.fprop->row().name, quantized, slice});
    Layer& layer = found->second;
    if (added) {
      layer.slice = slice;
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

void UnitErrors::Sample::add(const Sample& other) {
  outputs += other.outputs;
  looked += other.looked;
  beyond += other.beyond;
  at_end += other.at_end;
  squares += other.squares;
  overflows = overflows || other.overflows;
}

UnitErrors::Result UnitErrors::sample(const net::Product& p, const Scales& left,
                                      const Scales& right, std::int64_t draw) const {
  Result out;
  const auto found = layers_.find(p.layer);
  if (found == layers_.end() || p.m == 0 || p.n == 0 || p.k == 0) return out;
  const Layer& layer = found->second;
  const bool codes = unit::is_integer_core(layer.own);
  const std::int64_t matrix = spread(0, draw, p.d_stack.count());
  const auto affordable =
      static_cast<std::int64_t>(std::sqrt(static_cast<double>(kMostProducts / p.k)));
  const std::int64_t most = std::clamp<std::int64_t>(affordable, 2, kMostLines);
  const Lines a = lines_of(p.a, matrix, p.m, most, draw, left, codes),
              b = lines_of(p.b, matrix, p.n, most, draw, right, codes);
  const std::int64_t m = a.count(), n = b.count();
  // Chunks have sums of their own; all together make that of the register they end in.
  const std::int64_t slice = layer.slice != 0 ? layer.slice : p.k;
  const std::int64_t chunk = layer.own.outer.every != 0   ? layer.own.outer.every
                             : layer.own.chain.chunk != 0 ? layer.own.chain.chunk
                                                          : slice;
  const auto paths = [&](const Lines& rows, const auto& visit) {
    for (std::int64_t i = 0; i < rows.count(); ++i) {
      for (std::int64_t j = 0; j < n; ++j)
        visit(
            path_of(rows, i, b, j, chunk, layer.own.accumulator, unit::result_register(layer.own)));
    }
  };
  std::vector<double> exact;
  paths(a, [&](const Path& path) {
    out.sample.overflows = out.sample.overflows || path.near;
    out.sample.count(path.beyond, path.at_end);
    exact.push_back(path.sum);
  });
  out.sample.outputs = m * n;
  const std::int64_t rows = std::min(kMostLooked, kMostLookedProducts / (p.k * n));
  if (out.sample.overflows && rows > m && p.m > m) {
    const Lines more = lines_of(p.a, matrix, p.m, rows, draw, left, codes);
    out.sample.looked = out.sample.beyond = out.sample.at_end = 0;
    paths(more, [&](const Path& path) { out.sample.count(path.beyond, path.at_end); });
  }
  if (layer.on_float32 == nullptr) return out;
  const std::vector<double> own = results(*layer.on_float32, a, b, seed_, slice);
  for (std::int64_t i = 0; i < m * n; ++i) {
    const double scale = a.scales[i / n] * b.scales[i % n], error = (own[i] - exact[i]) * scale;
    out.errors.push_back({exact[i] * scale, error});
    out.sample.squares += error * error;
  }
  if (out.sample.squares == 0) out.errors.clear();
  std::ranges::sort(out.errors, {}, &ResultError::result);
  return out;
}

std::map<std::string, UnitError> UnitErrors::errors(
    const std::map<std::string, Sample>& samples) const {
  std::map<std::string, UnitError> out;
  for (const auto& [name, layer] : layers_) {
    UnitError& error = out[name];
    error.unit = layer.name;
    error.approximates = layer.approximates;
    error.words = policies::overflow_words(layer.own);
    const auto found = samples.find(name);
    if (found == samples.end() || found->second.outputs == 0) continue;
    const auto count = static_cast<double>(found->second.outputs);
    error.noise = found->second.squares / count;
    error.overflows = found->second.overflows;
    error.looked = found->second.looked;
    const auto looked = static_cast<double>(error.looked);
    error.overflow = static_cast<double>(found->second.beyond) / looked;
    error.at_end = static_cast<double>(found->second.at_end) / looked;
  }
  return out;
}

}  // namespace numemu::experiments
