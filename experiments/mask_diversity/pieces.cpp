#include "experiments/mask_diversity/pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/chi_square.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/laws.hpp"
#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/mask/weight_mask.hpp"
#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::experiments {

using policies::factorial;

namespace {

/// The columns of some rows in their order: one byte each, a row's bit below those of the rows
/// before it.
using Columns = std::array<std::uint8_t, kMostKindTile>;

struct Order {
  Columns columns = {};
  unsigned used = 0;  ///< bit r: row r is in the order
};

/// What is left of an order when columns may be permuted: the columns sorted, the largest first.
std::uint64_t word_of(Columns columns, int m) {
  std::sort(columns.begin(), columns.begin() + m, std::greater<>());
  std::uint64_t word = 0;
  for (int j = 0; j < m; ++j) word = word << 8 | columns[static_cast<std::size_t>(j)];
  return word;
}

/// Column permutations that change nothing: of equal columns among themselves.
std::int64_t equal_columns(Columns columns, int m) {
  std::sort(columns.begin(), columns.begin() + m);
  std::int64_t permutations = 1;
  for (int j = 0, run = 0; j < m; ++j) {
    run = j > 0 && columns[j] == columns[j - 1] ? run + 1 : 1;
    permutations *= run;
  }
  return permutations;
}

}  // namespace

MaskKind kind_of(std::uint64_t mask, int m) {
  if (m < 1 || m > kMostKindTile) {
    throw Error("mask kinds: expected tiles of 1 to " + std::to_string(kMostKindTile) +
                " rows, not " + std::to_string(m));
  }
  // The canonical mask is the one with the largest word. A prefix of its rows has the largest word
  // of all prefixes, so that others need not be followed.
  std::vector<Order> orders(1), next;
  std::uint64_t best = 0;
  for (int depth = 0; depth < m; ++depth) {
    next.clear();
    best = 0;
    for (const Order& order : orders) {
      for (int r = 0; r < m; ++r) {
        if (order.used >> r & 1U) continue;
        Order longer = order;
        longer.used |= 1U << r;
        for (int j = 0; j < m; ++j) {
          longer.columns[j] =
              static_cast<std::uint8_t>(order.columns[j] << 1 | (mask >> (r * m + j) & 1U));
        }
        const std::uint64_t word = word_of(longer.columns, m);
        if (word < best) continue;
        if (word > best) next.clear();
        best = word;
        next.push_back(longer);
      }
    }
    orders.swap(next);
  }
  // Row orders that end at the canonical mask differ by symmetries of the mask; each goes with the
  // permutations of its equal columns.
  const std::int64_t symmetries =
      static_cast<std::int64_t>(orders.size()) * equal_columns(orders[0].columns, m);
  const auto orders_of_lines = factorial<std::int64_t>(m);
  return {best, orders_of_lines * orders_of_lines / symmetries};
}

namespace {

constexpr std::int64_t kWordBits = 64;

int words_of(std::int64_t piece) { return static_cast<int>((piece + kWordBits - 1) / kWordBits); }

/// The mask as bits, the first element lowest; returns how many are kept.
std::int64_t pack(const std::uint8_t* keep, std::int64_t piece, std::uint64_t* words) {
  std::int64_t kept = 0;
  for (std::int64_t first = 0; first < piece; first += kWordBits) {
    const std::int64_t bits = std::min(kWordBits, piece - first);
    std::uint64_t word = 0;
    for (std::int64_t i = 0; i < bits; ++i) {
      const bool one = keep[first + i] != 0;
      word |= std::uint64_t{one} << i;
      kept += one;
    }
    *words++ = word;
  }
  return kept;
}

std::int64_t checked_piece(std::int64_t piece) {
  if (piece < 1 || piece > kMostPiece) {
    throw Error("mask census: expected pieces of 1 to " + std::to_string(kMostPiece) +
                " elements, not " + std::to_string(piece));
  }
  return piece;
}

using Words = std::array<std::uint64_t, 1 + kMostPiece / kWordBits>;

}  // namespace

KeyCounter::KeyCounter(int width) : width_(width), slots_(16) {}

