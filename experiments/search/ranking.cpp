#include "experiments/search/ranking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "experiments/search/operands.hpp"
#include "formats/analysis/best_scale.hpp"
#include "formats/analysis/comparison.hpp"
#include "formats/analysis/distribution.hpp"
#include "formats/analysis/error_figures.hpp"
#include "formats/analysis/outcome_law.hpp"
#include "formats/analysis/scale_mse.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/random.hpp"
#include "formats/storage/npy.hpp"
#include "policies/numerics/stored_tensor.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::experiments {
namespace {

/// Samples that wait for an option that shares them: as many as there are largest mantissas of
/// elements, by which powers of two differ.
constexpr std::size_t kMostShared = 16;

/// A sample under some scales, for all options whose scales are multiples of them.
struct SharedSample {
  std::vector<double> scales;
  SampleMse mse;
};

/// By how much all of `scales` are larger than those of a shared sample; 0 where they differ by
/// more than a common factor.
double multiple_of(const std::vector<double>& shared, const std::vector<double>& scales) {
  const auto largest = std::ranges::max_element(shared);
  if (largest == shared.end() || !(*largest > 0)) return 0;
  const double factor = scales[static_cast<std::size_t>(largest - shared.begin())] / *largest;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const double expected = factor * shared[i];
    if (!(std::abs(scales[i] - expected) <= kSharedScales * expected)) return 0;
  }
  return factor;
}

class OperandErrors {
 public:
  OperandErrors(const SearchOperand& operand, const policies::CalibrationPolicy& calibration,
                const policies::FloatReference& reference)
      : operand_(operand), calibration_(calibration), reference_(reference) {}

  /// Of the options [first, last), which have one scaling.
  void add(const std::vector<SearchOption>& options, std::size_t first, std::size_t last,
           std::vector<double>& errors) const {
    const auto n = static_cast<std::int64_t>(operand_.sample.size());
    std::vector<SharedSample> shared;
    for (std::size_t o = first; o < last; ++o) {
      const policies::RolePolicy& policy = options[o].policy;
      SampleScales scales = sample_scales(policy, operand_, calibration_, reference_);
      const OutcomeLaw law = outcome_law(*policy.format, policy.rounding, Overflow::saturate);
      double factor = 0;
      const SharedSample* sample = nullptr;
      for (const SharedSample& one : shared) {
        factor = multiple_of(one.scales, scales.scales);
        if (factor > 0) sample = &one;
        if (sample != nullptr) break;
      }
      if (sample == nullptr) {
        const std::vector<double> each = expanded(scales, operand_.width(), n);
        if (shared.size() == kMostShared) shared.erase(shared.begin());
        shared.push_back(
            {std::move(scales.scales), SampleMse(operand_.sample.data(), each.data(), n)});
        sample = &shared.back();
        factor = 1;
      }
      errors[o] = sample->mse.at(law, factor);
    }
  }

 private:
  const SearchOperand& operand_;
  const policies::CalibrationPolicy& calibration_;
  const policies::FloatReference& reference_;
};

/// Options [first, last).
using Run = std::pair<std::size_t, std::size_t>;

/// Of one scaling each, without those that are searched.
std::vector<Run> runs_of(const std::vector<SearchOption>& options) {
  std::vector<Run> out;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i].searched) continue;
    if (out.empty() || out.back().second != i || options[i].scaling != options[i - 1].scaling)
      out.emplace_back(i, i);
    ++out.back().second;
  }
  return out;
}

/// At most, of options that are searched.
double searched_integrals(const std::vector<SearchOption>& options) {
  const auto searched =
      static_cast<std::size_t>(std::ranges::count(options, true, &SearchOption::searched));
  return kSearchedIntegrals * static_cast<double>(std::min(searched, kSearchedForms));
}

/// How the errors of options on some operands are found.
struct ErrorsOf {
  const std::vector<SearchOption>& options;
  std::vector<const SearchOperand*> operands;
  std::vector<double> gains;  ///< what noise of the operands is weighted by
  const policies::CalibrationPolicy& calibration;
  const policies::FloatReference& reference;
  std::string_view phase;  ///< of the work
  Work* work = nullptr;

