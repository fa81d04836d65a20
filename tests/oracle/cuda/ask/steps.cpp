#include "tests/oracle/cuda/ask/steps.hpp"

#include <algorithm>

#include "emu/oracle/identify/step_map.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr std::size_t kDiagonal = 8;  ///< dots of a tile, in its first rows and columns

/// D of each dot.
std::vector<std::uint64_t> ask_dots(Machine& machine, const Instruction& i,
                                    const std::vector<Dot>& dots) {
  Batch batch(i, static_cast<int>((dots.size() + kDiagonal - 1) / kDiagonal));
  const TileBytes bytes = tile_bytes(i);
  const auto put = [](std::vector<std::uint8_t>& tiles, std::size_t at, Element e,
                      const auto& codes) {
    for (const std::uint64_t code : codes) {
      store_code(tiles.data() + at, info(e).bytes, code);
      at += static_cast<std::size_t>(info(e).bytes);
    }
  };
  const auto n = static_cast<std::size_t>(i.n), m = static_cast<std::size_t>(i.m);
  const auto d_bytes = static_cast<std::size_t>(info(i.d).bytes);
  for (std::size_t dot = 0; dot < dots.size(); ++dot) {
    const std::size_t tile = dot / kDiagonal, row = dot % kDiagonal;
    const Probe probe = probe_of(i, dots[dot]);
    put(batch.a, tile * bytes.a + row * (bytes.a / m), i.a, probe.a);
    put(batch.b, tile * bytes.b + row * (bytes.b / n), i.b, probe.b);
    put(batch.c, tile * bytes.c + (row * n + row) * (bytes.c / (m * n)), i.c, std::array{probe.c});
    const auto copy = [&](std::vector<std::uint8_t>& tiles, std::size_t lines, std::size_t all,
                          const std::vector<std::uint8_t>& from) {
      std::copy(from.begin(), from.end(),
                tiles.begin() + static_cast<std::ptrdiff_t>(tile * all + row * (all / lines)));
    };
    copy(batch.metadata, m, bytes.metadata, probe.metadata);
    copy(batch.scale_a, m, bytes.scale_a, probe.scale_a);
    copy(batch.scale_b, n, bytes.scale_b, probe.scale_b);
  }
  machine.run(batch);
  std::vector<std::uint64_t> codes;
  for (std::size_t dot = 0; dot < dots.size(); ++dot) {
    const std::size_t tile = dot / kDiagonal, row = dot % kDiagonal;
    codes.push_back(
        load_code(batch.d.data() + tile * bytes.d + (row * n + row) * d_bytes, info(i.d).bytes));
  }
  return codes;
}

}  // namespace

void ask_steps(Machine& machine, const Instruction& i, const std::string& folder) {
  const std::string header = table_line({"kind", "instr", "variant", "position", "map", "step"});
  const Ports ports = ports_of(i);
  std::string rows;
  for (const StepVariant variant : kStepVariants) {
    if (variant == StepVariant::in_saturation && !i.satfinite) continue;
    const std::vector<Dot> dots = step_map_dots(ports, variant);
    if (dots.empty()) continue;
    const std::vector<std::string> map = read_step_map(ports, variant, ask_dots(machine, i, dots));
    const std::vector<int> steps = steps_of(map);
    for (std::size_t p = 0; p < map.size(); ++p)
      rows += table_line({name(i.kind), name(i), name(variant), std::to_string(p), map[p],
                          steps.empty() ? "-" : std::to_string(steps[p])});
  }
  if (!rows.empty()) write_whole_file(folder + "/steps.tsv", header + rows);
}

}  // namespace numemu::oracle::recording
