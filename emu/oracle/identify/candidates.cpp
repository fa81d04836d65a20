#include "emu/oracle/identify/candidates.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "emu/oracle/dots/draft.hpp"
#include "emu/oracle/identify/questions.hpp"
#include "emu/oracle/identify/step_map.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/unit.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

constexpr std::size_t kRandom = 240;
constexpr int kLeastDepth = 8, kDeepestRival = 128;
constexpr int kMostPromoted = 512;  ///< the depth for a second level of accumulation

}  // namespace

int telling_depth(const unit::UnitDescription& u) {
  const int step = std::max({unit::products_of_step(u), u.chain.chunk, u.scaling.block});
  const int depth = std::max(std::clamp(2 * step, kLeastDepth, kDeepestRival),
                             2 * std::min(u.outer.every, kMostPromoted / 2));
  const int group = u.sparsity.dense() ? 1 : u.sparsity.group / u.sparsity.kept;
  return depth * group;
}

namespace {

/// A number for each patch and, last, for the unit itself: equal where all results are. Pieces of
/// the dots split the classes; a description that is alone in its class needs no more of them.
std::vector<std::size_t> classes_of(const unit::UnitDescription& u,
                                    const std::vector<Rival>& patches, const Ports& ports,
                                    std::span<const Dot> dots) {
  std::vector<std::size_t> number(patches.size() + 1, 0), open(patches.size() + 1);
  std::iota(open.begin(), open.end(), std::size_t{0});
  std::size_t numbers = 1, piece = 8;
  for (std::size_t first = 0; first < dots.size() && !open.empty(); piece *= 2) {
    const auto part = dots.subspan(first, std::min(piece, dots.size() - first));
    std::vector<std::vector<std::uint64_t>> results(open.size());
#pragma omp parallel for schedule(dynamic)
    for (std::size_t i = 0; i < open.size(); ++i)
      results[i] =
          evaluate(open[i] < patches.size() ? patches[open[i]].description : u, ports, part);
    std::map<std::pair<std::size_t, std::vector<std::uint64_t>>, std::vector<std::size_t>> split;
    for (std::size_t i = 0; i < open.size(); ++i)
      split[{number[open[i]], std::move(results[i])}].push_back(open[i]);
    open.clear();
    for (const auto& [key, members] : split) {
      for (const std::size_t member : members) number[member] = numbers;
      ++numbers;
      if (members.size() > 1) open.insert(open.end(), members.begin(), members.end());
    }
    first += part.size();
  }
  return number;
}

}  // namespace

std::vector<Rival> rivals_of(const unit::UnitDescription& u, int depth) {
  const Ports ports = ports_of(u, depth != 0 ? depth : telling_depth(u));
  std::vector<Dot> dots;
  for (const auto& questions :
       {constructed_questions(ports), random_questions(ports, 0, 0, kRandom)}) {
    for (const AskedDot& question : questions) dots.push_back(question.dot);
  }
  std::vector<Rival> patches = patches_of(u);
  std::erase_if(patches, [&](const Rival& patch) { return !fits(patch.description, ports); });
  const std::vector<std::size_t> classes = classes_of(u, patches, ports, dots);
  std::set<std::size_t> seen = {classes.back()};
  std::vector<Rival> rivals;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    if (seen.insert(classes[i]).second) rivals.push_back(std::move(patches[i]));
  }
  return rivals;
}

std::vector<int> lost_products(const Ports& ports,
                               const std::function<std::uint64_t(const Dot&)>& device) {
  const std::optional<Dot> none = Draft(ports).dot();
  if (!ports.sparsity.dense() || !none) return {};
  const std::uint64_t nothing = device(*none);
  std::vector<int> lost;
  for (int p = 0; p < ports.k; ++p) {
    const std::optional<Dot> one = Draft(ports).product(p, number(1)).dot();
    if (!one) return {};
    if (device(*one) == nothing) lost.push_back(p);
  }
  if (static_cast<int>(lost.size()) == ports.k) lost.clear();
  return lost;
}

Dot without_products(Dot dot, const std::vector<int>& positions) {
  for (const int p : positions)
    dot.a[static_cast<std::size_t>(p)] = dot.b[static_cast<std::size_t>(p)] = 0;
  return dot;
}

