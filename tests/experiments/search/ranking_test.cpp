// Ranking: errors of options against the quantizer itself, pairs of options against all pairs.
#include "experiments/search/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/predict/tensor_noise.hpp"
#include "formats/random.hpp"
#include "policies/numerics/quantized_tensor.hpp"
#include "tests/catch.hpp"

namespace search_ranking_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

/// Roughly normal lines of different sizes.
net::Tensor bell(std::int64_t rows, std::int64_t columns) {
  const RandomSource random{.seed = 3, .stream = Stream::data};
  net::Tensor x({rows, columns});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    double sum = -3;
    for (int j = 0; j < 6; ++j) sum += random.uniform(6 * i + j);
    x.data[i] = static_cast<float>(0.1 * sum * (1 + i / columns % 5));
  }
  return x;
}

/// What the quantizer does to the tensor: mean of (element * scale - x)^2.
double quantized_error(const policies::RolePolicy& policy, const net::Tensor& x) {
  FitCache fits;
  TensorNoise noise =
      policy.block != nullptr
          ? predict_block_noise({"fc", net::Role::weight}, policy, x, x.shape.back(), fits)
          : predict_noise({"fc", net::Role::weight}, policy, x, policies::choose_scales(policy, x),
                          fits);
  measure_noise(noise, x, 0);
  return noise.measured_mse;
}

/// Noise and bits that are given; formats of as many element bits.
RankedRole role_of(const std::vector<RankedOption>& ranks,
                   const std::vector<const char*>& formats) {
  RankedRole role;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    SearchOption option;
    option.name = formats[i];
    option.policy.format = &find_format(formats[i]);
    role.options.push_back(option);
  }
  role.ranks = ranks;
  return role;
}

}  // namespace

TEST_CASE("errors of options are those of the quantizer, for every scaling", "[fast]") {
  const net::Tensor x = bell(24, 80);  // the last block of 32 is short
  SearchOperand operand{.gemm = {.name = "fc"}, .tensor = &x};
  take_sample(operand);
  REQUIRE(operand.sample.size() == x.data.size());
  const SpacePlan plan{.formats = {"int4", "int6", "e2m1", "e2m3", "e3m2", "e4m1+finite"},
                       .blocks = {16, 32}};
  const std::vector<SearchOption> options = space_of(plan, "weight");
  REQUIRE(options.size() > 100);
  double signal = 0;
  for (const float v : x.data) signal += double{v} * v / static_cast<double>(x.size());
  const std::vector<double> errors =
      option_errors(options, operand, policies::Recipe().calibration(), {});
  // 6 elements, 2 sizes, e8m0 and 5 scales of groups.
  CHECK(std::ranges::count(options, true, &SearchOption::searched) == 6 * 2 * 6);
  CHECK(std::ranges::count(errors, HUGE_VAL) == 6 * 2 * 6 - std::ptrdiff_t{kSearchedForms});
  for (std::size_t o = 0; o < options.size(); ++o) {
    if (options[o].searched && errors[o] == HUGE_VAL) continue;
    const double measured = quantized_error(options[o].policy, x);
    INFO(options[o].name << ": " << errors[o] << " of the quantizer " << measured);
    // Shared scales (ranking.hpp), and sums of at most 64 pieces (scale_mse.hpp).
    const double rms = kSharedScales * std::sqrt(signal);
    CHECK(std::abs(std::sqrt(errors[o]) - std::sqrt(measured)) <=
          rms + std::sqrt(64 * 0x1p-52 * signal));
  }
}

