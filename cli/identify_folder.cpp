#include "cli/identify_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/command.hpp"
#include "emu/oracle/replay/record_answers.hpp"
#include "emu/unit/description/words.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {
namespace {

using oracle::Finding;
using oracle::RecordedUnit;

std::string finding_text(const RecordedUnit& one, const Finding& f) {
  constexpr std::size_t kShown = 4;
  std::string text = fmt::format("{} {}, {} records: {}{}\n", one.chip, full_name(*one.instruction),
                                 one.answers.size(), f.fits ? "" : "no rule fits, the nearest is ",
                                 unit::description_line(f.description));
  if (f.changed)
    text += fmt::format(
        "  not reproducible: {} records answer a question of one before in another way, first {} "
        "that of {}\n",
        f.changes, f.changed->again_record, f.changed->first_record);
  if (!f.fits)
    return text + fmt::format("  contradicted by {} records, first {} ({})\n", f.contradictions,
                              f.contradiction, one.answers[f.contradiction].question.aspect);
  if (!f.decided)
    text +=
        fmt::format("  not decided: {} records had no part in the choice, expected at least {}\n",
                    f.confirmed, oracle::kFewestConfirming);
  for (const std::string& name : f.presets) text += "  answers as " + name + "\n";
  if (f.presets.empty()) text += "  no unit of the catalogue answers so\n";
  if (f.undetermined.empty()) return text + "  every rule one parameter away is contradicted\n";
  text += fmt::format("  left open: {} rules\n", f.undetermined.size());
  for (std::size_t i = 0; i < std::min(kShown, f.undetermined.size()); ++i)
    text += "    " + f.undetermined[i].rival + "\n";
  return text;
}

Json finding_json(const RecordedUnit& one, const Finding& f) {
  Json open = Json::array();
  for (const oracle::Undetermined& rule : f.undetermined) open.push_back(rule.rival);
  return {{"chip", one.chip},
          {"instruction", full_name(*one.instruction)},
          {"records", static_cast<std::int64_t>(one.answers.size())},
          {"fits", f.fits},
          {"decided", f.fits && f.decided},
          {"presets", f.presets},
          {"undetermined", std::move(open)}};
}

}  // namespace

int identify_folder(const std::string& folder, const std::string& instr,
                    const oracle::IdentifyOptions& options, bool json) {
  const oracle::RecordFolder records = oracle::read_record_folder(folder, instr);
  const std::vector<RecordedUnit> units = oracle::recorded_units(records);
  if (units.empty()) throw Error(folder + ": expected records of a matrix instruction, found none");
  bool fits = true;
  Json all = Json::array();
  for (const RecordedUnit& one : units) {
    const Finding finding = oracle::identify(one.ports, one.answers, options);
    fits = fits && finding.fits && finding.decided;
    if (json) {
      all.push_back(finding_json(one, finding));
      continue;
    }
    fmt::print("{}", finding_text(one, finding));
    std::fflush(stdout);  // an instruction takes seconds
  }
  if (json) fmt::print("{}\n", all.dump(2));
  return fits ? kFine : kMismatch;
}

}  // namespace numemu::cli