std::size_t KeyCounter::slot_of(const std::uint64_t* key) const {
  // Each word through the finalizer of splitmix64 (Steele, Lea and Flood 2014).
  std::uint64_t hash = 0;
  for (int w = 0; w < width_; ++w) {
    hash += key[w] + 0x9e3779b97f4a7c15U;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
    hash ^= hash >> 31;
  }
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != 0 && !std::equal(key, key + width_, this->key(slots_[slot] - 1)))
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void KeyCounter::add(const std::uint64_t* key) {
  std::size_t slot = slot_of(key);
  if (slots_[slot] != 0) {
    ++counts_[slots_[slot] - 1];
    return;
  }
  if (2 * (counts_.size() + 1) > slots_.size()) {
    grow();
    slot = slot_of(key);
  }
  keys_.insert(keys_.end(), key, key + width_);
  counts_.push_back(1);
  slots_[slot] = static_cast<std::uint32_t>(counts_.size());
}

void KeyCounter::grow() {
  slots_.assign(slots_.size() * 4, 0);
  for (std::size_t i = 0; i < counts_.size(); ++i)
    slots_[slot_of(key(static_cast<std::int64_t>(i)))] = static_cast<std::uint32_t>(i + 1);
}

MaskCensus::MaskCensus(std::int64_t piece)
    : piece_(checked_piece(piece)), masks_(words_of(piece)) {}

void MaskCensus::add(const std::uint8_t* keep, std::int64_t pieces) {
  Words words;
  for (std::int64_t i = 0; i < pieces; ++i) {
    kept_ += pack(keep + i * piece_, piece_, words.data());
    masks_.add(words.data());
  }
  pieces_ += pieces;
}

double MaskCensus::kept() const {
  if (pieces_ == 0) return 0;
  return static_cast<double>(kept_) / static_cast<double>(pieces_ * piece_);
}

double MaskCensus::bits_per_element() const {
  return entropy().corrected / static_cast<double>(piece_);
}

double flip_rate(const std::uint8_t* a, const std::uint8_t* b, std::int64_t n) {
  std::int64_t flips = 0;
  for (std::int64_t i = 0; i < n; ++i) flips += (a[i] != 0) != (b[i] != 0);
  return n == 0 ? 0 : static_cast<double>(flips) / static_cast<double>(n);
}

MaskHistory::MaskHistory(std::int64_t piece, std::int64_t elements)
    : piece_(checked_piece(piece)), elements_(elements), seen_(1 + words_of(piece)) {
  if (elements < 0 || elements % piece != 0) {
    throw Error("mask history: expected a multiple of " + std::to_string(piece) +
                " elements, found " + std::to_string(elements));
  }
}

void MaskHistory::add(const std::uint8_t* keep) {
  if (masks_ > 0) flips_.push_back(flip_rate(last_.data(), keep, elements_));
  last_.assign(keep, keep + elements_);
  Words words;
  for (std::int64_t i = 0; i < pieces(); ++i) {
    words[0] = static_cast<std::uint64_t>(i);
    pack(keep + i * piece_, piece_, words.data() + 1);
    seen_.add(words.data());
  }
  ++masks_;
}

double MaskHistory::distinct_per_piece() const {
  return pieces() == 0 ? 0 : static_cast<double>(seen_.distinct()) / static_cast<double>(pieces());
}

DiversityPattern::DiversityPattern(std::string called, MaskFamily of, int kept, int group,
                                   std::string rule)
    : name(std::move(called)),
      family(of),
      pattern{{kept, group}, false},
      mask(std::move(rule)),
      masks_(structured() ? piece_count(family, pattern)
                          : mask_diversity(family, pattern, kReferenceBlock)),
      log10_exact_(structured() ? masks_.log10 * static_cast<double>(kReferenceBlock) /
                                      static_cast<double>(piece())
                                : masks_.log10),
      log10_bound_(family == MaskFamily::transposable
                       ? log10_per_block(MaskFamily::transposable_bound, pattern)
                       : log10_exact_) {}