TEST_CASE("rules that search are tried on the best forms and along the front of bits", "[fast]") {
  // 100 forms under two rules, the second of which searches. Those of 8 bits have less noise than
  // those of 4, but for form 7, which is the best of all.
  const Format *const narrow = &find_format("int4"), *const wide = &find_format("int8");
  std::vector<SearchOption> options;
  std::vector<double> noise;
  for (std::size_t form = 0; form < 100; ++form) {
    for (const bool searched : {false, true}) {
      SearchOption option;
      option.form = form;
      option.searched = searched;
      option.policy.format = form < 30 ? narrow : wide;
      options.push_back(option);
      noise.push_back(searched ? 0.0 : form == 7 ? 0.5 : form < 30 ? 200.0 + form : 1.0 + form);
    }
  }
  CHECK(integrals_of(options) == 100 + kSearchedIntegrals * kSearchedForms);
  const auto forms = [&] {
    std::set<std::size_t> out;
    for (const std::size_t o : chosen_forms(options, noise)) {
      CHECK(options[o].searched);
      CHECK(out.insert(options[o].form).second);
    }
    CHECK(out.size() == kSearchedForms);
    return out;
  };
  // The front is form 7 alone; the rest are those of least noise.
  std::set<std::size_t> best = {7};
  for (std::size_t form = 30; best.size() < kSearchedForms; ++form) best.insert(form);
  CHECK(forms() == best);
  // A form of few bits on the front is tried, however many wide ones have less noise.
  noise[2 * 7] = 300;
  noise[0] = 150;
  best.erase(7);
  best.insert(0);
  CHECK(forms() == best);
  // What no configuration may have is not tried.
  noise[1] = HUGE_VAL;
  CHECK_FALSE(forms().contains(0));
  // Nor are the same numbers twice.
  noise[2 * 31] = noise[2 * 30];
  CHECK(forms().contains(30));
  CHECK_FALSE(forms().contains(31));
}

TEST_CASE("options that are not tried are no part of the ranking", "[fast]") {
  const net::Tensor x = bell(24, 80);
  SearchOperand operand{.gemm = {.name = "fc"}, .role = net::Role::weight, .tensor = &x};
  take_sample(operand);
  const SpacePlan plan{.formats = {"int3", "int4", "e2m1"}, .blocks = {8, 16, 32}};
  const std::vector<SearchOption> options = space_of(plan, "weight");
  const auto searched = std::ranges::count(options, true, &SearchOption::searched);
  REQUIRE(searched == 3 * 3 * 6);
  const auto role = [&](double most) {
    return rank_options(options, true, {operand}, {1.0}, policies::Recipe().calibration(), {},
                        [=](std::size_t, double bits) { return bits <= most; });
  };
  const auto tried = [](const RankedRole& ranked) {
    std::size_t count = 0;
    for (std::size_t o = 0; o < ranked.options.size(); ++o) {
      CHECK((ranked.ranks[o].noise < HUGE_VAL || ranked.ranks[o].left_out));
      count += ranked.options[o].searched && ranked.ranks[o].noise < HUGE_VAL;
    }
    return count;
  };
  const RankedRole all = role(8);
  CHECK(tried(all) == kSearchedForms);
  CHECK(all.distinct() <= options.size() - (static_cast<std::size_t>(searched) - kSearchedForms));
  const RankedRole few = role(4);
  for (std::size_t o = 0; o < options.size(); ++o)
    if (few.options[o].searched && few.ranks[o].bits > 4) CHECK(few.ranks[o].noise == HUGE_VAL);
  CHECK(tried(few) > 0);
}

