#include "emu/oracle/replay/record_answers.hpp"

#include <algorithm>

#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/recording/records.hpp"
#include "emu/oracle/replay/instruction_unit.hpp"

namespace numemu::oracle {
namespace {

using recording::Element;
using recording::Instruction;

std::vector<std::uint64_t> codes(const std::uint8_t* at, Element e, int count) {
  const int bytes = info(e).bytes, shift = is_integer(e) ? 0 : element_format(e).container_shift;
  std::vector<std::uint64_t> all;
  for (int j = 0; j < count; ++j)
    all.push_back(recording::load_code(at + j * bytes, bytes) >> shift);
  return all;
}

Answered answer(const RecordFile& file, std::int64_t r) {
  const Instruction& i = *file.instruction;
  const auto record = recording::view_record(
      i, file.bytes.data() + static_cast<std::size_t>(r) * recording::record_bytes(i));
  const auto probe = file.probes.find(r);
  Answered one{{probe == file.probes.end() ? "record" : probe->second, {}}, file.d(r)};
  Dot& dot = one.question.dot;
  dot.a = codes(record.a, i.a, i.kept());
  dot.b = codes(record.b, i.b, i.k);
  dot.c = codes(record.c, i.c, 1).front();
  dot.scale_a.assign(record.scale_a, record.scale_a + i.scales());
  dot.scale_b.assign(record.scale_b, record.scale_b + i.scales());
  dot.kept = kept_indices(i, {record.metadata, record.metadata + i.groups()});
  return one;
}

}  // namespace

std::vector<RecordedUnit> recorded_units(const RecordFolder& folder) {
  std::vector<RecordedUnit> all;
  for (const RecordFile& file : folder.files) {
    auto at = std::ranges::find_if(all, [&](const RecordedUnit& one) {
      return one.chip == file.unit && one.instruction == file.instruction;
    });
    if (at == all.end()) {
      all.push_back({file.unit, file.instruction, ports_of(*file.instruction), {}});
      at = all.end() - 1;
    }
    for (std::int64_t r = 0; r < file.count; ++r) at->answers.push_back(answer(file, r));
  }
  return all;
}

}  // namespace numemu::oracle
