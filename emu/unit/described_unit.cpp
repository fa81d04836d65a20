// Described units: their rows, the operands they accept, and the choice of the fast path.
#include "emu/unit/described_unit.hpp"

#include <utility>

#include "emu/unit/description/words.hpp"
#include "emu/unit/fast_paths.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/prepared_operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

std::string operand_name(const UnitDescription& u) {
  if (u.a == nullptr || u.b == nullptr) return "any";
  return u.a == u.b ? u.a->name : u.a->name + " x " + u.b->name;
}

class DescribedUnit final : public Unit {
 public:
  DescribedUnit(UnitDescription description, UnitRow row)
      : description_(std::move(description)),
        changed_(changed_field_set(description_)),
        row_(std::move(row)) {
    row_.name = description_.name;
    row_.operand = operand_name(description_);
    row_.result = description_.d != nullptr ? description_.d->name
                                            : register_name(result_register(description_));
    row_.accumulation = description_line(description_);
  }
  const UnitRow& row() const override { return row_; }
  const UnitDescription* description() const override { return &description_; }
  bool accepts_a(const Format& f) const override { return takes(description_.a, f); }
  bool accepts_b(const Format& f) const override { return takes(description_.b, f); }

  std::string operand_rule() const override {
    if (description_.a != nullptr && description_.b != nullptr) return row_.operand;
    return description_.core == CoreKind::exact
               ? "any format of at most 16 bits, tfloat32 or float32"
               : "any format of at most 16 bits whose values are float32 values, tfloat32 or "
                 "float32";
  }

  void multiply(const Gemm& gemm) const override {
    check_product(*this, gemm);
    if (gemm.m == 0 || gemm.n == 0) return;
    if (gemm.k == 0 || !multiply_fast(description_, changed_, gemm))
      multiply_by_reference(description_, gemm);
  }

  void multiply_reference(const Gemm& gemm) const override {
    check_product(*this, gemm);
    if (gemm.m != 0 && gemm.n != 0) multiply_by_reference(description_, gemm);
  }

 private:
  bool takes(const Format* wanted, const Format& f) const {
    if (wanted != nullptr) return wanted->name == f.name;
    const auto container = container_of(f);
    if (!container || *container == Container::doubles || f.kind == Kind::codebook) return false;
    return description_.core == CoreKind::exact || fits_float32(f);
  }

  UnitDescription description_;
  FieldSet changed_;
  UnitRow row_;
};

void check_scales(const Unit& unit, const Gemm& gemm) {
  if (gemm.k == 0) return;
  const Scaling& scaling = unit.description()->scaling;
  const bool wanted = scaling.block != 0;
  const bool given_a = gemm.scale_a != nullptr, given_b = gemm.scale_b != nullptr;
  if (given_a == wanted && given_b == wanted) return;
  if (!wanted) throw Error("unit " + unit.row().name + " has no block scales: expected none");
  throw Error("unit " + unit.row().name + ": expected scales of A and B, one " +
              scaling.format->name + " code per " + std::to_string(scaling.block) +
              " elements along K");
}

void check_sparsity(const Unit& unit, const Gemm& gemm) {
  const Sparsity& sparsity = unit.description()->sparsity;
  if (sparsity.dense()) {
    if (gemm.kept != nullptr)
      throw Error("unit " + unit.row().name + " is dense: expected no metadata");
    return;
  }
  const std::string pattern = std::to_string(sparsity.kept) + ":" + std::to_string(sparsity.group);
  if (gemm.kept == nullptr)
    throw Error("unit " + unit.row().name + ": expected the metadata of its " + pattern + " A");
  if (gemm.k % sparsity.group != 0) {
    throw Error("unit " + unit.row().name + ": K is " + std::to_string(gemm.k) +
                ", expected a multiple of " + std::to_string(sparsity.group) + " (" + pattern +
                ")");
  }
}

/// A sign or a code that is looked up has no +0 to pad with.
void check_padding(const Unit& unit, const Gemm& gemm) {
  const CoreKind core = unit.description()->core;
  if (core != CoreKind::xnor && core != CoreKind::table) return;
  if (gemm.a.gather->padding.identity() && gemm.b.gather->padding.identity()) return;
  throw Error("unit " + unit.row().name + ": expected operands without padding");
}

}  // namespace

void check_product(const Unit& unit, const Gemm& gemm) {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0) {
    throw Error("unit " + unit.row().name + ": negative size " + std::to_string(gemm.m) + " x " +
                std::to_string(gemm.n) + " x " + std::to_string(gemm.k));
  }
  unit.require_operands(*gemm.a.format, *gemm.b.format);
  if (gemm.a.prepared != nullptr)
    gemm.a.prepared->require(unit, gemm.a, gemm.m, gemm.k, gemm.scale_a);
  if (gemm.b.prepared != nullptr)
    gemm.b.prepared->require(unit, gemm.b, gemm.n, gemm.k, gemm.scale_b);
  if (unit.description() == nullptr) return;
  check_scales(unit, gemm);
  check_sparsity(unit, gemm);
  check_padding(unit, gemm);
}

void multiply_by_reference(const UnitDescription& description, const Gemm& gemm) {
  const ReferenceDot dot(description, gemm);
  for_each_tile(gemm.m, gemm.n, gemm.k, kReferenceTile, [&](const Tile& tile) {
    for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) {
      for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j) dot.write(i, j);
    }
  });
}

std::unique_ptr<Unit> described_unit(UnitDescription description, UnitRow row) {
  return std::make_unique<DescribedUnit>(std::move(description), std::move(row));
}

}  // namespace numemu::unit
