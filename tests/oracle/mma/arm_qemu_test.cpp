// Arm's dot products by qemu-user against the units that follow Arm's text, on fresh vectors.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/oracle/mma/live_data.hpp"
#include "tests/oracle/mma/silicon_files.hpp"
#include "tests/oracle/mma/table.hpp"

namespace numemu::oracle::mma::arm_qemu_test {
namespace {

constexpr std::int64_t kRegister = 16;

/// The program of instructions, built for aarch64 in a folder of its own; empty where a compiler or
/// QEMU is missing.
class Emulator {
 public:
  Emulator() {
    char name[] = "/tmp/numemu_qemu_XXXXXX";
    if (mkdtemp(name) == nullptr) return;
    folder_ = name;
    const std::string program = folder_ + "/dots";
    const std::string build = "aarch64-linux-gnu-gcc -O2 -static -march=armv8.6-a+bf16+i8mm -o " +
                              program + " " +
                              NUMEMU_SOURCE "/tests/oracle/mma/arm/dots.c 2>/dev/null";
    if (std::system("command -v qemu-aarch64 >/dev/null 2>&1") != 0) return;
    if (std::system(build.c_str()) != 0) return;
    program_ = program;
  }
  ~Emulator() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  bool present() const { return !program_.empty(); }

  /// D of registers A, B and C.
  std::string run(const std::string& instruction, const std::string& registers) const {
    const std::string in = folder_ + "/in", out = folder_ + "/out";
    std::ofstream(in, std::ios::binary) << registers;
    const std::string command =
        "qemu-aarch64 -cpu max " + program_ + " " + instruction + " <" + in + " >" + out;
    REQUIRE(std::system(command.c_str()) == 0);
    return test::read_file(out);
  }

 private:
  std::string folder_, program_;
};

/// What a register holds of one operand: elements of 16 bytes, or of 1 in each 4 (bfmlalb).
std::string in_registers(const std::string& bytes, bool sparse) {
  if (!sparse) return bytes;
  std::string wide;
  for (std::size_t i = 0; i < bytes.size(); i += 2) wide.append(bytes, i, 2).append(2, '\0');
  return wide;
}

/// Records of every kind in turn, their D from QEMU.
Batch run_records(const Emulator& emulator, const SiliconFile& file, std::int64_t registers,
                  std::uint64_t seed) {
  Batch batch = batch_of(file);
  const std::int64_t of_one = 4 / (file.m * file.n);  // records of a register
  batch.count = registers * of_one;
  Words words(seed);
  const int bytes = batch.a_format->bits / 8;
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const int kind = static_cast<int>(i / of_one % kKinds);
    const TileShape shape{file.m, file.n, file.k};
    const TileData tile = batch.result != nullptr
                              ? float_tile(*batch.a_format, *batch.result, shape, kind, words)
                              : integer_tile(batch.a_format->bits, shape, kind, words);
    batch.a += tile.a;
    batch.c += tile.c;
    // The data have B as k x n, the register as n x k.
    for (std::int64_t n = 0; n < file.n; ++n) {
      for (std::int64_t k = 0; k < file.k; ++k)
        batch.b.append(tile.b, static_cast<std::size_t>((k * file.n + n) * bytes),
                       static_cast<std::size_t>(bytes));
    }
  }
  const bool sparse = file.k * bytes * file.m * of_one < kRegister;
  const std::string a = in_registers(batch.a, sparse), b = in_registers(batch.b, sparse);
  std::string all;
  for (std::int64_t r = 0; r < registers; ++r) {
    for (const std::string* part : {&a, &b, static_cast<const std::string*>(&batch.c)})
      all.append(*part, static_cast<std::size_t>(r * kRegister), kRegister);
  }
  const std::string_view name = file.file.substr(0, file.file.find('.'));
  batch.d = emulator.run(std::string(name), all);
  REQUIRE(batch.d.size() == batch.c.size());
  return batch;
}

void prove(std::int64_t registers, std::uint64_t seed) {
  const Emulator emulator;
  if (!emulator.present()) {
    WARN("skipped: no qemu-aarch64, or no aarch64-linux-gnu-gcc that links statically");
    return;
  }
  Table table;
  for (const SiliconFile& file : emulated_files()) {
    const Batch batch = run_records(emulator, file, registers, ++seed);
    for (const Way way : {Way::reference, Way::fast})
      table.add(std::string(file.file), batch.unit, way, compare(batch, way, NanMatch::bits));
  }
  table.print();
  WARN(table.totals());
  CHECK(table.records() > 0);
  CHECK(table.mismatches() == 0);
}

TEST_CASE("an emulator of Arm: some thousand vectors of each instruction", "[fast]") {
  prove(500, 700);
}

TEST_CASE("an emulator of Arm: a million vectors of each instruction", "[slow]") {
  prove(250000, 800);
}

}  // namespace
}  // namespace numemu::oracle::mma::arm_qemu_test