const std::vector<DiversityPattern>& half_density_patterns() {
  static const std::vector<DiversityPattern> patterns = [] {
    using F = MaskFamily;
    // Rows beyond a tensor count as zeros in tiles: each row that is there keeps half all the same.
    std::vector<DiversityPattern> made = {
        {"unstructured", F::unstructured, 1, 2, "unstructured(0.5)"},
        {"8:16", F::group, 8, 16, "greedy(8:16)"},
        {"4:8", F::group, 4, 8, "greedy(4:8)"},
        {"2:4", F::group, 2, 4, "greedy(2:4)"},
        {"1:2", F::group, 1, 2, "greedy(1:2)"},
        {"8:16-T", F::transposable, 8, 16, "transposable(8:16,remainder=pad)"},
        {"4:8-T", F::transposable, 4, 8, "transposable(4:8,remainder=pad)"},
        {"2:4-T", F::transposable, 2, 4, "transposable(2:4,remainder=pad)"},
        {"1:2-T", F::transposable, 1, 2, "transposable(1:2,remainder=pad)"},
        {"2:4 seq", F::sequential, 2, 4, "sequential(2:4)"},
        {"4:8 seq", F::sequential, 4, 8, "sequential(4:8)"}};
    std::stable_sort(made.begin(), made.end(),
                     [](const DiversityPattern& a, const DiversityPattern& b) {
                       return a.log10_exact() > b.log10_exact();
                     });
    return made;
  }();
  return patterns;
}

const DiversityPattern& diversity_pattern(std::string_view name) {
  for (const DiversityPattern& pattern : half_density_patterns()) {
    if (pattern.name == name) return pattern;
  }
  throw Error(fmt::format("no pattern of mask-diversity is called '{}'", name));
}

namespace {

constexpr std::int64_t kChunk = 4096;       // elements per call of a rule
constexpr std::int64_t kLeastExpected = 5;  // of every mask, for a chi-square test

/// The rule on `count` pieces that lie one after the other, over threads.
void keep_of(const DiversityPattern& pattern, const float* x, std::int64_t count,
             std::uint8_t* keep) {
  const policies::MaskPolicy policy = policies::parse_mask(pattern.mask);
  const std::int64_t piece = pattern.piece(), at_once = std::max<std::int64_t>(1, kChunk / piece);
  constexpr std::int64_t kWork = 16;  // of an element, in additions
  net::for_each_row((count + at_once - 1) / at_once, kWork * kChunk, [&](std::int64_t chunk) {
    const std::int64_t first = chunk * at_once;
    policy.rule->prune(policy, {},
                       {.x = x + first * piece,
                        .keep = keep + first * piece,
                        .count = std::min(at_once, count - first),
                        .first = static_cast<std::uint64_t>(first)});
  });
}

/// How many masks the pattern has, where each can be expected five times.
std::optional<std::size_t> testable(const DiversityPattern& pattern, std::int64_t pieces) {
  const double masks = portable::exp2(pattern.masks().log2);
  if (masks * static_cast<double>(kLeastExpected) > static_cast<double>(pieces) + 0.5)
    return std::nullopt;
  return static_cast<std::size_t>(std::stoll(pattern.masks().decimal));
}

struct KindFound {
  std::int64_t size = 0;             ///< masks of this kind
  std::int64_t seen = 0;             ///< pieces
  std::vector<std::int64_t> counts;  ///< of the masks of this kind that came
};

/// The census by kinds, in the order of their canonical masks.
std::vector<KindFound> kinds_of(const MaskCensus& census, int m) {
  std::vector<MaskKind> kinds(static_cast<std::size_t>(census.distinct()));
  constexpr std::int64_t kWork = 10'000;  // of a mask, in additions
  net::for_each_row(census.distinct(), kWork, [&](std::int64_t i) {
    kinds[static_cast<std::size_t>(i)] = kind_of(census.mask(i), m);
  });
  std::map<std::uint64_t, KindFound> sorted;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    KindFound& kind = sorted[kinds[i].canonical];
    kind.size = kinds[i].size;
    kind.seen += census.counts()[i];
    kind.counts.push_back(census.counts()[i]);
  }
  std::vector<KindFound> list;
  for (auto& [canonical, kind] : sorted) list.push_back(std::move(kind));
  return list;
}