namespace {

using unit::UnitDescription;

/// Of sums of outer.every products each: C and opposite products meet in the outer register, which
/// hides the steps inside. Each sum has those of the unit without the outer register.
std::vector<int> steps_of_sums(const UnitDescription& u, const Ports& ports) {
  UnitDescription inner = u;
  inner.outer = {};
  inner.c = inner.d = nullptr;
  Ports of_sum = ports;
  of_sum.k = u.outer.every * (ports.k / ports.kept());
  of_sum.c = of_sum.d = inner.accumulator.format;
  of_sum.bits = inner.accumulator.bits;
  const std::vector<int> one = steps_of_unit(inner, of_sum);
  if (one.empty()) return {};
  const int count = *std::max_element(one.begin(), one.end()) + 1;
  std::vector<int> steps;
  for (int p = 0; p < ports.kept(); ++p)
    steps.push_back(one[static_cast<std::size_t>(p % u.outer.every)] + p / u.outer.every * count);
  return steps;
}

}  // namespace

std::vector<int> steps_of_unit(const UnitDescription& u, const Ports& ports) {
  if (u.outer.every != 0 && u.outer.every < ports.kept()) return steps_of_sums(u, ports);
  constexpr int kMostPositions = 64;  // as many dots as pairs of them
  std::vector<int> best;
  if (ports.kept() > kMostPositions) return best;
  const auto count = [](const std::vector<int>& steps) {
    return steps.empty() ? -1 : *std::max_element(steps.begin(), steps.end());
  };
  for (const StepVariant variant : kStepVariants) {
    const std::vector<Dot> dots = step_map_dots(ports, variant);
    if (dots.empty()) continue;
    std::vector<int> steps = steps_of(read_step_map(ports, variant, evaluate(u, ports, dots)));
    if (count(steps) > count(best)) best = std::move(steps);
  }
  return best;
}

namespace {

using unit::CEntry;
using unit::CoreKind;
using unit::Scaling;
using unit::UnitDescription;

/// What all families share: formats, scales, sparsity.
UnitDescription plain(const Ports& ports, CoreKind core) {
  UnitDescription u;
  u.name = "found";
  u.a = ports.a;
  u.b = ports.b;
  u.core = core;
  u.sparsity = ports.sparsity;
  if (ports.d == nullptr) {
    u.accumulator.bits = ports.bits;
    u.nan_code = 0;
  } else {
    u.c = ports.c;
    u.d = u.accumulator.format = ports.d;
    u.nan_code = ports.d->has_nan() ? ports.d->nan_code() : 0;
  }
  if (ports.scale != nullptr) {
    const bool powers = ports.scale->mantissa_bits == 0;
    const bool groups = core == CoreKind::fused && !powers;
    u.scaling.point = groups ? Scaling::Point::groups : Scaling::Point::exponents;
    u.scaling.format = ports.scale;
    u.scaling.block = ports.block;
  }
  return u;
}

/// Sums of `every` products, each added to a register of D's format.
UnitDescription promoted(UnitDescription u, int every) {
  u.outer = {every, {.format = u.d}};
  return u;
}

std::string rule_text(const UnitDescription& u) {
  std::string text;
  unit::for_each_field(u, [&](std::string_view key, const auto& field) {
    if (key != "name") text += unit::text_of(field) + ";";
  });
  return text;
}

/// Runs job(i) for i below n on all threads; the order does not matter.
template <class Job>
void in_parallel(std::size_t n, const Job& job) {
#pragma omp parallel for schedule(dynamic) if (n > 64)
  for (std::size_t i = 0; i < n; ++i) job(i);
}

}  // namespace

bool plainer(const UnitDescription& x, const UnitDescription& y) {
  const auto rank = [](const UnitDescription& u) {
    return std::pair(unit::changed_field_set(u).count(), u.core == CoreKind::tree);
  };
  return rank(x) < rank(y);
}

