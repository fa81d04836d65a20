#include "emu/oracle/replay/instruction_unit.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <span>

#include "emu/oracle/identify/protocol.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/unit/batch.hpp"
#include "emu/unit/gather.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using recording::Element;
using recording::Instruction;
using recording::Kind;
using recording::Sparsity;

/// By its whole name; short forms would find others.
const unit::Unit* unit_named(const std::string& name) {
  try {
    const unit::Unit* const found = unit::known_unit(name);
    return found != nullptr && found->row().name == name ? found : nullptr;
  } catch (const Error&) {
    return nullptr;
  }
}

const char* family(Kind kind) {
  switch (kind) {
    case Kind::mma:
    case Kind::mmasp:
    case Kind::mmabs:
      return "mma";
    case Kind::wgmma:
    case Kind::wgmmasp:
      return "wgmma";
    default:
      return "tcgen05";
  }
}

std::string types(const Instruction& i) {
  std::string text = info(i.a).name;
  if (i.b != i.a) text += std::string("x") + info(i.b).name;
  text += std::string(".") + info(i.d).name;
  if (i.block != 0) text += (i.scale == Element::ue4m3 ? ".nv" : ".mx") + std::to_string(i.block);
  if (i.sparsity != Sparsity::dense) text += ".sp24";
  return text + (i.satfinite ? ".satfinite" : "");
}

const unit::Unit* catalogue_unit(const std::string& chip, const Instruction& i) {
  // Chips after Volta lower m8n8k4 of float16 to float32 arithmetic.
  const bool quad_pair = i.a == Element::f16 && i.k == 4;
  if (i.kind == Kind::cvt || (quad_pair && chip != "V100")) return nullptr;
  std::string prefix = "nvidia." + chip + "." + family(i.kind);
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const std::string& depth : {".k" + std::to_string(i.kept()) + ".", std::string(".")}) {
    if (const unit::Unit* found = unit_named(prefix + depth + types(i))) return found;
  }
  return nullptr;
}

/// For each kept element its index in its group, from words of four bits (PTX ISA, "Sparse matrix
/// storage").
std::vector<std::uint8_t> kept_indices(const Instruction& i,
                                       std::span<const std::uint8_t> metadata) {
  std::vector<std::uint8_t> indices;
  const auto add = [&](int index) { indices.push_back(static_cast<std::uint8_t>(index)); };
  for (const std::uint8_t word : metadata) {
    for (const int part : {word & 3, word >> 2 & 3}) {
      if (i.sparsity == Sparsity::two_of_four) add(part);
      // Two 16-bit halves of one element: 0 and 1, or 2 and 3.
      if (i.sparsity == Sparsity::one_of_two && part % 2 == 0) add(part / 2);
      if (i.sparsity != Sparsity::pairs_of_four) continue;
      add(2 * part);
      add(2 * part + 1);
    }
  }
  return indices;
}

}  // namespace

std::optional<unit::UnitDescription> unit_of(const std::string& chip, const Instruction& i) {
  const unit::Unit* const found = catalogue_unit(chip, i);
  if (found == nullptr) return std::nullopt;
  unit::UnitDescription u = *found->description();
  u.a = &element_format(i.a);
  u.b = &element_format(i.b);
  if (i.c != i.d) u.c = &element_format(i.c);
  // A shorter instruction is no longer one that is padded: of zeros only, even their sign tells.
  if (u.k > i.kept()) {
    const bool halves = u.order == unit::StepOrder::pairs_mod4;
    u.k = i.kept();
    u.group = std::min(u.group, halves ? u.k / 2 : u.k);
  }
  return u;
}

Subject subject_of(const unit::Unit& unit, const Instruction& i) {
  const unit::UnitDescription& u = *unit.description();
  const unit::Register& result = unit::result_register(u);
  return {Operation::unit,
          &unit,
          u.a != nullptr ? u.a : &element_format(i.a),
          u.b != nullptr ? u.b : &element_format(i.b),
          unit.d_format(),
          result.rounding,
          result.overflow,
          i.k};
}

