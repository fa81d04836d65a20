// Invariants of every unit: order inside a step, powers of two, chained K.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/random_batch.hpp"

namespace numemu::oracle::mma::metamorphic_test {
namespace {

using unit::CoreKind;
using unit::IntegerOverflow;
using unit::Scaling;
using unit::StepOrder;
using unit::Unit;
using unit::UnitDescription;

constexpr std::int64_t kRows = 3, kColumns = 5;

bool wraps(const UnitDescription& u) {
  return u.accumulator.format == nullptr && u.accumulator.integer == IntegerOverflow::wrap;
}

bool dense(const Unit* unit) {
  return unit->description() != nullptr && unit->description()->sparsity.dense();
}

/// Every dense unit with its dense modifiers.
std::vector<const Unit*> described_units() {
  std::vector<const Unit*> units;
  for (const Unit* base : unit::all_units()) {
    if (base->description() == nullptr) continue;
    for (const Unit* unit : unit::with_modifiers(*base))
      if (dense(unit)) units.push_back(unit);
  }
  return units;
}

/// Two instructions, or as many products where an instruction has no length.
std::int64_t depth_of(const UnitDescription& u) {
  if (u.k > 0) return 2 * u.k;
  return std::max({64, 4 * u.group, 2 * u.chain.chunk, 2 * u.scaling.block});
}

/// Products with the same number may change places. Empty: none may.
std::vector<std::int64_t> interchangeable(const UnitDescription& u, std::int64_t depth) {
  const bool associative =
      u.core == CoreKind::fused || u.core == CoreKind::exact || u.core == CoreKind::xnor ||
      (u.core == CoreKind::integer && u.accumulator.integer != IntegerOverflow::saturate_each);
  if (!associative) return {};
  const std::int64_t whole = u.k > 0 ? u.k : depth, step = u.group > 0 ? u.group : whole;
  std::vector<std::int64_t> set(static_cast<std::size_t>(depth));
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int64_t half = u.order == StepOrder::pairs_mod4 ? k / u.k * 2 + k % 4 / 2 : k / step;
    const std::int64_t scale = u.scaling.block > 0 ? k / u.scaling.block : 0;
    // FP4: the 16 products that are added exactly before they are scaled.
    const std::int64_t exact = u.scaling.point == Scaling::Point::groups ? k / 16 : 0;
    const std::int64_t part = k % u.alignment.parts;
    set[static_cast<std::size_t>(k)] = ((half * depth + scale) * depth + exact) * depth + part;
  }
  return set;
}

/// An order of the columns in which only members of one set change places, and each set of several
/// is out of order.
std::vector<std::int64_t> shuffled(const std::vector<std::int64_t>& set, Words& w) {
  std::map<std::int64_t, std::vector<std::int64_t>> members;
  for (std::size_t k = 0; k < set.size(); ++k)
    members[set[k]].push_back(static_cast<std::int64_t>(k));
  std::vector<std::int64_t> from(set.size());
  for (const auto& [number, places] : members) {
    std::vector<std::int64_t> order = places;
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[w.below(static_cast<std::uint32_t>(i))]);
    if (order == places) std::rotate(order.begin(), order.begin() + 1, order.end());
    for (std::size_t i = 0; i < places.size(); ++i)
      from[static_cast<std::size_t>(places[i])] = order[i];
  }
  return from;
}

/// The columns of A and of B in another order.
void rearrange_columns(Batch& batch, const std::vector<std::int64_t>& from) {
  const auto rearrange = [&](std::string& bytes, std::int64_t rows, const Format* format) {
    const std::string before = bytes;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t k = 0; k < batch.k; ++k)
        set_code(bytes, r * batch.k + k, format,
                 get_code(before, r * batch.k + from[static_cast<std::size_t>(k)], format));
  };
  rearrange(batch.a, batch.m, batch.a_format);
  rearrange(batch.b, batch.n, batch.b_format);
}

/// Products after which the register alone carries on; nothing where it does not.
std::optional<std::int64_t> boundary(const Unit& unit) {
  const UnitDescription& u = *unit.description();
  if (unit.c_format() != unit.d_format() || u.chain.kahan) return std::nullopt;
  std::int64_t step = u.group;
  if (u.core == CoreKind::chain)
    step = u.chain.chunk > 0 ? u.chain.chunk : u.order == StepOrder::odd_first ? 2 : 1;
  const bool whole = u.c_entry == unit::CEntry::after_rounding || u.chain.chains > 1 ||
                     u.order == StepOrder::pairs_mod4 || step == 0;
  if (whole) step = u.k;
  if (step == 0 && (wraps(u) || u.core == CoreKind::xnor)) step = 1;
  if (step == 0) return std::nullopt;
  return u.scaling.block > 0 ? std::lcm(step, std::int64_t{u.scaling.block}) : step;
}

/// Columns [first, first + count) of an array of rows x total elements of `width` bytes.
std::string columns(const std::string& bytes, std::int64_t total, std::int64_t first,
                    std::int64_t count, std::int64_t width) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(total * width))
    out.append(bytes, at + static_cast<std::size_t>(first * width),
               static_cast<std::size_t>(count * width));
  return out;
}

Batch slice(const Batch& whole, std::int64_t first, std::int64_t count, std::int64_t block) {
  Batch part = whole;
  part.k = count;
  part.a = columns(whole.a, whole.k, first, count, width_of(whole.a_format));
  part.b = columns(whole.b, whole.k, first, count, width_of(whole.b_format));
  if (block > 0) {
    const auto blocks = [&](std::int64_t k) { return (k + block - 1) / block; };
    part.scale_a = columns(whole.scale_a, blocks(whole.k), first / block, blocks(count), 1);
    part.scale_b = columns(whole.scale_b, blocks(whole.k), first / block, blocks(count), 1);
  }
  return part;
}