std::vector<UnitDescription> families(const Ports& ports) {
  std::vector<UnitDescription> all;
  const auto add = [&](UnitDescription u) {
    try {
      unit::check_description(u);
      all.push_back(std::move(u));
    } catch (const Error&) {  // a core that these formats do not have
    }
  };
  for (const CoreKind core : {CoreKind::integer, CoreKind::xnor, CoreKind::chain, CoreKind::exact,
                              CoreKind::tree, CoreKind::fused}) {
    UnitDescription u = plain(ports, core);
    add(u);
    if (core == CoreKind::chain) {
      u.k = ports.kept();
      u.c_entry = CEntry::after_rounding;
      add(u);
      u.chain.chains = 2;
      add(u);
    }
    if (core == CoreKind::tree || core == CoreKind::exact || core == CoreKind::integer) {
      for (const int group : {2, 4, 8, 16, 32}) {
        u.group = group;
        add(u);
        // A dot product, rounded, then added.
        if (ports.d != nullptr && group < ports.kept()) add(promoted(u, group));
      }
    }
    if (core != CoreKind::fused) continue;
    if (ports.d != nullptr && ports.d->name == "float32")
      u.accumulator.rounding.mode = RoundingMode::rtz;
    for (const int group : {4, 8, 16, 32, 64}) {
      for (const int fraction : {13, 24, 35}) {
        u.k = u.group = group;
        u.alignment.fraction_bits = fraction;
        add(u);
        for (const int every : {32, 64, 128}) {
          if (every < ports.kept()) add(promoted(u, every));
        }
      }
    }
    // FP8 lowered to two half-precision steps.
    u.k = ports.kept();
    u.group = u.k / 2;
    u.order = unit::StepOrder::pairs_mod4;
    u.c_entry = CEntry::after_rounding;
    add(u);
  }
  return all;
}

std::vector<UnitDescription> in_blocks(std::span<const UnitDescription> all, int block) {
  std::vector<UnitDescription> blocked;
  for (const UnitDescription& u : all) {
    const Format* const d = unit::result_format(u);
    if (d == nullptr || u.outer.every != 0) continue;
    UnitDescription other = promoted(u, block);
    other.name = "found";
    other.c = unit::c_format(u);
    other.d = other.outer.accumulator.format = d;
    other.nan = unit::NanRule::canonical;
    try {
      unit::check_description(other);
      blocked.push_back(std::move(other));
    } catch (const Error&) {  // a core that has no second level
    }
  }
  return blocked;
}

std::vector<UnitDescription> presets(const Ports& ports) {
  std::vector<UnitDescription> all;
  for (const unit::Unit* base : unit::all_units()) {
    if (base->description() == nullptr) continue;
    for (const unit::Unit* one : unit::with_modifiers(*base)) {
      UnitDescription u = *one->description();
      // A unit of any format takes those that have a container and are float32 values.
      if (!fits(u, ports) || !one->accepts_a(*ports.a) || !one->accepts_b(*ports.b)) continue;
      u.a = ports.a;
      u.b = ports.b;
      all.push_back(std::move(u));
    }
  }
  return all;
}

void Evidence::add(const Dot& dot, std::uint64_t code) {
  dots_.push_back(dot);
  codes_.push_back(code);
}

bool Evidence::same(std::uint64_t x, std::uint64_t y) const {
  if (x == y) return true;
  const auto is_nan = [&](std::uint64_t code) {
    return decode(*ports_.d, code).kind == Class::nan;
  };
  return any_nan_ && ports_.d != nullptr && is_nan(x) && is_nan(y);
}

// In pieces that grow: most candidates are wrong soon.
std::size_t Evidence::contradictions(const UnitDescription& u, std::size_t most) const {
  std::size_t count = 0, piece = 8;
  for (std::size_t first = 0; first < dots_.size() && count <= most; piece *= 2) {
    const std::size_t n = std::min(piece, dots_.size() - first);
    const auto results = evaluate(u, ports_, std::span(dots_).subspan(first, n));
    for (std::size_t i = 0; i < n; ++i) count += same(results[i], codes_[first + i]) ? 0 : 1;
    first += n;
  }
  return count;
}

