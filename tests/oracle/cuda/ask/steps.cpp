#include "tests/oracle/cuda/ask/steps.hpp"

#include "emu/oracle/recording/whole_file.hpp"
#include "tests/oracle/cuda/probes/step_map.hpp"

namespace numemu::oracle::recording {

void ask_steps(Machine& machine, const Instruction& i, const std::string& folder) {
  const std::string header = table_line({"kind", "instr", "variant", "position", "map", "step"});
  std::string rows;
  for (const Variant variant : kVariants) {
    Batch batch = step_map_tiles(i, variant);
    if (batch.count == 0) continue;
    machine.run(batch);
    const std::vector<std::string> map = read_step_map(i, batch, variant);
    const std::vector<int> steps = steps_of(map);
    for (std::size_t p = 0; p < map.size(); ++p)
      rows += table_line({name(i.kind), name(i), name(variant), std::to_string(p), map[p],
                          steps.empty() ? "-" : std::to_string(steps[p])});
  }
  if (!rows.empty()) write_whole_file(folder + "/steps.tsv", header + rows);
}

}  // namespace numemu::oracle::recording
