// The units of NVIDIA's fused steps beside a second fused step, on random dots, on probes and on
// published outputs.
#include "tests/oracle/mma/fused_step.hpp"

#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "emu/oracle/dots/dots.hpp"
#include "emu/oracle/identify/questions.hpp"
#include "emu/oracle/probes/probes.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/unit.hpp"
#include "tests/catch.hpp"
#include "tests/oracle/mma/golden_files.hpp"

namespace numemu::oracle::mma::fused_step_test {
namespace {

std::optional<Encoding> encoding_of(const Format& f) {
  Encoding e{f.exponent_bits, f.mantissa_bits, Encoding::Top::ieee};
  if (f.specials == Specials::nan1) e.top = Encoding::Top::one_nan;
  if (f.specials == Specials::finite) e.top = Encoding::Top::finite;
  const bool known = f.specials == Specials::ieee || e.top != Encoding::Top::ieee;
  return known && f.kind == Kind::floating && f.bias == e.bias() ? std::optional(e) : std::nullopt;
}

/// The parameters of a dense unit without scales whose C enters the first step.
std::optional<FusedSteps> steps_of(const unit::UnitDescription& u) {
  const bool plain = u.core == unit::CoreKind::fused && u.scaling.block == 0 &&
                     u.sparsity.dense() && u.input.format == nullptr && u.a != nullptr &&
                     u.b != nullptr && u.c_entry == unit::CEntry::in_alignment &&
                     u.order == unit::StepOrder::ascending && !u.products_overflow &&
                     u.alignment.zero_exponent == -126 &&
                     // With that floor a zero C of the same exponent changes nothing.
                     (!u.alignment.zero_c_counts || u.alignment.floor == -126);
  if (!plain || !u.name.starts_with("nvidia.")) return std::nullopt;
  const auto a = encoding_of(*u.a), b = encoding_of(*u.b), c = encoding_of(*unit::c_format(u)),
             d = encoding_of(*unit::result_format(u));
  if (!a || !b || !c || !d) return std::nullopt;
  return FusedSteps{*a,
                    *b,
                    *c,
                    *d,
                    unit::products_of_step(u),
                    u.alignment.fraction_bits,
                    u.accumulator.format->mantissa_bits,
                    u.alignment.floor};
}

TEST_CASE("fused units and the second fused step agree on random dots and probes", "[fast]") {
  constexpr std::size_t kDots = 200;
  int units = 0;
  for (const unit::Unit* one : unit::all_units()) {
    const unit::UnitDescription* u = one->description();
    if (u == nullptr) continue;
    const std::optional<FusedSteps> steps = steps_of(*u);
    if (!steps) continue;
    const Ports ports = ports_of(*u, u->k);
    std::vector<Dot> dots;
    for (AskedDot& question : random_questions(ports, 20, 0, kDots))
      dots.push_back(std::move(question.dot));
    for (AskedDot& question : probes(ports)) dots.push_back(std::move(question.dot));
    const std::vector<std::uint64_t> results = evaluate(*u, ports, dots);
    int differ = 0;
    for (std::size_t i = 0; i < dots.size(); ++i)
      differ += fused_dot(*steps, dots[i].a, dots[i].b, dots[i].c) != results[i];
    INFO(u->name);
    CHECK(differ == 0);
    ++units;
  }
  WARN(units << " units compared");
  CHECK(units > 80);
}

/// Element i of an array of codes.
std::uint64_t code_at(const std::string& bytes, const Format& format, std::size_t i) {
  const auto size = static_cast<std::size_t>((format.bits + format.container_shift + 7) / 8);
  std::uint64_t code = 0;
  std::memcpy(&code, bytes.data() + i * size, size);
  return code >> format.container_shift;
}

TEST_CASE("the second fused step gives the published outputs of GPUs", "[fast][shared]") {
  const std::string folder = golden_folder();
  if (folder.empty()) {
    WARN("skipped: no golden vectors, NUMEMU_SHARED holds no golden/mma");
    return;
  }
  std::int64_t records = 0, differ = 0;
  for (const IndexRow& row : read_index(folder + "/index_hw_leeds.tsv")) {
    const GoldenUnit* golden = find_golden_unit(hardware_units(), row.at("file"));
    if (golden == nullptr || !std::filesystem::exists(folder + "/" + row.at("file"))) continue;
    const Batch batch = read_hardware(folder, row, *golden);
    const auto steps = steps_of(*unit::find_unit(batch.unit).description());
    if (!steps) continue;  // FP8 that is lowered
    const auto k = static_cast<std::size_t>(batch.k);
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch.count); ++i) {
      std::vector<std::uint64_t> a, b;
      for (std::size_t p = i * k; p < (i + 1) * k; ++p) {
        a.push_back(code_at(batch.a, *batch.a_format, p));
        b.push_back(code_at(batch.b, *batch.b_format, p));
      }
      const std::uint64_t c = code_at(batch.c, *batch.result, i);
      differ += fused_dot(*steps, a, b, c) != code_at(batch.d, *batch.result, i);
      ++records;
    }
  }
  CHECK(differ == 0);
  CHECK(records > 40000);
}

}  // namespace
}  // namespace numemu::oracle::mma::fused_step_test
