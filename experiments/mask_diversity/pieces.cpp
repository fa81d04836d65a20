#include "experiments/mask_diversity/pieces.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/stats/chi_square.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/laws.hpp"
#include "experiments/mask_diversity/mask_kinds.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "policies/mask/mask_rule.hpp"

namespace numemu::experiments {
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

struct Kind {
  std::int64_t size = 0;             ///< masks of this kind
  std::int64_t seen = 0;             ///< pieces
  std::vector<std::int64_t> counts;  ///< of the masks of this kind that came
};

/// The census by kinds, in the order of their canonical masks.
std::vector<Kind> kinds_of(const MaskCensus& census, int m) {
  std::vector<MaskKind> kinds(static_cast<std::size_t>(census.distinct()));
  constexpr std::int64_t kWork = 10'000;  // of a mask, in additions
  net::for_each_row(census.distinct(), kWork, [&](std::int64_t i) {
    kinds[static_cast<std::size_t>(i)] = kind_of(census.mask(i), m);
  });
  std::map<std::uint64_t, Kind> sorted;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Kind& kind = sorted[kinds[i].canonical];
    kind.size = kinds[i].size;
    kind.seen += census.counts()[i];
    kind.counts.push_back(census.counts()[i]);
  }
  std::vector<Kind> list;
  for (auto& [canonical, kind] : sorted) list.push_back(std::move(kind));
  return list;
}

/// That masks of one kind are equally likely; null where none could be expected five times.
Json within_kinds(const std::vector<Kind>& kinds) {
  stats::ChiSquare sum;
  for (const Kind& kind : kinds) {
    if (kind.seen < kLeastExpected * kind.size) continue;
    std::vector<std::int64_t> counts = kind.counts;
    counts.resize(static_cast<std::size_t>(kind.size));
    const stats::ChiSquare one = stats::uniform_chi_square(counts);
    sum.statistic += one.statistic;
    sum.degrees += one.degrees;
  }
  if (sum.degrees == 0) return nullptr;
  return stats::chi_square_tail(sum.statistic, static_cast<double>(sum.degrees));
}

/// Entropy of masks where those of one kind are equally likely: H(kind) and the mean log2 of their
/// size; its interval as in emu/stats/entropy.hpp, for -log2 of a mask's probability.
Json kinds_json(const MaskCensus& census, const DiversityPattern& pattern) {
  const std::vector<Kind> kinds = kinds_of(census, pattern.pattern.group);
  const auto n = static_cast<double>(census.pieces());
  const double masks = portable::exp2(pattern.masks().log2);
  std::vector<std::int64_t> counts;
  std::vector<double> equal;
  double mean = 0, square = 0;
  for (const Kind& kind : kinds) {
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
  return {{"distinct", kinds.size()},
          {"coverage", of_kinds.coverage},
          {"entropy", entropy},
          {"low", entropy - half},
          {"high", entropy + half},
          {"p", test.degrees > 0 ? Json(test.p) : Json(nullptr)},
          {"within_p", within_kinds(kinds)}};
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

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

Json to_json(const MaskCensus& census, const DiversityPattern& pattern, bool exchangeable) {
  const stats::Entropy shannon = census.entropy();
  Json json = {{"pieces", census.pieces()},
               {"distinct", census.distinct()},
               {"kept", census.kept()},
               {"plug_in", shannon.plug_in},
               {"corrected", shannon.corrected},
               {"low", shannon.interval.low},
               {"high", shannon.interval.high},
               {"coverage", shannon.coverage},
               {"collisions", 0},
               {"collision_low", nullptr},
               {"collision_bits", nullptr},
               {"collision_high", nullptr},
               {"p", nullptr},
               {"kinds", nullptr}};
  if (census.pieces() > 1) {
    const stats::CollisionEntropy collision = census.collision_entropy();
    json["collisions"] = collision.collisions;
    json["collision_low"] = number(collision.interval.low);
    json["collision_bits"] = number(collision.bits);
    json["collision_high"] = number(collision.interval.high);
  }
  if (const auto masks = testable(pattern, census.pieces())) {
    std::vector<std::int64_t> counts = census.counts();
    if (counts.size() > *masks) throw Error(pattern.name + ": more masks than there can be");
    counts.resize(*masks);
    json["p"] = stats::uniform_chi_square(counts).p;
  }
  if (exchangeable && pattern.family == MaskFamily::transposable &&
      pattern.pattern.group <= kMostKindTile)
    json["kinds"] = kinds_json(census, pattern);
  return json;
}

}  // namespace numemu::experiments