  /// Fills in the errors of the runs on every operand.
  void integrate(const std::vector<Run>& runs, double integrals,
                 std::vector<std::vector<double>>& errors) const {
    const std::size_t tasks = operands.size() * runs.size();
    std::vector<std::exception_ptr> failures(tasks);
    const bool told = work != nullptr && integrals > 0;
    if (told) work->begin(phase, integrals * static_cast<double>(operands.size()));
    if (told && tasks == 0) work->skip();
#pragma omp parallel for schedule(dynamic)
    for (std::size_t t = 0; t < tasks; ++t) {
      const std::size_t i = t / runs.size();
      const auto& [first, last] = runs[t % runs.size()];
      try {
        OperandErrors(*operands[i], calibration, reference).add(options, first, last, errors[i]);
        if (told) work->add(1, static_cast<std::int64_t>(tasks));
      } catch (...) {
        failures[t] = std::current_exception();
      }
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  /// Of each operand; infinite where an option is not tried: only `useful` ones are searched.
  std::vector<std::vector<double>> all(const std::function<bool(std::size_t)>& useful) const {
    std::vector<std::vector<double>> errors(operands.size(),
                                            std::vector<double>(options.size(), HUGE_VAL));
    const double later = searched_integrals(options);
    integrate(runs_of(options), integrals_of(options) - later, errors);
    std::vector<double> noise(options.size(), HUGE_VAL);
    for (std::size_t o = 0; o < options.size(); ++o) {
      if (!useful(o)) continue;
      noise[o] = 0;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (!options[o].searched) noise[o] += gains[i] * errors[i][o];
    }
    std::vector<Run> chosen;
    for (const std::size_t o : chosen_forms(options, noise)) chosen.emplace_back(o, o + 1);
    integrate(chosen, later, errors);
    return errors;
  }
};

/// Of an operand under a policy, of one sample where it is an activation.
double stored(const policies::RolePolicy& policy, const SearchOperand& operand) {
  net::Shape shape = operand.tensor->shape;
  if (!operand.weight()) shape[0] = 1;
  // One static scale serves all samples.
  if (!operand.weight() && policy.block == nullptr &&
      policy.granularity == policies::Granularity::tensor)
    return policy.format->bits * static_cast<double>(net::element_count(shape));
  return policies::stored_bits(policy, shape);
}

double elements(const SearchOperand& operand) {
  return static_cast<double>(operand.tensor->size()) /
         static_cast<double>(operand.weight() ? 1 : operand.tensor->dim(0));
}

}  // namespace

double integrals_of(const std::vector<SearchOption>& options) {
  double sum = searched_integrals(options);
  for (const SearchOption& option : options) {
    const bool all_scales = option.policy.block != nullptr && option.policy.scale == "mse(exact)";
    if (!option.searched) sum += all_scales ? kSearchedIntegrals : 1;
  }
  return sum;
}

std::vector<std::size_t> chosen_forms(const std::vector<SearchOption>& options,
                                      const std::vector<double>& noise) {
  std::map<std::size_t, double> least;  // of a form
  for (std::size_t o = 0; o < options.size(); ++o) {
    if (options[o].searched || !std::isfinite(noise[o])) continue;
    const auto [form, added] = least.emplace(options[o].form, noise[o]);
    form->second = std::min(form->second, noise[o]);
  }
  std::vector<std::size_t> all, front, chosen;
  for (std::size_t o = 0; o < options.size(); ++o)
    if (options[o].searched && std::isfinite(noise[o]) && least.contains(options[o].form))
      all.push_back(o);
  const auto of = [&](std::size_t o) { return least.at(options[o].form); };
  std::ranges::stable_sort(
      all, {}, [&](std::size_t o) { return std::pair(stored_bits_of(options[o].policy), of(o)); });
  // As many numbers are the same where lines end before blocks do.
  std::set<std::pair<const Format*, double>> seen;
  std::erase_if(
      all, [&](std::size_t o) { return !seen.emplace(options[o].policy.format, of(o)).second; });
  for (const std::size_t o : all)
    if (front.empty() || of(o) < of(front.back())) front.push_back(o);
  std::ranges::stable_sort(all, {}, of);
  chosen = evenly(front, kSearchedForms / 2);
  for (const std::size_t o : all)
    if (chosen.size() < kSearchedForms && std::ranges::find(chosen, o) == chosen.end())
      chosen.push_back(o);
  return chosen;
}

std::vector<double> option_errors(const std::vector<SearchOption>& options,
                                  const SearchOperand& operand,
                                  const policies::CalibrationPolicy& calibration,
                                  const policies::FloatReference& reference, Work* work) {
  const ErrorsOf errors{options, {&operand}, {1}, calibration, reference, operand.gemm.name, work};
  return errors.all([](std::size_t) { return true; }).front();
}

RankedRole rank_options(std::vector<SearchOption> options, bool weight,
                        const std::vector<SearchOperand>& operands,
                        const std::vector<double>& gains,
                        const policies::CalibrationPolicy& calibration,
                        const policies::FloatReference& reference,
                        const std::function<bool(std::size_t, double)>& useful, Work* work) {
  std::vector<const SearchOperand*> own;
  std::vector<double> own_gains;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].weight() != weight) continue;
    own.push_back(&operands[i]);
    own_gains.push_back(gains[i]);
  }
  RankedRole out{std::move(options), {}};
  for (const SearchOption& option : out.options) {
    double bits = 0, count = 0;
    for (const SearchOperand* const operand : own) {
      if (!weight && operand->right) continue;
      bits += stored(option.policy, *operand);
      count += elements(*operand);
    }
    out.ranks.push_back({.bits = count > 0 ? bits / count : 0});
  }
  const ErrorsOf errors_of{out.options, own,       own_gains,
                           calibration, reference, weight ? "weights" : "activations",
                           work};
  const std::vector<std::vector<double>> errors =
      errors_of.all([&](std::size_t o) { return useful(o, out.ranks[o].bits); });
  std::set<std::tuple<const Format*, bool, double, std::vector<double>>> seen;
  for (std::size_t o = 0; o < out.options.size(); ++o) {
    RankedOption& ranked = out.ranks[o];
    std::vector<double> of_operands;
    for (std::size_t i = 0; i < own.size(); ++i) {
      ranked.noise += own_gains[i] * errors[i][o];
      of_operands.push_back(errors[i][o]);
    }
    const SearchOption& option = out.options[o];
    const bool tried = !option.searched || std::ranges::all_of(of_operands, [](double error) {
      return error < HUGE_VAL;
    });
    if (!tried) ranked.noise = HUGE_VAL;  // also where the gain is 0
    ranked.left_out = !tried || !seen.emplace(option.policy.format, option.policy.block != nullptr,
                                              ranked.bits, std::move(of_operands))
                                     .second;
  }
  return out;
}

