// Every option of a role beside each other: its bits, and its noise at the output of the network by
// one integral for each tensor.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/engine/work.hpp"
#include "experiments/search/operands.hpp"
#include "experiments/search/space.hpp"

namespace numemu::experiments {

/// Scales that agree so far with a common multiple of others share their sorted sample. With scales
/// off by a share d each error moves by at most d |x|: the root mean square by d of the signal's.
inline constexpr double kSharedScales = 0x1p-22;

/// About `count` of a list, its ends among them.
template <class T>
std::vector<T> evenly(const std::vector<T>& all, std::size_t count) {
  if (all.size() <= count) return all;
  std::vector<T> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(all[i * (all.size() - 1) / std::max<std::size_t>(1, count - 1)]);
  return out;
}

/// Forms that are tried under a rule that searches (SearchOption::searched), and how many integrals
/// mse costs in blocks: 20 ms on 32,768 numbers in blocks of 16 with 4 bits.
inline constexpr std::size_t kSearchedForms = 32;
inline constexpr double kSearchedIntegrals = 32;
/// So many integrals all options cost on an operand.
double integrals_of(const std::vector<SearchOption>&);

/// Of the options that are searched those that are tried, by the least noise of their form under
/// the other rules: up to half along the front of stored bits, the rest those of least noise. Forms
/// of the same format and noise count once. Infinite noise of an option: it is not tried.
std::vector<std::size_t> chosen_forms(const std::vector<SearchOption>&,
                                      const std::vector<double>& noise);

/// Mean squared errors of options on the sample of one operand, in their order: each scaling sorts
/// the sample once, and every element format then costs a step per value. Those of samples of
/// infinite or NaN numbers are not numbers; those of options that are not tried are infinite.
/// Uses threads. `work` gets a phase, named after the operand's gemm, of integrals_of() them.
std::vector<double> option_errors(const std::vector<SearchOption>&, const SearchOperand&,
                                  const policies::CalibrationPolicy&,
                                  const policies::FloatReference&, Work* work = nullptr);

struct RankedOption {
  double noise = 0;  ///< of all operands of the role at the output, over its signal
  double bits = 0;   ///< stored bits of an element, with scales
  /// No configuration has it: an option before it has the same format, bits and errors on every
  /// operand, as where blocks are cut where channels end, or it was not tried (chosen_forms()).
  bool left_out = false;
};

/// A role's options, and what each is worth.
struct RankedRole {
  std::vector<SearchOption> options;
  std::vector<RankedOption> ranks;

  std::size_t distinct() const {
    return ranks.size() -
           static_cast<std::size_t>(std::ranges::count(ranks, true, &RankedOption::left_out));
  }
};
/// Activations of attention (keys, values) count as activations; bits are those of left operands,
/// of one sample. `gains` as output_gains() has them. `useful`: whether configurations may have an
/// option that stores so many bits; others are not tried under rules that search. Uses threads; the
/// same bits for any number of them.
RankedRole rank_options(std::vector<SearchOption>, bool weight, const std::vector<SearchOperand>&,
                        const std::vector<double>& gains, const policies::CalibrationPolicy&,
                        const policies::FloatReference&,
                        const std::function<bool(std::size_t option, double bits)>& useful,
                        Work* work = nullptr);

/// A configuration: an option of the weights with one of the activations, on a unit.
struct Configured {
  std::size_t weight = 0, activation = 0;
  double noise = 0, bits = 0, mac = 0;  ///< bits: the mean of both; mac: multiply_add_cost()
  std::size_t unit = 0;
};

/// All that configurations consist of.
struct RankedSpace {
  RankedRole weights, activations;
  std::vector<RankedUnit> units = {RankedUnit{}};
};

/// What a configuration may cost.
struct SearchBudget {
  double bits = 0;        ///< of the weights, and of the activations; compared to two decimals
  double mac = HUGE_VAL;  ///< multiply_add_cost()
  bool allows(double stored) const { return std::round(100 * stored) <= 100 * bits; }
};

/// Configurations by noise and bits, of which only those asked for are kept.
struct SearchRanking {
  std::int64_t configurations = 0;  ///< within the budget
  std::vector<Configured> best;     ///< least noise first, at most `count`
  /// Those of each unit that none of the same unit undercuts in bits with as little noise, but for
  /// those that another unit undercuts in bits, cost and noise; the fewest bits first.
  std::vector<Configured> front;
  std::vector<Configured> random;  ///< drawn evenly without repeats, at most `draws`
};
SearchRanking rank_configurations(const RankedSpace&, const SearchBudget&, std::size_t count,
                                  std::size_t draws, std::uint64_t seed);

/// Draws of a law.
inline constexpr std::int64_t kLawDraws = std::int64_t{1} << 17;
/// Rows of a table.
inline constexpr std::size_t kLawRows = 30;

/// The options that store at most `bits` bits, the least noise first: SQNR over draws of the law
/// (numbers of the .npy file), whose blocks are neighbours; without blocks one scale serves all.
/// Last, where it is known, the Lloyd-Max limit of each whole number of bits (lloyd(LAW,N)).
/// Throws Error naming law or file: an unknown law, one without variance, numbers that are not
/// finite or all zero. `work` as option_errors() has it.
ResultTable law_table(const std::string& law, const std::vector<SearchOption>& options, double bits,
                      std::uint64_t seed, Work* work = nullptr);

}  // namespace numemu::experiments
