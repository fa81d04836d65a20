#include "tests/oracle/cuda/replay/tile_answers.hpp"

namespace numemu::oracle::recording {

Dot dot_of(const Batch& batch, int tile, int row, int column) {
  const Instruction& i = *batch.instruction;
  const TileBytes bytes = tile_bytes(i);
  const auto at = [tile](const std::vector<std::uint8_t>& all, std::size_t tile_size, int line,
                         int line_size) {
    return all.data() + static_cast<std::size_t>(tile) * tile_size +
           static_cast<std::size_t>(line) * static_cast<std::size_t>(line_size);
  };
  return {&i,
          at(batch.a, bytes.a, row, i.kept() * info(i.a).bytes),
          at(batch.b, bytes.b, column, i.k * info(i.b).bytes),
          at(batch.c, bytes.c, row * i.n + column, info(i.c).bytes),
          at(batch.metadata, bytes.metadata, row, i.groups()),
          at(batch.scale_a, bytes.scale_a, row, i.scales()),
          at(batch.scale_b, bytes.scale_b, column, i.scales())};
}

std::vector<std::uint8_t> tile_answers(const Rule& rule, const Batch& batch) {
  const Instruction& i = *batch.instruction;
  const int bytes = info(i.d).bytes;
  std::vector<std::uint8_t> d(batch.d.size());
  std::uint8_t* out = d.data();
  for (int tile = 0; tile < batch.count; ++tile)
    for (int row = 0; row < i.m; ++row)
      for (int column = 0; column < i.n; ++column, out += bytes)
        store_code(out, bytes, answer(rule, dot_of(batch, tile, row, column)));
  return d;
}

}  // namespace numemu::oracle::recording
