// The instruction itself: reads registers and writes them by ptx_fragments, never by fragment.hpp.
#include "tests/oracle/cuda/paper/paper_machine.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "emu/oracle/recording/instruction.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"
#include "tests/oracle/cuda/ask/chips.hpp"
#include "tests/oracle/cuda/paper/ptx_fragments.hpp"

namespace numemu::oracle::recording {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

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

/// What an instruction finds in the registers, as tile t of the batch.
void read(const Instruction& i, const PtxFragments& tables, const TileRegisters& held, int t,
          Batch& batch) {
  const auto put = [t](const std::vector<std::uint8_t>& codes, std::vector<std::uint8_t>& all) {
    std::copy(codes.begin(), codes.end(),
              all.begin() + static_cast<std::ptrdiff_t>(at(t) * codes.size()));
  };
  const bool in_registers = tables.b.rows != 0;
  put(matrix(tables.a, held.a, i.kept(), i.a, tables.a_bits), batch.a);
  put(in_registers ? matrix(tables.b, held.b, i.k, i.b, tables.b_bits) : described_b(i, held),
      batch.b);
  put(matrix(tables.c, held.c, i.n, i.c, info(i.c).bits), batch.c);
  put(narrow_matrix(tables.metadata, held.metadata, i.groups(), 4), batch.metadata);
  put(narrow_matrix(tables.scale_a, held.scale_a, i.scales(), 8), batch.scale_a);
  put(narrow_matrix(tables.scale_b, held.scale_b, i.scales(), 8), batch.scale_b);
}

}  // namespace

PaperMachine::PaperMachine(std::string chip) : chip_(std::move(chip)) {}

bool PaperMachine::has(const Instruction& i) const {
  return recording::has(i, capability_of(chip_)) && unit(i) != nullptr;
}

const unit::Unit* PaperMachine::unit(const Instruction& i) const {
  const auto [found, fresh] = units_.try_emplace(full_name(i));
  if (fresh) {
    if (std::optional<unit::UnitDescription> described = unit_of(chip_, i)) {
      described->name = "paper";  // the names of the catalogue are its own
      found->second = unit::make_unit(std::move(*described));
    }
  }
  return found->second.get();
}

void PaperMachine::compute(Batch& batch) const {
  const unit::Unit& computes = *unit(*batch.instruction);
  // A tile is too small to be worth threads.
#pragma omp parallel num_threads(1)
  batch.d = results_of(computes, batch, Path::fast);
}

void PaperMachine::run(Batch& batch) {
  const Instruction& i = *batch.instruction;
  if (!has(i))
    throw std::runtime_error(name() + ": expected one of its instructions, got " +
                             recording::name(i));
  if (!has_fragments(i.kind)) return compute(batch);
  const PtxFragments tables = ptx_fragments(i);
  std::vector<TileRegisters> registers;
  Batch found(i, batch.count);
  for (int t = 0; t < batch.count; ++t) {
    registers.push_back(gather_tile(i, tile_of(batch, t)));
    disturb(i, registers.back());
    read(i, tables, registers.back(), t, found);
  }
  compute(found);
  const int bytes = info(i.d).bytes;
  for (int t = 0; t < batch.count; ++t) {
    TileRegisters& held = registers[at(t)];
    const std::uint8_t* d = tile_of(found, t).d;
    for (int lane = 0; lane < tables.d.lanes(); ++lane)
      for (int v = 0; v < tables.d.values(); ++v) {
        const Place place = tables.d.place(lane, v);
        write_slot(&held.d[at(lane * tables.d.registers)], register_bits(i.d), info(i.d).bits, v,
                   load_code(d + (place.row * i.n + place.column) * bytes, bytes));
      }
    disturb_sums(i, held);
    scatter_tile(i, held, tile_of(batch, t));
  }
}

}  // namespace numemu::oracle::recording