Layout container_layout(const Instruction& i) {
  Layout layout = record_layout(ports_of(i));
  std::erase_if(layout, [](const Field& field) { return field.name == "flags"; });
  for (Field& field : layout) {
    const int shift = field.format != nullptr ? field.format->container_shift : 0;
    field.bits = static_cast<int>(std::bit_ceil(static_cast<unsigned>(field.bits + shift)));
    field.bits = std::max(field.bits, 8);
    field.format = nullptr;
  }
  return layout;
}

void put_record(const Instruction& i, const recording::RecordView& from, Records& to,
                std::int64_t record) {
  std::size_t f = 0;
  const auto put = [&](const std::uint8_t* codes, Element e, int count) {
    const int bytes = info(e).bytes;
    std::uint64_t* const at = to.columns[f++].data() + record * count;
    for (int j = 0; j < count; ++j) at[j] = recording::load_code(codes + j * bytes, bytes);
  };
  put(from.a, i.a, i.kept());
  put(from.b, i.b, i.k);
  if (i.block != 0) {
    put(from.scale_a, i.scale, i.scales());
    put(from.scale_b, i.scale, i.scales());
  }
  if (i.sparsity != Sparsity::dense) {
    const auto kept = kept_indices(i, {from.metadata, static_cast<std::size_t>(i.groups())});
    put(kept.data(), Element::u8, i.kept());
  }
  put(from.c, i.c, 1);
  put(from.d, i.d, 1);
}

Records records_of(const recording::Batch& batch) {
  const Instruction& i = *batch.instruction;
  Records records(container_layout(i), std::int64_t{batch.count} * i.m * i.n);
  const auto line = [](const std::vector<std::uint8_t>& codes, std::int64_t number, int bytes) {
    return codes.data() + number * bytes;
  };
  for (std::int64_t dot = 0; dot < records.size; ++dot) {
    const std::int64_t row = dot / i.n, column = dot / (i.m * i.n) * i.n + dot % i.n;
    put_record(i,
               {line(batch.a, row, i.kept() * info(i.a).bytes),
                line(batch.b, column, i.k * info(i.b).bytes), line(batch.c, dot, info(i.c).bytes),
                line(batch.scale_a, row, i.scales()), line(batch.scale_b, column, i.scales()),
                line(batch.metadata, row, i.groups()), line(batch.d, dot, info(i.d).bytes)},
               records, dot);
  }
  return records;
}

std::vector<std::uint8_t> in_containers(const Instruction& i, const Records& records) {
  const int bytes = info(i.d).bytes;
  std::vector<std::uint8_t> d(static_cast<std::size_t>(records.size * bytes));
  for (std::int64_t dot = 0; dot < records.size; ++dot)
    recording::store_code(d.data() + dot * bytes, bytes,
                          records.columns.back()[static_cast<std::size_t>(dot)]);
  return d;
}

std::vector<std::uint8_t> results_of(const unit::Unit& unit, const recording::Batch& batch,
                                     Path path) {
  const Instruction& i = *batch.instruction;
  const unit::Gather rows = unit::Gather::matrix(i.m, i.kept());
  const unit::Gather columns = unit::Gather::matrix(i.n, i.k);
  const unit::UnitDescription& u = *unit.description();
  const std::vector<std::uint8_t> kept = kept_indices(i, batch.metadata);
  std::vector<std::uint8_t> d(batch.d.size());
  unit::Batch products;
  unit::Gemm& g = products.first;
  g.m = i.m;
  g.n = i.n;
  g.k = i.k;
  g.a = {u.a != nullptr ? u.a : &element_format(i.a), batch.a.data(), &rows};
  g.b = {u.b != nullptr ? u.b : &element_format(i.b), batch.b.data(), &columns};
  g.c = batch.c.data();
  g.d = d.data();
  if (i.block != 0) {
    g.scale_a = batch.scale_a.data();
    g.scale_b = batch.scale_b.data();
  }
  if (i.sparsity != Sparsity::dense) g.kept = kept.data();
  products.count = batch.count;
  products.a_stride = std::int64_t{i.m} * i.kept();
  products.b_stride = std::int64_t{i.n} * i.k;
  path == Path::fast ? unit::multiply_batch(unit, products)
                     : unit::multiply_batch_reference(unit, products);
  return d;
}

}  // namespace numemu::oracle