/// That masks of one kind are equally likely; NaN where none could be expected five times.
double within_kinds(const std::vector<KindFound>& kinds) {
  stats::ChiSquare sum;
  for (const KindFound& kind : kinds) {
    if (kind.seen < kLeastExpected * kind.size) continue;
    std::vector<std::int64_t> counts = kind.counts;
    counts.resize(static_cast<std::size_t>(kind.size));
    const stats::ChiSquare one = stats::uniform_chi_square(counts);
    sum.statistic += one.statistic;
    sum.degrees += one.degrees;
  }
  if (sum.degrees == 0) return NAN;
  return stats::chi_square_tail(sum.statistic, static_cast<double>(sum.degrees));
}

/// Entropy of masks where those of one kind are equally likely: H(kind) and the mean log2 of their
/// size; its interval as in emu/stats/entropy.hpp, for -log2 of a mask's probability.
KindFigures kind_figures(const MaskCensus& census, const DiversityPattern& pattern) {
  const std::vector<KindFound> kinds = kinds_of(census, pattern.pattern.group);
  const auto n = static_cast<double>(census.pieces());
  const double masks = portable::exp2(pattern.masks().log2);
  std::vector<std::int64_t> counts;
  std::vector<double> equal;
  double mean = 0, square = 0;
  for (const KindFound& kind : kinds) {
    counts.push_back(kind.seen);
    equal.push_back(static_cast<double>(kind.size) / masks);
    const double p = static_cast<double>(kind.seen) / n,
                 bits = portable::log2(static_cast<double>(kind.size) / p);
    mean += p * bits;
    square += p * bits * bits;
  }
  const stats::Entropy of_kinds = stats::entropy(counts);
  const stats::ChiSquare test = stats::chi_square(counts, equal);
  const double free = static_cast<double>(kinds.size() - 1), ln2 = portable::log(2.0),
               entropy = mean + of_kinds.corrected - of_kinds.plug_in,
               variance = std::max(0.0, square - mean * mean) / n + free / (2 * n * n * ln2 * ln2),
               half = stats::kNormal95 * std::sqrt(variance);
  return {kinds.size(),       of_kinds.coverage, entropy,
          entropy - half,     entropy + half,    test.degrees > 0 ? test.p : NAN,
          within_kinds(kinds)};
}

}  // namespace

std::vector<std::string> evenly_masked_layers(const net::Graph& graph) {
  std::vector<std::string> names;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr && layer.weight->shape.size() > 1 &&
        layer.weight->dim(-1) % kLargestGroup == 0)
      names.push_back(layer.name);
  }
  if (names.empty()) {
    throw Error("network " + graph.name + ": expected a layer whose channels are a multiple of " +
                std::to_string(kLargestGroup) + ", which every pattern masks to 50 %");
  }
  return names;
}

std::vector<float> pieces_of(const net::Tensor& weight, const DiversityPattern& pattern) {
  if (pattern.family != MaskFamily::transposable) return weight.data;
  // [out, taps, in]
  const std::int64_t m = pattern.pattern.group, out = weight.dim(0), in = weight.dim(-1),
                     taps = weight.size() / (out * in);
  std::vector<float> pieces;
  pieces.reserve(weight.data.size());
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t row = 0; row + m <= out; row += m) {
      for (std::int64_t column = 0; column + m <= in; column += m) {
        for (std::int64_t r = 0; r < m; ++r) {
          const auto from = weight.data.begin() + ((row + r) * taps + tap) * in + column;
          pieces.insert(pieces.end(), from, from + m);
        }
      }
    }
  }
  return pieces;
}

std::vector<std::uint8_t> masks_of(const std::vector<float>& pieces,
                                   const DiversityPattern& pattern) {
  std::vector<std::uint8_t> keep(pieces.size());
  keep_of(pattern, pieces.data(), static_cast<std::int64_t>(pieces.size()) / pattern.piece(),
          keep.data());
  return keep;
}

