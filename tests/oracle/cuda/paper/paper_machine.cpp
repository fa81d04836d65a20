// The instruction itself: reads registers and writes them by ptx_fragments, never by fragment.hpp.
#include "tests/oracle/cuda/paper/paper_machine.hpp"

#include <stdexcept>
#include <utility>

#include "emu/oracle/recording/chip.hpp"
#include "tests/oracle/cuda/paper/ptx_fragments.hpp"

namespace numemu::oracle::recording {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// The codes of one tile, as Batch stores them.
struct Matrices {
  std::vector<std::uint8_t> a, b, c, metadata, scale_a, scale_b;
};

/// The registers of every lane as a matrix of codes, [row][column].
std::vector<std::uint8_t> matrix(const ThreadValue& table, const std::vector<std::uint64_t>& held,
                                 int columns, Element e, int bits) {
  const int bytes = info(e).bytes;
  std::vector<std::uint8_t> codes(at(table.rows * columns * bytes));
  for (int lane = 0; lane < table.lanes(); ++lane) {
    if (!table.first(lane)) continue;
    for (int v = 0; v < table.values(); ++v) {
      const Place place = table.place(lane, v);
      store_code(&codes.at(at((place.row * columns + place.column) * bytes)), bytes,
                 read_slot(&held.at(at(lane * table.registers)), register_bits(e), bits, e, v));
    }
  }
  return codes;
}

/// The same of words of metadata (4 bits) and scales (8): one register a lane.
std::vector<std::uint8_t> narrow_matrix(const ThreadValue& table,
                                        const std::vector<std::uint32_t>& held, int columns,
                                        int bits) {
  std::vector<std::uint8_t> codes(at(table.rows * columns));
  if (table.rows == 0) return codes;
  for (int lane = 0; lane < table.lanes(); ++lane) {
    if (!table.first(lane)) continue;
    for (int v = 0; v < table.values(); ++v) {
      const Place place = table.place(lane, v);
      codes.at(at(place.row * columns + place.column)) =
          static_cast<std::uint8_t>(held.at(at(lane)) >> (v * bits) & ((1U << bits) - 1));
    }
  }
  return codes;
}

/// B where the descriptor says: CUTLASS mma_sm90_desc.hpp (bits) and mma_traits_sm90_gmma.hpp,
/// make_gmma_desc<Major::K>, INTERLEAVE: ((8,n),2):((1,SBO),LBO) in units of 16 bytes.
std::vector<std::uint8_t> described_b(const Instruction& i, const TileRegisters& held) {
  const auto field = [&held](int bit) {
    return static_cast<std::size_t>(held.descriptor >> bit & 0x3FFF);
  };
  const std::size_t start = field(0), leading = field(16), stride = field(32);
  const std::size_t row_bytes = at(i.k * info(i.b).bytes);
  std::vector<std::uint8_t> codes(at(i.n) * row_bytes);
  for (std::size_t n = 0; n < at(i.n); ++n)
    for (std::size_t byte = 0; byte < row_bytes; ++byte)
      codes[n * row_bytes + byte] =
          held.shared.at(16 * (start + n % 8 + n / 8 * stride + byte / 16 * leading) + byte % 16);
  return codes;
}

Matrices read(const Instruction& i, const PtxFragments& tables, const TileRegisters& held) {
  const bool in_registers = tables.b.rows != 0;
  return {matrix(tables.a, held.a, i.kept(), i.a, tables.a_bits),
          in_registers ? matrix(tables.b, held.b, i.k, i.b, tables.b_bits) : described_b(i, held),
          matrix(tables.c, held.c, i.n, i.c, info(i.c).bits),
          narrow_matrix(tables.metadata, held.metadata, i.groups(), 4),
          narrow_matrix(tables.scale_a, held.scale_a, i.scales(), 8),
          narrow_matrix(tables.scale_b, held.scale_b, i.scales(), 8)};
}

/// The dot of an element of D; the arrays are of one tile.
Dot dot_at(const Instruction& i, const Tiles& tile, Place place) {
  const TileBytes bytes = tile_bytes(i);
  const auto line = [](const std::uint8_t* codes, std::size_t size, int lines, int number) {
    return codes + size / at(lines) * at(number);
  };
  return {&i,
          line(tile.a, bytes.a, i.m, place.row),
          line(tile.b, bytes.b, i.n, place.column),
          line(tile.c, bytes.c, i.m * i.n, place.row * i.n + place.column),
          line(tile.metadata, bytes.metadata, i.m, place.row),
          line(tile.scale_a, bytes.scale_a, i.m, place.row),
          line(tile.scale_b, bytes.scale_b, i.n, place.column)};
}

Tiles tile_of(const Matrices& codes) {
  return {codes.a.data(),       codes.b.data(),       codes.c.data(), codes.metadata.data(),
          codes.scale_a.data(), codes.scale_b.data(), nullptr,        1};
}

}  // namespace

PaperMachine::PaperMachine(std::string chip, std::size_t rule)
    : chip_(std::move(chip)), rule_(rule) {}

bool PaperMachine::has(const Instruction& i) const {
  return recording::has(i, capability_of(chip_)) && rules(chip_, i).size() > rule_;
}

std::uint64_t PaperMachine::dot(const Dot& dot) const { return answer(asked_, dot); }

void PaperMachine::run(Batch& batch) {
  const Instruction& i = *batch.instruction;
  if (!has(i))
    throw std::runtime_error(name() + ": expected one of its instructions, got " +
                             recording::name(i));
  const std::vector<Rule> known = rules(chip_, i);
  asked_ = known.size() > rule_ ? known[rule_] : Rule();
  if (!has_fragments(i.kind)) {
    for (int t = 0; t < batch.count; ++t) {
      const Tiles tile = recording::tile_of(batch, t);
      for (int place = 0; place < i.m * i.n; ++place)
        store_code(tile.d + place * info(i.d).bytes, info(i.d).bytes,
                   dot(dot_at(i, tile, {place / i.n, place % i.n})));
    }
    return;
  }
  const PtxFragments tables = ptx_fragments(i);
  for (int t = 0; t < batch.count; ++t) {
    const Tiles tile = recording::tile_of(batch, t);
    TileRegisters held = gather_tile(i, tile);
    disturb(i, held);
    const Matrices codes = read(i, tables, held);
    for (int lane = 0; lane < tables.d.lanes(); ++lane)
      for (int v = 0; v < tables.d.values(); ++v)
        write_slot(&held.d[at(lane * tables.d.registers)], register_bits(i.d), info(i.d).bits, v,
                   dot(dot_at(i, tile_of(codes), tables.d.place(lane, v))));
    disturb_sums(i, held);
    scatter_tile(i, held, tile);
  }
}

}  // namespace numemu::oracle::recording
