// The inputs on which the rival models of NVIDIA's units differ: each preset gives the result
// of its model.
#include <sstream>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/golden_files.hpp"

namespace numemu::oracle::mma::probes_test {
namespace {

/// Codes separated by commas, in their containers.
std::string codes(const std::string& list) {
  std::string bytes;
  std::istringstream in(list);
  for (std::string code; std::getline(in, code, ',');) {
    const unsigned long value = std::stoul(code, nullptr, 16);
    bytes += static_cast<char>(value & 255);
    bytes += static_cast<char>(value >> 8);
  }
  return bytes;
}

std::string one_code(const std::string& hex, std::size_t bytes) {
  const unsigned long value = std::stoul(hex, nullptr, 16);
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
  return out;
}

/// The dot of one probe; D is the prediction of that column.
Batch read_probe(const IndexRow& row, const char* column, const char* modifier) {
  const bool halves = row.at("fmt") == "f16";
  Batch batch;
  batch.unit =
      (halves ? "nvidia.h100.mma.f16.f16" : "nvidia.h100.mma.bf16.f32") + std::string(modifier);
  batch.count = 1;
  batch.k = std::stoll(row.at("K"));
  batch.a_format = batch.b_format = &find_format(halves ? "float16" : "bfloat16");
  batch.result = &find_format(halves ? "float16" : "float32");
  batch.a = codes(row.at("a_hex"));
  batch.b = codes(row.at("b_hex"));
  batch.c = one_code(row.at("c_hex"), halves ? 2 : 4);
  batch.d = one_code(row.at(column), halves ? 2 : 4);
  if (std::ssize(batch.a) != 2 * batch.k || batch.a.size() != batch.b.size())
    throw Error(row.at("id") + ": expected 16 codes of A and B");
  return batch;
}

/// The predictions do not speak about the sign of a zero.
std::string without_sign_of_zero(std::string d) {
  const auto top = static_cast<unsigned char>(d.back());
  const bool zero = d.find_first_not_of('\0') >= d.size() - 1 && (top & 0x7f) == 0;
  if (zero) d.back() = '\0';
  return d;
}

void prove(const char* column, const char* modifier) {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN("skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma");
    return;
  }
  const auto probes = read_index(folder + "/probes_hopper.tsv");
  std::string differing, signs;
  for (const IndexRow& row : probes) {
    const Batch batch = read_probe(row, column, modifier);
    for (const Way way : {Way::reference, Way::fast}) {
      const std::string d = computed(batch, way);
      if (without_sign_of_zero(d) != without_sign_of_zero(batch.d)) {
        differing += " " + row.at("id") + " (" + to_string(way) + ")";
      } else if (d != batch.d) {
        signs += " " + row.at("id") + " (" + to_string(way) + ")";
      }
    }
  }
  if (!signs.empty()) WARN("zeros of the other sign than in " << column << ":" << signs);
  INFO("differing from " << column << ":" << differing);
  CHECK(probes.size() == 43);
  CHECK(differing.empty());
}

TEST_CASE("probes of Hopper: the modifier mmasim is the MMA-Sim model", "[fast][shared]") {
  prove("pred_mmasim_zero_exp", ".mmasim");
}

TEST_CASE("probes of Hopper: the modifier leeds is the Leeds model", "[fast][shared]") {
  prove("pred_leeds_floor", ".leeds");
}

TEST_CASE("an H100's answer to tiny bfloat16 products is that of the floor -133", "[fast]") {
  // MATLAB-tensor-core, issue 7 (March 2026): C = 0, D = 11 x 2^-149.
  Batch batch;
  batch.count = 1;
  batch.k = 16;
  batch.a_format = batch.b_format = &find_format("bfloat16");
  batch.result = &find_format("float32");
  batch.a =
      codes("9b94,19f3,9a2e,1a67,9a25,9b4e,9b29,9a33,99e0,1a14,9914,99d1,9ae9,1b1a,9a9c,1b3a");
  batch.b =
      codes("9aaf,99f3,9acc,1b7c,19ed,1b25,9a1b,9a20,9af7,9a48,1ae1,1b32,1b12,1b0e,9a68,1735");
  batch.c = batch.d = one_code("0", 4);
  const std::string eleven = one_code("b", 4), ten = one_code("a", 4);
  for (const Way way : {Way::reference, Way::fast}) {
    const auto answer = [&](const std::string& unit) {
      batch.unit = unit;
      return computed(batch, way);
    };
    for (const char* unit :
         {"nvidia.h100.mma.bf16.f32", "nvidia.h100.wgmma.bf16.f32", "nvidia.h200.mma.bf16.f32",
          "nvidia.b200.mma.bf16.f32", "nvidia.h100.mma.bf16.f32.leeds"}) {
      INFO(unit);
      CHECK(answer(unit) == eleven);
    }
    CHECK(answer("nvidia.h100.mma.bf16.f32.mmasim") == ten);
  }
}

}  // namespace
}  // namespace numemu::oracle::mma::probes_test