TEST_CASE("configurations: the best, the front and the draws are those of all pairs", "[fast]") {
  const RankedRole weights = role_of({{4, 2}, {1, 4}, {0.5, 4.01}, {0.9, 4.5}, {0.1, 8}},
                                     {"int2", "int4", "int4", "int4", "int8"});
  const RankedRole activations = role_of({{3, 2}, {1, 4}, {2, 4}}, {"int2", "int4", "e2m1"});
  const SearchBudget budget{.bits = 4.01};
  const SearchRanking ranking = rank_configurations({weights, activations}, budget, 4, 100, 1);
  CHECK(ranking.configurations == 9);
  std::vector<Configured> all;
  for (std::size_t w = 0; w < 3; ++w)
    for (std::size_t a = 0; a < 3; ++a)
      all.push_back({w, a, weights.ranks[w].noise + activations.ranks[a].noise,
                     (weights.ranks[w].bits + activations.ranks[a].bits) / 2});
  std::ranges::stable_sort(all, {}, &Configured::noise);
  REQUIRE(ranking.best.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(ranking.best[i].noise == all[i].noise);
  REQUIRE(ranking.front.size() >= 2);
  for (const Configured& c : all) {
    const bool undercut = std::ranges::any_of(all, [&](const Configured& o) {
      return (o.noise <= c.noise && o.bits < c.bits) || (o.noise < c.noise && o.bits <= c.bits);
    });
    const bool listed = std::ranges::any_of(
        ranking.front, [&](const Configured& o) { return o.noise == c.noise && o.bits == c.bits; });
    CHECK(listed == !undercut);
  }
  std::set<std::pair<std::size_t, std::size_t>> drawn;
  for (const Configured& c : ranking.random) drawn.emplace(c.weight, c.activation);
  CHECK(drawn.size() == ranking.random.size());
  CHECK(drawn.size() == 9);  // more draws than pairs: each once
}

TEST_CASE("a budget of multiply-adds bounds bits times bits and the adders' bits", "[fast]") {
  const RankedRole role = role_of({{4, 2}, {1, 4}, {0.1, 8}}, {"int2", "int4", "int8"});
  const double most = multiply_add_cost(4, 4, 32);
  CHECK(most == (16.0 + 32) / (1024 + 32));
  const SearchRanking ranking =
      rank_configurations({role, role}, {.bits = 8, .mac = most}, 10, 0, 0);
  CHECK(ranking.configurations == 6);  // 2x2, 2x4, 4x2, 4x4, 2x8, 8x2
  for (const Configured& c : ranking.best) CHECK(c.mac <= most);
  CHECK(ranking.best.front().noise == 2);
}

TEST_CASE("units: their noise, cost and operands are part of configurations", "[fast]") {
  RankedSpace space{role_of({{4, 2}, {1, 4}, {0.1, 8}}, {"int2", "int4", "int8"}),
                    role_of({{4, 2}, {1, 4}, {0.1, 8}}, {"int2", "int4", "int8"}),
                    {{.name = "wide", .adder_bits = 32},
                     {.name = "narrow", .adder_bits = 12, .noise = {{0, 0.5}}},
                     {.name = "useless", .adder_bits = 40, .noise = {{0, 0.5}}},
                     {.name = "picky",
                      .adder_bits = 8,
                      .weights = {false, true, false},
                      .activations = {false, true, true},
                      // int4 reaches 2^2, int8 2^6.
                      .any_size = false,
                      .noise = {{4, 0.25}, {8, HUGE_VAL}}}}};
  const SearchRanking ranking = rank_configurations(space, {.bits = 8}, 100, 40, 7);
  CHECK(ranking.configurations == 3 * 9 + 2);
  CHECK(ranking.best.size() == 3 * 9 + 1);  // without the one that overflows
  CHECK(ranking.best.front().unit == 0);
  CHECK(ranking.best.front().noise == 0.2);
  for (const Configured& c : ranking.best) {
    const RankedUnit& unit = space.units[c.unit];
    const double operands =
        space.weights.ranks[c.weight].noise + space.activations.ranks[c.activation].noise;
    CHECK(c.noise == operands + (c.unit == 0 ? 0 : c.unit == 3 ? 0.25 : 0.5));
    CHECK(c.mac == multiply_add_cost(space.weights.options[c.weight].policy.format->bits,
                                     space.activations.options[c.activation].policy.format->bits,
                                     unit.adder_bits));
    if (c.unit == 3) CHECK((c.weight == 1 && c.activation == 1));
  }
  std::set<std::size_t> on_front;
  for (const Configured& c : ranking.front) on_front.insert(c.unit);
  CHECK(on_front == std::set<std::size_t>{0, 1, 3});
  std::set<std::size_t> drawn;
  for (const Configured& c : ranking.random) drawn.insert(c.unit);
  CHECK(ranking.random.size() == 29);  // all there are
  CHECK(drawn == std::set<std::size_t>{0, 1, 2, 3});
}

}  // namespace search_ranking_test