MaskCensus normal_census(const DiversityPattern& pattern, std::int64_t pieces, std::uint64_t seed) {
  constexpr std::int64_t kBatch = std::int64_t{1} << 20;  // elements in memory at once
  const std::int64_t piece = pattern.piece(), batch = kBatch / piece;
  const RandomSource random{.seed = seed,
                            .stream = Stream::probe,
                            .tensor = tensor_word("mask-diversity/" + pattern.name),
                            .draw = 0};
  MaskCensus census(piece);
  std::vector<float> x(kBatch);
  std::vector<std::uint8_t> keep(kBatch);
  for (std::int64_t first = 0; first < pieces; first += batch) {
    const std::int64_t count = std::min(batch, pieces - first);
    net::for_each_row(count, 64 * piece, [&](std::int64_t p) {
      for (std::int64_t i = p * piece; i < (p + 1) * piece; ++i)
        x[i] =
            static_cast<float>(normal::draw(random, static_cast<std::uint64_t>(first * piece + i)));
    });
    keep_of(pattern, x.data(), count, keep.data());
    census.add(keep.data(), count);
  }
  return census;
}

CensusFigures figures_of(const MaskCensus& census, const DiversityPattern& pattern,
                         bool exchangeable) {
  const stats::Entropy shannon = census.entropy();
  CensusFigures figures{.pieces = census.pieces(),
                        .distinct = census.distinct(),
                        .kept = census.kept(),
                        .plug_in = shannon.plug_in,
                        .corrected = shannon.corrected,
                        .low = shannon.interval.low,
                        .high = shannon.interval.high,
                        .coverage = shannon.coverage};
  if (census.pieces() > 1) {
    const stats::CollisionEntropy collision = census.collision_entropy();
    figures.collisions = collision.collisions;
    figures.collision_low = collision.interval.low;
    figures.collision_bits = collision.bits;
    figures.collision_high = collision.interval.high;
  }
  if (const auto masks = testable(pattern, census.pieces())) {
    std::vector<std::int64_t> counts = census.counts();
    if (counts.size() > *masks) throw Error(pattern.name + ": more masks than there can be");
    counts.resize(*masks);
    figures.p = stats::uniform_chi_square(counts).p;
  }
  if (exchangeable && pattern.family == MaskFamily::transposable &&
      pattern.pattern.group <= kMostKindTile)
    figures.kinds = kind_figures(census, pattern);
  return figures;
}

