// Hashes: the published answers of FNV-1a, and runs read back.
#include "emu/oracle/recording/hashes.hpp"

#include <filesystem>
#include <functional>
#include <stdexcept>

#include "emu/oracle/recording/whole_file.hpp"
#include "tests/catch.hpp"
#include "tests/emu/oracle/recording/named.hpp"
#include "tests/files.hpp"
#include "tests/oracle/cuda/ask/large_run.hpp"

namespace numemu::oracle::recording::hashes_test {
namespace {

using test::TemporaryFolder;

std::uint64_t hash_of(const std::string& text) {
  return fnv1a(kFnvBasis, reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

// RFC 9923 and the test vectors of its authors (fnv-5.0.4, test_fnv.c).
TEST_CASE("FNV-1a gives the published answers", "[fast]") {
  CHECK(hash_of("") == 0xcbf29ce484222325);
  CHECK(hash_of("a") == 0xaf63dc4c8601ec8c);
  CHECK(hash_of("foobar") == 0x85944171f73967e8);
}

std::vector<HashedRun> two_runs() {
  return {{&instruction("mma", "m16n8k16.f32.f16.f16.f32"), 7, 160, {1, 2, 3, 4, 5}},
          {&instruction("wgmma", "m64n8k16.f32.f16.f16"),
           ~std::uint64_t{0},
           16,
           {0xfedcba9876543210, 6}}};
}

TEST_CASE("hashes come back as they were written", "[fast]") {
  const TemporaryFolder folder;
  const std::string out = folder / "new";
  write_hashes(out, two_runs());
  CHECK(read_whole_file(out + "/hashes.tsv") ==
        "kind\tinstr\tseed\ttiles\tdots\tdots_per_hash\toffset\tcount\n"
        "mma\tm16n8k16.f32.f16.f16.f32\t7\t160\t20480\t4096\t0\t5\n"
        "wgmma\tm64n8k16.f32.f16.f16\t18446744073709551615\t16\t8192\t4096\t5\t2\n");
  const std::string bytes = read_whole_file(out + "/hashes.bin");
  CHECK(bytes.size() == 7 * 8);
  CHECK(bytes.substr(40, 8) == "\x10\x32\x54\x76\x98\xba\xdc\xfe");
  const std::vector<HashedRun> read = read_hashes(out);
  REQUIRE(read.size() == 2);
  for (std::size_t run = 0; run < 2; ++run) {
    CHECK(read[run].instruction == two_runs()[run].instruction);
    CHECK(read[run].seed == two_runs()[run].seed);
    CHECK(read[run].tiles == two_runs()[run].tiles);
    CHECK(read[run].hashes == two_runs()[run].hashes);
  }
}

TEST_CASE("what is wrong in a folder of hashes is said with its place", "[fast]") {
  const TemporaryFolder folder;
  write_hashes(folder.path(), two_runs());
  const std::string table = read_whole_file(folder / "hashes.tsv");
  const std::string bytes = read_whole_file(folder / "hashes.bin");
  const auto error = [&] { return message([&] { read_hashes(folder.path()); }); };
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string bad = table;
    bad.replace(bad.find(from), from.size(), to);
    test::write_file(folder / "hashes.tsv", bad);
    return error();
  };
  CHECK(holds(error_with("tiles", "tile"), "hashes.tsv:1: expected the columns 'kind"));
  CHECK(holds(error_with("wgmma\tm64", "wgmma\tm65"), "hashes.tsv:3: no instruction wgmma m65n8"));
  CHECK(holds(error_with("20480", "20481"),
              "hashes.tsv:2: expected '20480' in column 5, got '20481'"));
  CHECK(holds(error_with("\t160\t20480", "\t18446744073709551615\t18446744073709551488"),
              "hashes.tsv:2: expected at most 1000000000 tiles, got 18446744073709551615"));
  CHECK(holds(error_with("\t0\t5", "\t0\t"), "hashes.tsv:2: expected a number, got ''"));
  CHECK(holds(error_with("\t7\t", "\t77777777777777777777\t"),
              "hashes.tsv:2: expected a number, got '77777777777777777777'"));
  CHECK(holds(error_with("\t5\t2\n", "\t5\t3\n"), "hashes.bin: expected 3 hashes at 5, has 7"));
  CHECK(error_with("kind", "kind") == "no error");
  test::write_file(folder / "hashes.bin", bytes + "x");
  CHECK(holds(error(), "hashes.bin: expected 56 bytes, has 57"));
  std::filesystem::remove(folder / "hashes.bin");
  CHECK(holds(error(), "hashes.bin: cannot read"));
}

}  // namespace
}  // namespace numemu::oracle::recording::hashes_test