namespace {

/// Options within the budget that no other one undercuts in noise, stored and element bits.
std::vector<std::size_t> role_front(const RankedRole& role,
                                    const std::vector<std::size_t>& within) {
  std::vector<std::size_t> out;
  for (const std::size_t i : within) {
    const auto at = [&](std::size_t o) {
      return std::tuple(role.ranks[o].noise, role.ranks[o].bits,
                        role.options[o].policy.format->bits);
    };
    const auto mine = at(i);
    const bool undercut = std::ranges::any_of(within, [&](std::size_t o) {
      const auto other = at(o);
      return std::get<0>(other) <= std::get<0>(mine) && std::get<1>(other) <= std::get<1>(mine) &&
             std::get<2>(other) <= std::get<2>(mine) && (other != mine || o < i);
    });
    if (!undercut) out.push_back(i);
  }
  return out;
}

/// Of the options that a unit takes (all where `taken` is empty).
std::vector<std::size_t> within_budget(const RankedRole& role, const std::vector<bool>& taken,
                                       const SearchBudget& budget) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < role.options.size(); ++i)
    if ((taken.empty() || taken[i]) && budget.allows(role.ranks[i].bits) &&
        std::isfinite(role.ranks[i].noise) && !role.ranks[i].left_out)
      out.push_back(i);
  return out;
}

Configured configured(const RankedSpace& space, std::size_t w, std::size_t a, std::size_t u) {
  const RankedUnit& unit = space.units[u];
  const SearchOption &weight = space.weights.options[w], &activation = space.activations.options[a];
  const RankedOption &left = space.weights.ranks[w], &right = space.activations.ranks[a];
  return {w,
          a,
          left.noise + right.noise + unit.noise_of(weight, activation),
          (left.bits + right.bits) / 2,
          multiply_add_cost(weight.policy.format->bits, activation.policy.format->bits,
                            unit.adder_bits),
          u};
}

auto key_of(const Configured& c) {
  return std::tuple(c.noise, c.bits, c.mac, c.unit, c.weight, c.activation);
}