/// What holds for a unit, if it applies.
using Check = std::optional<bool> (*)(const Unit&, Way, Words&);

struct Outcome {
  std::int64_t checked = 0, skipped = 0;
  std::string failed;
};

/// The check with that many products, up to the first that fails.
Outcome run_check(const Unit& unit, Way way, std::uint64_t repetitions, Check check) {
  Outcome outcome;
  const std::string name = "\n" + unit.row().name + " (" + to_string(way) + ")";
  try {
    for (std::uint64_t seed = 1; seed <= repetitions; ++seed) {
      Words words(seed);
      const std::optional<bool> right = check(unit, way, words);
      if (!right.has_value()) return Outcome{0, 1, ""};
      ++outcome.checked;
      if (!*right) return Outcome{outcome.checked, 0, name};
    }
  } catch (const Error& error) {
    outcome.failed = name + ": " + error.what();
  }
  return outcome;
}

/// Runs a check on every unit both ways and names the units that fail. Threads take whole units.
void over_all_units(std::uint64_t repetitions, Check check) {
  const auto units = described_units();
  std::vector<Outcome> outcomes(2 * units.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    outcomes[i] =
        run_check(*units[i / 2], i % 2 == 0 ? Way::reference : Way::fast, repetitions, check);
  Outcome all;
  for (const Outcome& outcome : outcomes) {
    all.checked += outcome.checked;
    all.skipped += outcome.skipped;
    all.failed += outcome.failed;
  }
  WARN(all.checked << " checks of " << units.size() << " units, " << all.skipped
                   << " do not apply");
  INFO("failed:" << all.failed);
  CHECK(all.checked > 300);
  CHECK(all.failed.empty());
}

std::optional<bool> order_inside_a_step(const Unit& unit, Way way, Words& w) {
  const UnitDescription& u = *unit.description();
  const std::int64_t depth = depth_of(u);
  const auto set = interchangeable(u, depth);
  if (set.empty()) return std::nullopt;
  for (const Codes codes : {Codes::all, Codes::middle}) {
    Batch batch = random_batch(unit, kRows, kColumns, depth, codes, w);
    const std::string before = computed(batch, way);
    rearrange_columns(batch, shuffled(set, w));
    if (computed(batch, way) != before) return false;
  }
  return true;
}

std::optional<bool> chained_steps(const Unit& unit, Way way, Words& w) {
  const auto step = boundary(unit);
  if (!step.has_value()) return std::nullopt;
  const std::int64_t block = unit.description()->scaling.block;
  for (const Codes codes : {Codes::all, Codes::middle}) {
    const Batch batch = random_batch(unit, kRows, kColumns, 3 * *step, codes, w);
    Batch first = slice(batch, 0, *step, block), second = slice(batch, *step, 2 * *step, block);
    second.c = computed(first, way);
    if (computed(second, way) != computed(batch, way)) return false;
  }
  return true;
}

std::optional<bool> powers_of_two(const Unit& unit, Way way, Words& w) {
  const UnitDescription& u = *unit.description();
  const Format *c = unit.c_format(), *d = unit.d_format();
  const bool floating = c != nullptr && d != nullptr;
  // Without a hidden bit to spare (or a sum of signs) there is no twice.
  const std::int64_t depth = u.k > 0 ? u.k : std::max(u.group, 16);
  Batch batch = random_batch(unit, kRows, kColumns, depth, Codes::middle, w);
  if (!floating || batch.a_format->kind != Kind::floating) return std::nullopt;
  const std::string once = computed(batch, way);
  for (std::int64_t i = 0; i < batch.m * batch.k; ++i)
    set_code(batch.a, i, batch.a_format,
             scaled_code(*batch.a_format, get_code(batch.a, i, batch.a_format), 1));
  for (std::int64_t i = 0; i < batch.m * batch.n; ++i)
    set_code(batch.c, i, c, scaled_code(*c, get_code(batch.c, i, c), 1));
  const std::string twice = computed(batch, way);
  std::int64_t compared = 0;
  for (std::int64_t i = 0; i < batch.m * batch.n; ++i) {
    const std::uint64_t x = get_code(once, i, d), y = get_code(twice, i, d);
    if (!is_normal(*d, x) || !is_normal(*d, y)) continue;
    ++compared;
    if (scaled_code(*d, x, 1) != y) return false;
  }
  return compared > batch.m * batch.n / 2;
}

constexpr int kMany = 20;

TEST_CASE("metamorphic: products of one step may change places", "[fast]") {
  over_all_units(1, order_inside_a_step);
}
TEST_CASE("metamorphic: products of one step may change places, many", "[slow]") {
  over_all_units(kMany, order_inside_a_step);
}
TEST_CASE("metamorphic: K cut at a step and chained through C is the whole", "[fast]") {
  over_all_units(1, chained_steps);
}
TEST_CASE("metamorphic: K cut at a step and chained through C is the whole, many", "[slow]") {
  over_all_units(kMany, chained_steps);
}
TEST_CASE("metamorphic: twice A and twice C give twice D", "[fast]") {
  over_all_units(1, powers_of_two);
}
TEST_CASE("metamorphic: twice A and twice C give twice D, many", "[slow]") {
  over_all_units(kMany, powers_of_two);
}

}  // namespace
}  // namespace numemu::oracle::mma::metamorphic_test
