// Probes in tiles.
#include "tests/oracle/cuda/ask/probe_tiles.hpp"

#include <algorithm>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::probe_tiles_test {

TEST_CASE("tile p holds probe p in row 0 and column 0, zeros elsewhere", "[fast]") {
  for (const char* each : {"m16n8k32.f32.e4m3.e4m3.f32", "m16n8k16.f32.bf16.bf16.f32",
                           "m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"}) {
    for (const char* kind : {"mma", "mmasp", "mmabs"}) {
      const int at = find_instruction(kind, each);
      if (at < 0) continue;
      const Instruction& i = instructions()[static_cast<std::size_t>(at)];
      const std::vector<Probe> all = probes(i);
      const Batch batch = tiles_of(i, all);
      const TileBytes bytes = tile_bytes(i);
      REQUIRE(batch.count == static_cast<int>(all.size()));
      for (std::size_t p = 0; p < all.size(); ++p) {
        const auto expect = [](const std::vector<std::uint8_t>& tiles, std::size_t from,
                               std::size_t size, const std::vector<std::uint64_t>& codes,
                               int width) {
          std::vector<std::uint8_t> wanted(size, 0);
          for (std::size_t n = 0; n < codes.size(); ++n)
            store_code(wanted.data() + n * static_cast<std::size_t>(width), width, codes[n]);
          return std::equal(wanted.begin(), wanted.end(),
                            tiles.begin() + static_cast<std::ptrdiff_t>(from));
        };
        REQUIRE(expect(batch.a, p * bytes.a, bytes.a, all[p].a, info(i.a).bytes));
        REQUIRE(expect(batch.b, p * bytes.b, bytes.b, all[p].b, info(i.b).bytes));
        REQUIRE(expect(batch.c, p * bytes.c, bytes.c, {all[p].c}, info(i.c).bytes));
        for (std::size_t g = 0; g < bytes.metadata; ++g)
          REQUIRE(batch.metadata[p * bytes.metadata + g] ==
                  (g < all[p].metadata.size() ? all[p].metadata[g] : 0b0100));
        for (std::size_t s = 0; s < all[p].scale_a.size(); ++s) {
          REQUIRE(batch.scale_a[p * bytes.scale_a + s] == all[p].scale_a[s]);
          REQUIRE(batch.scale_b[p * bytes.scale_b + s] == all[p].scale_b[s]);
        }
      }
    }
  }
}

}  // namespace numemu::oracle::recording::probe_tiles_test
