// Step maps: the three numbers that a variant puts at i, at j and into C, and the meaning of D.
#include "tests/oracle/cuda/probes/step_map.hpp"

#include <algorithm>
#include <functional>

#include "tests/oracle/cuda/probes/families.hpp"

namespace numemu::oracle::recording {
namespace {

using namespace probing;

constexpr int kDiagonal = 8;  ///< dots a tile

/// What a variant puts where, and its two answers.
struct Plan {
  Exact first, second, c;
  int neighbour;  ///< of i, that gets -first; 0: none
  Exact yes, no;  ///< D where j is later (halves: apart), and where it is not
};

Plan pair_plan(Exact large, Exact small, Variant variant) {
  if (variant == Variant::c_first) return {large, small, -large, 0, small, zero()};
  return {large, small, zero(), variant == Variant::c_last ? 1 : 2, small, zero()};
}

std::optional<Plan> plan_of(const Instruction& i, Variant variant) {
  if (variant == Variant::in_saturation) {
    if (!i.satfinite) return {};
    const std::int64_t end = 0x7fffffff;
    return Plan{integer(1), integer(-1), integer(end), 0, integer(end - 1), integer(end)};
  }
  if (is_integer(i.a)) return {};
  if (variant == Variant::halves) {
    // Float32 cuts and float16 rounds to nearest: half an ulp down, three eighths up.
    if (i.d == Element::f32)
      return Plan{-power(0),
                  -power(0),
                  scaled(3, 23),
                  0,
                  scaled((3 << 22) - 2, 1),
                  scaled((3 << 22) - 1, 1)};
    if (i.d == Element::f16 && i.c == Element::f16)
      return Plan{scaled(3, -1), scaled(3, -1), scaled(3, 11), 0, scaled(3, 11), scaled(1537, 2)};
    return {};
  }
  if (i.a == Element::f64) return pair_plan(power(60), power(0), variant);
  const std::optional<Exact> small = small_beside(i);
  if (!small || i.scales() > 1) return {};
  return pair_plan(power(top_exponent(i)), *small, variant);
}

struct Factors {
  std::uint64_t a, b;
};

/// Codes of a product, the same at every position; nothing: inexpressible.
std::optional<Factors> factors_of(const Instruction& i, Exact value) {
  const Draft draft = Draft(i, "", "").product(0, value);
  if (!draft.expressible()) return {};
  const Probe probe = draft.probe();
  return Factors{probe.a[0], probe.b[0]};
}

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::uint8_t* code_at(std::vector<std::uint8_t>& codes, Element e, int tile, int rows, int columns,
                      int row, int column) {
  const int place = (tile * rows + row) * columns + column;
  return codes.data() + index(place) * index(info(e).bytes);
}

}  // namespace

const char* name(Variant variant) {
  constexpr const char* kNames[] = {"c-first", "c-last", "c-last-by-two", "halves",
                                    "in-saturation"};
  return kNames[static_cast<int>(variant)];
}

Batch step_map_tiles(const Instruction& i, Variant variant) {
  const std::optional<Plan> plan = plan_of(i, variant);
  if (!plan) return Batch(i, 0);
  const Code c = code_of(i.c, plan->c);
  const auto first = factors_of(i, plan->first), second = factors_of(i, plan->second),
             opposite = factors_of(i, -plan->first);
  if (!c || !first || !second || (plan->neighbour != 0 && !opposite)) return Batch(i, 0);

  const int kept = i.kept();
  Batch batch(i, (kept * kept + kDiagonal - 1) / kDiagonal);
  if (i.block != 0) {
    const auto one = static_cast<std::uint8_t>(*scale_code(i.scale, 0));
    std::fill(batch.scale_a.begin(), batch.scale_a.end(), one);
    std::fill(batch.scale_b.begin(), batch.scale_b.end(), one);
  }
  const std::vector<std::uint8_t> metadata(index(i.groups()), kFirstTwo);
  for (int dot = 0; dot < kept * kept; ++dot) {
    const int tile = dot / kDiagonal, row = dot % kDiagonal;
    const int from = dot / kept, to = dot % kept;
    const auto put = [&](int position, Factors codes) {
      store_code(code_at(batch.a, i.a, tile, i.m, kept, row, position), info(i.a).bytes, codes.a);
      const int k = k_of(i, metadata, position);
      store_code(code_at(batch.b, i.b, tile, i.n, i.k, row, k), info(i.b).bytes, codes.b);
    };
    store_code(code_at(batch.c, i.c, tile, i.m, i.n, row, row), info(i.c).bytes, *c);
    put(to, *second);
    if (plan->neighbour != 0) put(from ^ plan->neighbour, *opposite);
    put(from, *first);
  }
  return batch;
}

namespace {

/// Who shares a step with whom, as an order by first positions; '?' where sharing is not mutual and
/// transitive.
std::vector<std::string> ordered_by_first(const std::vector<std::string>& apart) {
  const std::size_t kept = apart.size();
  std::vector<std::size_t> first(kept);
  for (std::size_t i = 0; i < kept; ++i) first[i] = std::min(i, apart[i].find('0'));
  std::vector<std::string> map = apart;
  for (std::size_t i = 0; i < kept; ++i)
    for (std::size_t j = 0; j < kept; ++j) {
      const char expected = first[i] == first[j] ? '0' : '1';
      map[i][j] = i == j ? '0' : apart[i][j] != expected ? '?' : first[j] > first[i] ? '1' : '0';
    }
  return map;
}

}  // namespace

std::vector<std::string> read_step_map(const Instruction& i, const Batch& batch, Variant variant) {
  const std::optional<Plan> plan = plan_of(i, variant);
  if (!plan || batch.count == 0) return {};
  const int kept = i.kept(), bytes = info(i.d).bytes;
  const std::uint64_t yes = *code_of(i.d, plan->yes), no = *code_of(i.d, plan->no);
  std::vector<std::string> map(index(kept), std::string(index(kept), '0'));
  for (int dot = 0; dot < kept * kept; ++dot) {
    const int tile = dot / kDiagonal, row = dot % kDiagonal;
    const int from = dot / kept, to = dot % kept;
    // One position cannot hold two products.
    if (to == from || (plan->neighbour != 0 && to == (from ^ plan->neighbour))) continue;
    const int place = (tile * i.m + row) * i.n + row;
    const std::uint64_t d = load_code(batch.d.data() + index(place) * index(bytes), bytes);
    map[index(from)][index(to)] = d == yes ? '1' : d == no ? '0' : '?';
  }
  return variant == Variant::halves ? ordered_by_first(map) : map;
}

// Earlier steps have more positions after them, so the counts of '1' number the steps.
std::vector<int> steps_of(const std::vector<std::string>& map) {
  const auto later = [](const std::string& row) { return std::count(row.begin(), row.end(), '1'); };
  std::vector<std::ptrdiff_t> counts;
  for (const std::string& row : map) counts.push_back(later(row));
  std::sort(counts.begin(), counts.end(), std::greater<>());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<int> steps;
  for (const std::string& row : map)
    steps.push_back(
        static_cast<int>(std::find(counts.begin(), counts.end(), later(row)) - counts.begin()));
  for (std::size_t i = 0; i < map.size(); ++i)
    for (std::size_t j = 0; j < map.size(); ++j)
      if (map[i].size() != map.size() || map[i][j] != (steps[j] > steps[i] ? '1' : '0')) return {};
  return steps;
}

}  // namespace numemu::oracle::recording
