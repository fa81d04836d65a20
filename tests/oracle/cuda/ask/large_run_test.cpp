// The large run: its length, and hashes under any division into batches.
#include "tests/oracle/cuda/ask/large_run.hpp"

#include "emu/oracle/recording/data.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"

namespace numemu::oracle::recording::large_run_test {
namespace {

TEST_CASE("the large run is whole in every respect", "[fast]") {
  for (const Instruction& i : instructions()) {
    const std::int64_t tiles = large_run_tiles(i), dots = tiles * i.m * i.n;
    INFO(name(i.kind) << " " << name(i) << " " << tiles);
    CHECK(dots >= 2500000);
    CHECK(dots < 2600000);
    CHECK(dots % kDotsPerHash == 0);
    CHECK(tiles % kDataKinds == 0);
  }
  CHECK(large_run_tiles(instruction("mma", "m16n8k16.f32.f16.f16.f32")) == 19680);
  CHECK(large_run_tiles(instruction("mma", "m8n8k4.f64.f64.f64.f64")) == 39360);
  CHECK(large_run_tiles(instruction("wgmma", "m64n8k16.f32.f16.f16")) == 4920);
}

/// Answers that differ from dot to dot.
Batch answers(const Instruction& i, int tiles, std::size_t first_byte) {
  Batch batch(i, tiles);
  for (std::size_t at = 0; at < batch.d.size(); ++at)
    batch.d[at] = static_cast<std::uint8_t>((at + first_byte) * 2654435761 >> 13);
  return batch;
}

TEST_CASE("hashes are those of 4096 dots each, however the run is cut", "[fast]") {
  for (const char* name : {"m8n8k4.f64.f64.f64.f64", "m16n8k8.f16.f16.f16.f16"}) {
    const Instruction& i = instruction("mma", name);
    const int tiles = 200;
    const Batch whole = answers(i, tiles, 0);
    DotHasher at_once, in_pieces;
    at_once.add(whole);
    int done = 0;
    for (const int size : {1, 63, 64, 2, 70}) {
      in_pieces.add(answers(i, size, static_cast<std::size_t>(done) * tile_bytes(i).d));
      done += size;
    }
    REQUIRE(done == tiles);
    const std::size_t bytes = kDotsPerHash * static_cast<std::size_t>(info(i.d).bytes);
    std::vector<std::uint64_t> expected;
    for (std::size_t at = 0; at + bytes <= whole.d.size(); at += bytes)
      expected.push_back(fnv1a(kFnvBasis, whole.d.data() + at, bytes));
    CHECK(expected.size() == static_cast<std::size_t>(tiles * i.m * i.n / kDotsPerHash));
    CHECK(at_once.hashes() == expected);
    CHECK(in_pieces.hashes() == expected);
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::large_run_test