/// Keeps the least `count` of what it is given.
class Least {
 public:
  explicit Least(std::size_t count) : count_(count) {}
  void add(const Configured& one) {
    if (count_ == 0 || !std::isfinite(one.noise)) return;
    if (kept_.size() == count_) {
      if (!less(one, kept_.front())) return;
      std::ranges::pop_heap(kept_, less);
      kept_.pop_back();
    }
    kept_.push_back(one);
    std::ranges::push_heap(kept_, less);
  }
  std::vector<Configured> sorted() && {
    std::ranges::sort_heap(kept_, less);
    return std::move(kept_);
  }

 private:
  static bool less(const Configured& x, const Configured& y) { return key_of(x) < key_of(y); }
  std::size_t count_;
  std::vector<Configured> kept_;
};

/// What no other one undercuts in bits with as little noise, the fewest bits first.
std::vector<Configured> front_of(std::vector<Configured> all) {
  std::ranges::sort(all, {}, [](const Configured& c) { return std::pair(c.bits, key_of(c)); });
  std::vector<Configured> out;
  for (const Configured& one : all)
    if (std::isfinite(one.noise) && (out.empty() || one.noise < out.back().noise))
      out.push_back(one);
  return out;
}

/// The fronts of units, but for what a configuration of another unit undercuts.
std::vector<Configured> common_front(const std::vector<Configured>& all) {
  std::vector<Configured> out;
  for (const Configured& one : all) {
    const bool undercut = std::ranges::any_of(all, [&](const Configured& other) {
      return other.unit != one.unit && other.bits <= one.bits && other.mac <= one.mac &&
             other.noise <= one.noise &&
             (std::tuple(other.bits, other.mac, other.noise) !=
                  std::tuple(one.bits, one.mac, one.noise) ||
              other.unit < one.unit);
    });
    if (!undercut) out.push_back(one);
  }
  std::ranges::stable_sort(out, {}, [](const Configured& c) { return std::pair(c.bits, c.mac); });
  return out;
}

/// Drawn evenly from all weights, activations and units, without repeats.
std::vector<Configured> drawn(const RankedSpace& space, const std::vector<std::size_t>& weights,
                              const std::vector<std::size_t>& activations,
                              const SearchBudget& budget, std::size_t draws, std::uint64_t seed) {
  constexpr std::uint64_t kTrials = 1000;  // for each draw, where few configurations are allowed
  const RandomSource random{.seed = seed, .stream = Stream::probe, .tensor = 0x72616e64, .draw = 0},
      units{.seed = seed, .stream = Stream::probe, .tensor = 0x756e6974, .draw = 0};
  std::vector<Configured> out;
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> seen;
  if (weights.empty() || activations.empty()) return out;
  for (std::uint64_t d = 0; d < kTrials * draws && out.size() < draws; ++d) {
    const auto pick = [](const RandomSource& from, std::uint64_t element, std::size_t size) {
      return static_cast<std::size_t>((std::uint64_t{from.bits(element, 32)} * size) >> 32);
    };
    const std::size_t w = weights[pick(random, 2 * d, weights.size())],
                      a = activations[pick(random, 2 * d + 1, activations.size())],
                      u = pick(units, d, space.units.size());
    if (!space.units[u].takes(w, a)) continue;
    const Configured one = configured(space, w, a, u);
    if (one.mac <= budget.mac && seen.emplace(w, a, u).second) out.push_back(one);
  }
  return out;
}

}  // namespace

SearchRanking rank_configurations(const RankedSpace& space, const SearchBudget& budget,
                                  std::size_t count, std::size_t draws, std::uint64_t seed) {
  SearchRanking out;
  Least best(count);
  std::vector<Configured> fronts;
  for (std::size_t u = 0; u < space.units.size(); ++u) {
    const RankedUnit& unit = space.units[u];
    const std::vector<std::size_t> w = within_budget(space.weights, unit.weights, budget),
                                   a = within_budget(space.activations, unit.activations, budget);
    for (const std::size_t i : w) {
      for (const std::size_t j : a) {
        const Configured one = configured(space, i, j, u);
        if (one.mac > budget.mac) continue;
        ++out.configurations;
        best.add(one);
      }
    }
    std::vector<Configured> pairs;
    for (const std::size_t i : role_front(space.weights, w)) {
      for (const std::size_t j : role_front(space.activations, a))
        if (const Configured one = configured(space, i, j, u); one.mac <= budget.mac)
          pairs.push_back(one);
    }
    const std::vector<Configured> front = front_of(std::move(pairs));
    fronts.insert(fronts.end(), front.begin(), front.end());
  }
  out.best = std::move(best).sorted();
  out.front = common_front(fronts);
  out.random = drawn(space, within_budget(space.weights, {}, budget),
                     within_budget(space.activations, {}, budget), budget, draws, seed);
  return out;
}
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

