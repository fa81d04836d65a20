#include "tests/oracle/cuda/emulator/unit_answers.hpp"

#include <cstring>

#include "emu/unit/gather.hpp"
#include "formats/format.hpp"

namespace numemu::oracle::recording {
namespace {

/// tf32 registers are float32 codes where the unit drops the low bits itself.
const Format& operand_format(const unit::Unit& unit, Element element) {
  const Format& wide = find_format("f32");
  if (element == Element::tf32 && unit.accepts(wide)) return wide;
  if (element == Element::e4m3) return find_format("float8_e4m3fn");  // OCP's, as the GPU's
  return find_format(info(element).name);
}

/// For each kept element its index in its group, from the four-bit words of one tile.
std::vector<std::uint8_t> kept_indices(const Instruction& i, const std::uint8_t* metadata) {
  std::vector<std::uint8_t> indices;
  for (int word = 0; word < i.m * i.groups(); ++word) {
    const int low = metadata[word] & 3;
    const int high = metadata[word] >> 2 & 3;
    switch (i.sparsity) {
      case Sparsity::dense:
        break;
      case Sparsity::two_of_four:
        indices.insert(indices.end(),
                       {static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high)});
        break;
      case Sparsity::one_of_two:  // 16-bit halves of one element: 0 and 1, or 2 and 3
        indices.push_back(static_cast<std::uint8_t>(low / 2));
        break;
      case Sparsity::pairs_of_four:
        for (const int pair : {low, high})
          indices.insert(indices.end(), {static_cast<std::uint8_t>(2 * pair),
                                         static_cast<std::uint8_t>(2 * pair + 1)});
        break;
    }
  }
  return indices;
}

}  // namespace

std::vector<std::uint8_t> unit_answers(const unit::Unit& unit, Batch& batch, Way way) {
  const Instruction& i = *batch.instruction;
  const TileBytes bytes = tile_bytes(i);
  const unit::Gather rows = unit::Gather::matrix(i.m, i.kept());
  const unit::Gather columns = unit::Gather::matrix(i.n, i.k);
  std::vector<std::uint8_t> d(batch.d.size());
  unit::Gemm g;
  g.m = i.m;
  g.n = i.n;
  g.k = i.k;
  for (int tile = 0; tile < batch.count; ++tile) {
    const auto at = static_cast<std::size_t>(tile);
    g.a = {&operand_format(unit, i.a), batch.a.data() + at * bytes.a, &rows};
    g.b = {&operand_format(unit, i.b), batch.b.data() + at * bytes.b, &columns};
    g.c = batch.c.data() + at * bytes.c;
    g.d = d.data() + at * bytes.d;
    if (i.block != 0) {
      g.scale_a = batch.scale_a.data() + at * bytes.scale_a;
      g.scale_b = batch.scale_b.data() + at * bytes.scale_b;
    }
    const std::vector<std::uint8_t> kept =
        kept_indices(i, batch.metadata.data() + at * bytes.metadata);
    g.kept = kept.empty() ? nullptr : kept.data();
    way == Way::reference ? unit.multiply_reference(g) : unit.multiply(g);
  }
  return d;
}

}  // namespace numemu::oracle::recording
