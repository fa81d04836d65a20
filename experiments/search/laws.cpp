#include "experiments/search/laws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include "experiments/search/operands.hpp"
#include "experiments/search/ranking.hpp"
#include "formats/analysis/best_scale.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/sample_mse.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/npy.hpp"
#include "policies/numerics/stored_tensor.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {
namespace {

double sqnr_db(double signal, double error) {
  return error > 0 ? 10 * portable::log10(signal / error) : HUGE_VAL;
}

bool is_array(const std::string& law) { return law.ends_with(".npy"); }

net::Tensor numbers_of(const std::string& law, std::uint64_t seed) {
  if (!is_array(law)) {
    const Distribution d = Distribution::parse(law, false);
    net::Tensor x({1, kLawDraws});
    const RandomSource random{.seed = seed, .stream = Stream::data};
    for (std::int64_t i = 0; i < kLawDraws; ++i)
      x.data[i] = static_cast<float>(d.draw(random, static_cast<std::uint64_t>(i)));
    return x;
  }
  const Array array = read_npy(law);
  if (array.type != ArrayType::float32 || array.elements() == 0 || array.shape.empty())
    throw Error(fmt::format("{}: {} {}, expected float32 numbers along one axis or more", law,
                            to_string(array.type), shape_text(array.shape)));
  const std::int64_t width = array.shape.back();
  net::Tensor x({array.elements() / width, width});
  std::copy_n(array.as<float>(), array.elements(), x.data.begin());
  return x;
}

/// Stored bits of an element: blocks end with the lines.
double bits_in(const net::Tensor& x, const policies::RolePolicy& policy) {
  return policies::stored_bits(policy, x.shape) / static_cast<double>(x.size());
}

/// The least error of any quantizer with so many levels, whose law is known.
std::optional<double> lloyd_error(const std::string& law, int bits) {
  if (is_array(law)) return std::nullopt;
  try {
    const Format& levels = find_format(fmt::format("lloyd({},{})", law, 1 << bits));
    return mean_square_error(outcome_law(levels, {}, Overflow::saturate), 1,
                             Distribution::parse(law, false).density());
  } catch (const Error&) {  // no such law has a closed form
    return std::nullopt;
  }
}

}  // namespace

ResultTable law_table(const std::string& law, const std::vector<SearchOption>& options, double bits,
                      std::uint64_t seed) {
  const net::Tensor x = numbers_of(law, seed);
  SearchOperand operand{.gemm = {.name = law}, .tensor = &x};
  take_sample(operand, std::max(kLawDraws, kSampleElements));
  std::vector<double> numbers(operand.sample.begin(), operand.sample.end());
  if (!std::ranges::all_of(numbers, [](double v) { return std::isfinite(v); }))
    throw Error(law + ": expected finite numbers");
  double signal = 0;
  for (const double v : numbers) signal += v * v / static_cast<double>(numbers.size());
  if (std::ranges::count(numbers, numbers.front()) == std::ssize(numbers))
    throw Error(fmt::format("{}: expected numbers that differ, found {} times {:g}", law,
                            numbers.size(), numbers.front()));

  std::vector<SearchOption> all;
  for (const SearchOption& option : options) {
    const policies::RolePolicy& policy = option.policy;
    // One line has one channel.
    if (policy.granularity == policies::Granularity::channel) continue;
    if (SearchBudget{.bits = bits}.allows(bits_in(x, policy))) all.push_back(option);
  }
  if (all.empty())
    throw usage_error(fmt::format("--bits: no format stores at most {:g} bits", bits));
  const std::vector<double> errors =
      option_errors(all, operand, policies::Recipe().calibration(), {});
  std::vector<std::size_t> order;
  std::set<std::tuple<const Format*, bool, double, double>> seen;  // the same numbers count once
  for (std::size_t i = 0; i < all.size(); ++i) {
    const policies::RolePolicy& policy = all[i].policy;
    if (seen.emplace(policy.format, policy.block != nullptr, bits_in(x, policy), errors[i]).second)
      order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return errors[i]; });
  ResultTable out{fmt::format("{}: the best of {} options of at most {:g} bits (rne, saturate)",
                              law, order.size(), bits),
                  {"option", "bits", "SQNR dB", "MSE"},
                  {}};
  for (const std::size_t i : order) {
    if (out.rows.size() == kLawRows) break;
    out.rows.push_back({all[i].name, fmt::format("{:.3f}", bits_in(x, all[i].policy)),
                        fmt::format("{:.2f}", sqnr_db(signal, errors[i])),
                        fmt::format("{:.4g}", errors[i])});
  }
  for (int width = static_cast<int>(std::min(bits, 8.0)); width >= 2; --width) {
    const std::optional<double> error = lloyd_error(law, width);
    if (!error) continue;
    out.rows.push_back({fmt::format("Lloyd-Max, {} levels (limit)", 1 << width),
                        fmt::format("{:.3f}", static_cast<double>(width)),
                        fmt::format("{:.2f}", sqnr_db(signal, *error)),
                        fmt::format("{:.4g}", *error)});
  }
  return out;
}

}  // namespace numemu::experiments