namespace {

Json recipe_of(const std::vector<std::string>& layers, const std::string& mask) {
  Json recipe = {{"layers", Json::array()}};
  for (const std::string& layer : layers) {
    if (!mask.empty())
      recipe["layers"].push_back({{"match", layer}, {"roles", {{"weight", {{"mask", mask}}}}}});
  }
  return recipe;
}

/// On the masked layers, not evaluated.
Pruned kept_of(const policies::BoundRecipe& recipe, const std::vector<std::string>& layers) {
  double elements = 0, kept = 0, magnitude = 0, retained = 0;
  for (const std::string& layer : layers) {
    const net::Tensor& weight = net::weight_of(recipe.graph(), layer);
    const std::optional<policies::MaskPolicy>& policy =
        recipe.layer(layer).masks[policies::RolePart::weight];
    std::vector<std::uint8_t> keep(weight.data.size(), 1);
    if (policy) {
      const RandomSource random = policies::weight_mask_random(recipe->seed(), layer, *policy);
      keep = policies::WeightMask(*policy, random).mask_of(weight, 1);
    }
    const auto sum = [&](auto&& term) { return pairwise_sum(weight.size(), term); };
    elements += static_cast<double>(weight.size());
    kept += sum([&](std::int64_t i) { return keep[i] != 0 ? 1.0 : 0.0; });
    magnitude += sum([&](std::int64_t i) { return std::fabs(double{weight.data[i]}); });
    retained +=
        sum([&](std::int64_t i) { return keep[i] != 0 ? std::fabs(double{weight.data[i]}) : 0.0; });
  }
  return {.kept = kept / elements, .retained = retained / magnitude, .right = {}};
}

Pruned evaluate_masked(const net::Graph& graph, const net::Dataset& data,
                       const std::vector<std::string>& layers, const std::string& mask,
                       std::int64_t images) {
  const policies::Recipe recipe =
      policies::Recipe::make(recipe_of(layers, mask), "one-shot pruning");
  policies::RecipeNumerics numerics(recipe, graph);
  freeze(numerics, graph, data);
  const net::Evaluation tested = net::evaluate(graph, data, net::Split::test, images, numerics);
  Pruned pruned = kept_of(numerics.bound(), layers);
  pruned.loss = tested.loss;
  pruned.right = answer_text(tested.right);
  return pruned;
}

/// Unpruned first, then every pattern in order.
std::vector<Pruned> evaluate_patterns(const net::Graph& graph, const net::Dataset& data,
                                      std::int64_t images) {
  const std::vector<std::string> layers = evenly_masked_layers(graph);
  std::vector<Pruned> results = {evaluate_masked(graph, data, layers, "", images)};
  for (const DiversityPattern& pattern : half_density_patterns())
    results.push_back(evaluate_masked(graph, data, layers, pattern.mask, images));
  return results;
}

Json masks_in_order() {
  Json masks = Json::array();
  for (const DiversityPattern& pattern : half_density_patterns()) masks.push_back(pattern.mask);
  return masks;
}

using PrunedTrial = TypedTrial<std::vector<Pruned>>;

PrunedTrial shipped_trial(const std::string& name, std::shared_ptr<const TrainedNet> trained,
                          const net::Dataset& data, std::int64_t images) {
  Json point = {{"part", "one-shot"},
                {"images", data.digest()},
                {"eval_images", images},
                {"masks", masks_in_order()}};
  identify(point, *trained);
  return {point, fmt::format("{} under every pattern", name),
          [trained, &data, images] { return evaluate_patterns(trained->graph, data, images); }};
}

/// Another network like this one.
PrunedTrial fresh_trial(const ExperimentRun& run, const std::string& name, std::uint64_t seed,
                        const net::Dataset& data, std::int64_t images) {
  TrainTrial plan = training_of_masks(run, data, name);
  plan.seed = seed;
  Json point = point_of(plan, data);
  point["part"] = "one-shot, trained afresh";
  point["masks"] = masks_in_order();
  return {point, fmt::format("{} of seed {}, then every pattern", name, seed),
          [plan, &data, images] {
            net::Graph graph = trained_in_float32(plan, data);
            return evaluate_patterns(graph, data, images);
          }};
}

}  // namespace

std::int64_t Pruned::correct() const { return std::count(right.begin(), right.end(), '1'); }

double Pruned::top1() const {
  return static_cast<double>(correct()) / static_cast<double>(right.size());
}

std::vector<PrunedNet> pruned_nets(const ExperimentRun& run, const net::Dataset& data) {
  const std::int64_t images = run.settings.integer("images");
  const std::int64_t fresh = run.settings.integer("trained");
  std::vector<PrunedTrial> trials;
  std::vector<PrunedNet> nets;
  for (const std::string& name : run.settings.list("nets")) {
    const auto shipped =
        std::make_shared<const TrainedNet>(load_trained_net(name, data, run.folders));
    trials.push_back(shipped_trial(name, shipped, data, images));
    nets.push_back({name, {}, {}});
    for (std::int64_t i = 0; i < fresh; ++i) {
      const std::uint64_t seed = run.seed + static_cast<std::uint64_t>(i);
      trials.push_back(fresh_trial(run, shipped->graph.name, seed, data, images));
      nets.push_back({fmt::format("{} of seed {}", shipped->graph.name, seed), {}, {}});
    }
  }
  const std::vector<std::vector<Pruned>> results = run_typed(run, std::move(trials));
  for (std::size_t i = 0; i < nets.size(); ++i) {
    nets[i].patterns = results[i];
    for (Pruned& pruned : nets[i].patterns)
      if (!std::isfinite(pruned.loss)) pruned.loss = HUGE_VAL;
    nets[i].dense = nets[i].patterns.front();
    nets[i].patterns.erase(nets[i].patterns.begin());
  }
  return nets;
}

}  // namespace numemu::experiments
