#include "tests/oracle/cuda/ask/probe_tiles.hpp"

#include <algorithm>

namespace numemu::oracle::recording {

Batch tiles_of(const Instruction& i, const std::vector<Probe>& probes) {
  Batch batch(i, static_cast<int>(probes.size()));
  const TileBytes bytes = tile_bytes(i);
  const auto copy = [](std::vector<std::uint8_t>& to, std::size_t at,
                       const std::vector<std::uint8_t>& from) {
    std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const auto store = [](std::uint8_t* to, Element e, const std::vector<std::uint64_t>& codes) {
    for (const std::uint64_t code : codes) {
      store_code(to, info(e).bytes, code);
      to += info(e).bytes;
    }
  };
  for (std::size_t p = 0; p < probes.size(); ++p) {
    store(batch.a.data() + p * bytes.a, i.a, probes[p].a);
    store(batch.b.data() + p * bytes.b, i.b, probes[p].b);
    store(batch.c.data() + p * bytes.c, i.c, {probes[p].c});
    copy(batch.metadata, p * bytes.metadata, probes[p].metadata);
    copy(batch.scale_a, p * bytes.scale_a, probes[p].scale_a);
    copy(batch.scale_b, p * bytes.scale_b, probes[p].scale_b);
  }
  return batch;
}

}  // namespace numemu::oracle::recording
