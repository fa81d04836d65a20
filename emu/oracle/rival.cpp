#include "emu/oracle/rival.hpp"

#include <algorithm>
#include <set>

#include "emu/oracle/questions.hpp"
#include "emu/unit/description/fields.hpp"

namespace numemu::oracle {
namespace {

constexpr std::size_t kRandom = 240;
constexpr int kLeastDepth = 8, kMostDepth = 128;
constexpr int kMostPromoted = 512;  ///< the depth for a second level of accumulation

}  // namespace

int telling_depth(const unit::UnitDescription& u) {
  const int step = std::max({unit::products_of_step(u), u.chain.chunk, u.scaling.block});
  const int depth = std::max(std::clamp(2 * step, kLeastDepth, kMostDepth),
                             2 * std::min(u.outer.every, kMostPromoted / 2));
  const int group = u.sparsity.dense() ? 1 : u.sparsity.group / u.sparsity.kept;
  return depth * group;
}

std::vector<Rival> rivals_of(const unit::UnitDescription& u, int depth) {
  const Ports ports = ports_of(u, depth != 0 ? depth : telling_depth(u));
  std::vector<Dot> dots;
  for (const auto& questions :
       {constructed_questions(ports), random_questions(ports, 0, 0, kRandom)}) {
    for (const Question& question : questions) dots.push_back(question.dot);
  }
  std::vector<Rival> patches = patches_of(u);
  std::erase_if(patches, [&](const Rival& patch) { return !fits(patch.description, ports); });
  std::vector<std::vector<std::uint64_t>> results(patches.size());
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < patches.size(); ++i)
    results[i] = evaluate(patches[i].description, ports, dots);
  std::set<std::vector<std::uint64_t>> seen = {evaluate(u, ports, dots)};
  std::vector<Rival> rivals;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    if (seen.insert(std::move(results[i])).second) rivals.push_back(std::move(patches[i]));
  }
  return rivals;
}

}  // namespace numemu::oracle