std::vector<std::size_t> Evidence::contradicted(const UnitDescription& u, std::size_t most) const {
  const auto results = evaluate(u, ports_, dots_);
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < dots_.size() && positions.size() < most; ++i) {
    if (!same(results[i], codes_[i])) positions.push_back(i);
  }
  return positions;
}

Evidence Evidence::part(std::span<const std::size_t> positions) const {
  Evidence some(ports_, any_nan_);
  for (const std::size_t i : positions) some.add(dots_[i], codes_[i]);
  return some;
}

Evidence Evidence::answered_by(const UnitDescription& u) const {
  Evidence other = *this;
  other.codes_ = evaluate(u, ports_, dots_);
  return other;
}

void Evidence::drop_products(const std::vector<int>& positions) {
  for (Dot& dot : dots_) dot = without_products(std::move(dot), positions);
}

bool Candidates::add(UnitDescription u) {
  if (!rules_.insert(rule_text(u)).second) return false;
  all.push_back(std::move(u));
  return true;
}

std::vector<UnitDescription> search(const Evidence& evidence,
                                    std::span<const UnitDescription> first,
                                    const std::function<bool()>& stop) {
  constexpr std::size_t kBeam = 5, kNear = 6;
  constexpr int kRounds = 14, kPatience = 3;
  struct Scored {
    std::size_t contradictions;
    UnitDescription u;
  };
  std::vector<Scored> beam;
  Candidates known;
  // The contradictions with which a description of this core still enters the beam.
  const auto bound = [&](CoreKind core) {
    std::size_t place = 0;
    for (const Scored& scored : beam) {
      if (scored.u.core == core && ++place == kBeam) return scored.contradictions;
    }
    return evidence.size();
  };
  // Adds new descriptions and keeps the best of each core, the earliest of equals first, and all
  // that fit.
  const auto take = [&](std::vector<UnitDescription> more) {
    std::erase_if(more, [&](const UnitDescription& u) {
      return !fits(u, evidence.ports()) || !known.add(u);
    });
    std::vector<std::size_t> counts(more.size());
    in_parallel(more.size(), [&](std::size_t i) {
      const bool late = i > 0 && stop && stop();
      counts[i] =
          late ? evidence.size() + 1 : evidence.contradictions(more[i], bound(more[i].core));
    });
    for (std::size_t i = 0; i < more.size(); ++i) {
      if (counts[i] <= bound(more[i].core)) beam.push_back({counts[i], std::move(more[i])});
    }
    std::stable_sort(beam.begin(), beam.end(), [](const Scored& x, const Scored& y) {
      return x.contradictions < y.contradictions;
    });
    std::map<CoreKind, std::size_t> places;
    std::erase_if(beam, [&](const Scored& scored) {
      return ++places[scored.u.core] > kBeam && scored.contradictions != 0;
    });
  };
  take({first.begin(), first.end()});
  std::unordered_set<std::string> expanded;
  int patience = kPatience;
  for (int round = 0; round < kRounds && patience > 0 && !beam.empty(); ++round) {
    const std::size_t best = beam.front().contradictions;
    if (best == 0 || (stop && stop())) break;
    std::vector<UnitDescription> more;
    for (const Scored& scored : beam) {
      if (!expanded.insert(rule_text(scored.u)).second) continue;
      for (Rival& patch : patches_of(scored.u)) more.push_back(std::move(patch.description));
    }
    if (more.empty()) break;
    take(std::move(more));
    if (beam.front().contradictions < best || --patience > 0) continue;
    if (best > kNear) break;
    // Two parameters of the best at once.
    more.clear();
    for (const Rival& patch : patches_of(beam.front().u)) {
      for (Rival& second : patches_of(patch.description))
        more.push_back(std::move(second.description));
    }
    take(std::move(more));
    if (beam.front().contradictions < best) patience = kPatience;
  }
  std::vector<UnitDescription> found;
  for (Scored& scored : beam) {
    if (scored.contradictions == 0 || found.empty()) found.push_back(std::move(scored.u));
  }
  std::ranges::stable_sort(found, plainer);
  for (UnitDescription& u : found) {
    if (u.name.ends_with(".rival")) u.name = "found";
  }
  return found;
}

}  // namespace numemu::oracle