struct LloydLimit {
  double error = 0, sqnr_db = 0;
};

/// The least error of any quantizer with so many levels, whose law is known, and its SQNR under the
/// law itself: that of draws of heavy tails is another.
std::optional<LloydLimit> lloyd_limit(const std::string& law, int bits) {
  if (is_array(law)) return std::nullopt;
  try {
    const Format& levels = find_format(fmt::format("lloyd({},{})", law, 1 << bits));
    const Distribution whole = Distribution::parse(law, false);
    const double error =
        mean_square_error(outcome_law(levels, {}, Overflow::saturate), 1, whole.density());
    return LloydLimit{error, sqnr_db(whole.density().moments(-HUGE_VAL, HUGE_VAL).p2, error)};
  } catch (const Error&) {  // no such law has a closed form
    return std::nullopt;
  }
}

/// Half of the 95 % interval of an option's SQNR over draws. Nothing without blocks: the one scale
/// is that of the largest draw, which varies more than the errors under it.
std::string half_interval(const SearchOption& option, const SearchOperand& operand) {
  constexpr std::int64_t kParts = 32;
  const policies::RolePolicy& policy = option.policy;
  if (policy.block == nullptr) return "";
  const OutcomeLaw law = outcome_law(*policy.format, policy.rounding, Overflow::saturate);
  const auto n = static_cast<std::int64_t>(operand.sample.size());
  const std::vector<double> scales = expanded(
      sample_scales(policy, operand, policies::Recipe().calibration(), {}), operand.width(), n);
  return fmt::format(
      "+-{:.2f}", sqnr_half_interval(n, kParts, [&](std::int64_t first, std::int64_t count) {
        const SampleMse mse(operand.sample.data() + first, scales.data() + first, count);
        return SqnrSums{mse.signal(), mse.at(law, 1)};
      }));
}

}  // namespace

ResultTable law_table(const std::string& law, const std::vector<SearchOption>& options, double bits,
                      std::uint64_t seed, Work* work) {
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
      option_errors(all, operand, policies::Recipe().calibration(), {}, work);
  std::vector<std::size_t> order;
  std::set<std::tuple<const Format*, bool, double, double>> seen;  // the same numbers count once
  for (std::size_t i = 0; i < all.size(); ++i) {
    const policies::RolePolicy& policy = all[i].policy;
    if (errors[i] < HUGE_VAL &&
        seen.emplace(policy.format, policy.block != nullptr, bits_in(x, policy), errors[i]).second)
      order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return errors[i]; });
  const bool heavy =
      !is_array(law) && heavy_tails(Distribution::parse(law, false).density(), kLawDraws);
  ResultTable out{fmt::format("{}: the best of {} options of at most {:g} bits (rne, saturate){}",
                              law, order.size(), bits,
                              heavy ? ", of these draws: its tails are too heavy for so few" : ""),
                  {"option", "bits", "SQNR dB", "MSE"},
                  {}};
  const bool interval = !is_array(law) && !heavy;
  if (interval) out.header.insert(out.header.begin() + 3, "at 95 %");
  for (const std::size_t i : order) {
    if (out.rows.size() == kLawRows) break;
    out.rows.push_back({all[i].name, fmt::format("{:.3f}", bits_in(x, all[i].policy)),
                        fmt::format("{:.2f}", sqnr_db(signal, errors[i])),
                        fmt::format("{:.4g}", errors[i])});
    if (interval)
      out.rows.back().insert(out.rows.back().begin() + 3, half_interval(all[i], operand));
  }
  for (int width = static_cast<int>(std::min(bits, 8.0)); width >= 2; --width) {
    const std::optional<LloydLimit> limit = lloyd_limit(law, width);
    if (!limit) continue;
    out.rows.push_back({fmt::format("Lloyd-Max, {} levels (limit)", 1 << width),
                        fmt::format("{:.3f}", static_cast<double>(width)),
                        fmt::format("{:.2f}", limit->sqnr_db),
                        fmt::format("{:.4g}", limit->error)});
    if (interval) out.rows.back().insert(out.rows.back().begin() + 3, "");
  }
  return out;
}

}  // namespace numemu::experiments
