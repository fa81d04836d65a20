// Layouts and units of the vectors taken from an Emerald Rapids Xeon and from QEMU.
#include "tests/oracle/mma/silicon_files.hpp"

#include "formats/error.hpp"
#include "tests/files.hpp"
#include "tests/oracle/mma/golden_files.hpp"

namespace numemu::oracle::mma {
namespace {

// clang-format off
constexpr SiliconFile kFiles[] = {
    {"tdpbf16ps_tiles.bin",        "intel.emr.tdpbf16ps.bf16.f32",   "bfloat16", "bfloat16", "float32", 16, 16, 32},
    {"tdpbf16ps_edge_dots_k4.bin", "intel.emr.tdpbf16ps.bf16.f32",   "bfloat16", "bfloat16", "float32", 1, 1, 4},
    {"tdpbssd_tiles.bin",          "intel.emr.tdpbssd.s8.s32",       "int8",     "int8",     "",        16, 16, 64},
    {"tdpbsud_tiles.bin",          "intel.emr.tdpbsud.s8xu8.s32",    "int8",     "uint8",    "",        16, 16, 64},
    {"tdpbusd_tiles.bin",          "intel.emr.tdpbusd.u8xs8.s32",    "uint8",    "int8",     "",        16, 16, 64},
    {"tdpbuud_tiles.bin",          "intel.emr.tdpbuud.u8.s32",       "uint8",    "uint8",    "",        16, 16, 64},
    {"vdpbf16ps_dots_k2.bin",      "intel.emr.vdpbf16ps.bf16.f32",   "bfloat16", "bfloat16", "float32", 1, 1, 2},
    {"vpdpbusd.bin",               "intel.emr.vpdpbusd.u8xs8.s32",   "uint8",    "int8",     "",        1, 1, 4},
    {"vpdpbusds.bin",              "intel.emr.vpdpbusds.u8xs8.s32",  "uint8",    "int8",     "",        1, 1, 4},
    {"vpdpwssd.bin",               "intel.emr.vpdpwssd.s16.s32",     "int16",    "int16",    "",        1, 1, 2},
    {"vpdpwssds.bin",              "intel.emr.vpdpwssds.s16.s32",    "int16",    "int16",    "",        1, 1, 2},
    {"vpmaddubsw.bin",             "intel.emr.vpmaddubsw.u8xs8.s32", "uint8",   "int8",     "",        1, 1, 4},
    {"vfmadd231ph.bin",            "intel.emr.vfmadd231ph.f16.f16",  "float16",  "float16",  "float16", 1, 1, 1},
};

constexpr SiliconFile kEmulated[] = {
    {"sdot.bin",    "arm.neoverse.sdot.s8.s32",       "int8",     "int8",     "",        1, 1, 4, true},
    {"udot.bin",    "arm.neoverse.udot.u8.s32",       "uint8",    "uint8",    "",        1, 1, 4, true},
    {"usdot.bin",   "arm.neoverse.usdot.u8xs8.s32",   "uint8",    "int8",     "",        1, 1, 4, true},
    {"smmla.bin",   "arm.neoverse.smmla.s8.s32",      "int8",     "int8",     "",        2, 2, 8, true},
    {"ummla.bin",   "arm.neoverse.ummla.u8.s32",      "uint8",    "uint8",    "",        2, 2, 8, true},
    {"usmmla.bin",  "arm.neoverse.usmmla.u8xs8.s32",  "uint8",    "int8",     "",        2, 2, 8, true},
    {"bfdot.bin",   "arm.neoverse.bfdot.bf16.f32",    "bfloat16", "bfloat16", "float32", 1, 1, 2, true},
    {"bfmmla.bin",  "arm.neoverse.bfmmla.bf16.f32",   "bfloat16", "bfloat16", "float32", 2, 2, 4, true},
    {"bfmlalb.bin", "arm.neoverse.bfmlal.bf16.f32",   "bfloat16", "bfloat16", "float32", 1, 1, 1, true},
};
// clang-format on

}  // namespace

std::span<const SiliconFile> silicon_files() { return kFiles; }

std::span<const SiliconFile> emulated_files() { return kEmulated; }

std::string silicon_folder() { return NUMEMU_SOURCE "/data/vectors/emr"; }
std::string emulated_folder() { return NUMEMU_SOURCE "/data/vectors/qemu"; }

Batch batch_of(const SiliconFile& file) {
  Batch batch;
  batch.unit = file.unit;
  batch.m = file.m;
  batch.n = file.n;
  batch.k = file.k;
  batch.a_format = &find_format(file.a);
  batch.b_format = &find_format(file.b);
  batch.b_is_k_by_n = !file.b_is_n_by_k;
  batch.result = file.result.empty() ? nullptr : &find_format(file.result);
  return batch;
}

Batch read_recorded(const SiliconFile& file, const std::string& folder) {
  Batch batch = batch_of(file);
  const std::int64_t a = file.m * file.k * batch.a_format->bits / 8,
                     b = file.n * file.k * batch.b_format->bits / 8,
                     c = file.m * file.n * (batch.result == nullptr ? 4 : batch.result->bits / 8);
  const std::string bytes = test::read_file(std::string(folder).append("/").append(file.file));
  const std::int64_t record = a + b + 2 * c;
  if (bytes.empty() || std::ssize(bytes) % record != 0)
    throw Error(std::string(file.file) + ": expected records of " + std::to_string(record) +
                " bytes, has " + std::to_string(bytes.size()));
  const auto fields = split_records(bytes, {a, b, c, c});
  batch.count = std::ssize(bytes) / record;
  batch.a = fields[0];
  batch.b = fields[1];
  batch.c = fields[2];
  batch.d = fields[3];
  return batch;
}

}  // namespace numemu::oracle::mma
