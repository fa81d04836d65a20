// Cold: a negligible share of any run (docs/build.md).
#include "emu/oracle/identify/rival.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "emu/oracle/identify/questions.hpp"
#include "emu/unit/description/fields.hpp"

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
    for (const Question& question : questions) dots.push_back(question.dot);
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

}  // namespace numemu::oracle
