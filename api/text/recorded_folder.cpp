#include "api/text/recorded_folder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/text/verification.hpp"
#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/records.hpp"

namespace numemu::api {
namespace {

using oracle::ConversionReplay;
using oracle::Judged;
using oracle::Judgement;
using oracle::RecordedFile;
using oracle::recording::Element;
using oracle::recording::Instruction;

std::string hex(std::uint64_t code, Element e) {
  return fmt::format("{:0{}x}", code, 2 * info(e).bytes);
}

std::string codes_line(const char* title, const std::uint8_t* codes, Element e, int count) {
  if (count == 0) return "";
  std::string line = fmt::format("    {:<8}", title);
  for (int i = 0; i < count; ++i)
    line += " " + hex(oracle::recording::load_code(codes + i * info(e).bytes, info(e).bytes), e);
  return line + "\n";
}

/// The code of the first mismatch as it was recorded.
std::uint64_t recorded(const Judged& v) { return v.first->one.records.columns.back()[0]; }

/// The first mismatch with all its operands.
std::string record_text(const RecordedFile& file, const Judged& v) {
  const Instruction& i = *file.instruction;
  const auto size = oracle::recording::record_bytes(i);
  const std::int64_t number = v.first->one.number[0];
  const auto record = view_record(i, file.bytes.data() + static_cast<std::size_t>(number) * size);
  const auto probe = file.probes.find(number);
  std::string text =
      fmt::format("  record {}{}, {}:\n", number,
                  probe == file.probes.end() ? "" : ", probe " + probe->second, v.name);
  text += codes_line("a", record.a, i.a, i.kept()) + codes_line("b", record.b, i.b, i.k) +
          codes_line("c", record.c, i.c, 1) +
          codes_line("scale_a", record.scale_a, Element::ue8m0, i.scales()) +
          codes_line("scale_b", record.scale_b, Element::ue8m0, i.scales()) +
          codes_line("metadata", record.metadata, Element::u8, i.groups());
  return text + fmt::format("    recorded {}\n    expected {}\n", hex(recorded(v), i.d),
                            hex(v.first->one.want[0], i.d));
}

std::int64_t zero_signs(const Judged& v) {
  return v.tally.by_mismatch[static_cast<std::size_t>(oracle::Mismatch::zero_sign)];
}

std::string rule_line(const Judged& v) {
  if (!v.equal.empty()) return fmt::format("  {:<66} {:<19} {}\n", v.name, v.family, v.equal);
  const std::string first = v.holds() ? "-" : std::to_string(v.first->one.number[0]);
  return fmt::format("  {:<66} {:<19} {:>10} {:>8} {:>9} {:>8} {:>6}\n", v.name,
                     v.family.empty() ? "(unit)" : v.family, v.tally.mismatches(), v.tally.records,
                     zero_signs(v), v.tally.both_nan, first);
}

std::string file_text(const Judgement& j) {
  const RecordedFile& file = *j.file;
  std::string text = fmt::format("{}: {} {}, {} records\n", file.file, file.unit,
                                 full_name(*file.instruction), file.count);
  if (j.rules.empty()) return text + "  the catalogue has no unit for it\n";
  text += fmt::format("  {:<66} {:<19} {:>10} {:>8} {:>9} {:>8} {:>6}\n", "rule", "question",
                      "mismatches", "of", "zero sign", "NaN bits", "first");
  for (const Judged& v : j.rules) text += rule_line(v);
  if (!j.holds()) text += record_text(file, j.rules.front());
  for (const Judged& v : j.closest) {
    text += fmt::format("  closest: {}: {} mismatches\n", v.name, v.tally.mismatches());
    if (!v.holds()) text += record_text(file, v);
  }
  return text;
}

std::string listed(const std::vector<std::string>& names, std::size_t most, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i == 0 ? "" : between) + names[i];
  return text + (names.size() > most ? ", ..." : "");
}

/// Per family of rules the rivals, what excludes them, and for which instructions none does.
std::string questions_text(const std::vector<Judgement>& judgements) {
  constexpr std::size_t kNamed = 2;
  std::string text, family;
  for (const oracle::Standing& s : standings(judgements)) {
    if (s.family != family) {
      family = s.family;
      text += fmt::format("\n{}\n  {:<13} {:<66} {:>10}  {}\n", family, "chip", "rival",
                          "mismatches", "no record tells it apart for; no input can");
    }
    const std::vector<std::string> open = s.stands_for();
    std::string where = open.empty()
                            ? "none"
                            : fmt::format("{} of {}: {}", open.size(), s.instructions.size(),
                                          listed(open, kNamed, ", "));
    if (!s.equal.empty())
      where += fmt::format("; {} where {}", s.equal.size(), s.equal.begin()->second);
    text += fmt::format("  {:<13} {:<66} {:>10}  {}\n", s.chip, s.rival, s.mismatches, where);
  }
  return text;
}

std::string refuted_text(const std::vector<Judgement>& judgements) {
  std::string text;
  for (const oracle::Refuted& r : refuted(judgements)) {
    if (text.empty()) text = "\nrefuted\n";
    text += fmt::format(
        "  {} {}: {} by {} of {} records; stands: {}\n", r.chip, r.instruction, r.rule,
        r.mismatches, r.records,
        r.standing.empty() ? "no rule, see \"closest\" above" : listed(r.standing, 100, "; "));
  }
  return text;
}

std::string conversion_text(const ConversionReplay& v) {
  std::string text;
  const Judged& r = v.records;
  if (v.is_first()) text = fmt::format("cvt {}: {} records\n", v.conversion->name, r.tally.records);
  if (v.is_first() && v.lanes != 0)
    text += fmt::format("  the lanes disagree for {} inputs\n", v.lanes);
  text += fmt::format("  {:<48} {:>6} mismatches", r.name, r.tally.mismatches());
  if (!r.holds())
    text += fmt::format(", the first: of {:#x} {:#x}, by the rule {:#x}",
                        r.first->one.records.columns[0][0], recorded(r), r.first->one.want[0]);
  else
    text += v.whole_run ? ", nor in the whole run" : ", but the whole run differs";
  return text + "\n";
}

Json rule_json(const Judged& v) {
  Json json = {
      {"rule", v.name}, {"mismatches", v.tally.mismatches()}, {"records", v.tally.records}};
  if (!v.family.empty()) json["question"] = v.family;
  if (!v.equal.empty()) json["equal"] = std::string(v.equal);
  if (v.holds()) return json;
  json["zero_signs"] = zero_signs(v);
  json["nan_bits"] = v.tally.both_nan;
  json["first"] = {{"record", v.first->one.number[0]},
                   {"recorded", fmt::format("{:#x}", recorded(v))},
                   {"expected", fmt::format("{:#x}", v.first->one.want[0])}};
  return json;
}

}  // namespace

std::string folder_text(const VerifiedFolder& r) {
  std::string text;
  for (const oracle::SkippedFile& file : r.folder.skipped)
    text += fmt::format("{}: left out, {}\n", file.file, file.reason);
  for (const Judgement& j : r.judgements) text += file_text(j);
  text += questions_text(r.judgements) + refuted_text(r.judgements);
  if (!r.conversions.empty()) text += "\n";
  for (const ConversionReplay& v : r.conversions) text += conversion_text(v);
  if (r.wrong_conversions() != 0)
    text += fmt::format("\n{} conversions differ from their rules\n", r.wrong_conversions());
  return text + fmt::format("\n{} files, {} records: {} mismatches; {} records without a rule\n",
                            r.judgements.size(), r.records(), r.mismatches(), r.without_rule());
}

Json folder_json(const VerifiedFolder& r) {
  Json files = Json::array(), questions = Json::array(), conversions = Json::array(),
       wrong = Json::array(), skipped = Json::array();
  for (const Judgement& j : r.judgements) {
    Json rules = Json::array(), closest = Json::array();
    for (const Judged& v : j.rules) rules.push_back(rule_json(v));
    for (const Judged& v : j.closest) closest.push_back(rule_json(v));
    files.push_back({{"file", j.file->file},
                     {"chip", j.file->unit},
                     {"instruction", full_name(*j.file->instruction)},
                     {"records", j.file->count},
                     {"rules", std::move(rules)},
                     {"closest", std::move(closest)}});
  }
  for (const oracle::Standing& s : standings(r.judgements))
    questions.push_back({{"question", s.family},
                         {"chip", s.chip},
                         {"rival", s.rival},
                         {"mismatches", s.mismatches},
                         {"not_told_apart", s.stands_for()},
                         {"no_input_tells", static_cast<std::int64_t>(s.equal.size())}});
  for (const oracle::Refuted& one : refuted(r.judgements))
    wrong.push_back({{"chip", one.chip},
                     {"instruction", one.instruction},
                     {"rule", one.rule},
                     {"mismatches", one.mismatches},
                     {"records", one.records},
                     {"standing", one.standing}});
  for (const ConversionReplay& v : r.conversions)
    conversions.push_back({{"conversion", v.conversion->name},
                           {"rule", v.records.name},
                           {"question", v.records.family},
                           {"records", v.records.tally.records},
                           {"mismatches", v.records.tally.mismatches()},
                           {"whole_run", v.whole_run},
                           {"lanes_disagree", v.lanes}});
  for (const oracle::SkippedFile& file : r.folder.skipped)
    skipped.push_back({{"file", file.file}, {"reason", file.reason}});
  return {{"records", r.records()},
          {"mismatches", r.mismatches()},
          {"without_rule", r.without_rule()},
          {"files", std::move(files)},
          {"questions", std::move(questions)},
          {"refuted", std::move(wrong)},
          {"conversions", std::move(conversions)},
          {"left_out", std::move(skipped)}};
}

std::string folder_junit(const VerifiedFolder& r, const std::string& folder) {
  Junit junit;
  for (const Judgement& j : r.judgements) {
    std::string failure;
    if (!j.holds())
      failure =
          fmt::format("{} of {} records differ", j.rules.front().tally.mismatches(), j.file->count);
    junit.add(j.file->unit + " " + full_name(*j.file->instruction), j.file->file, failure,
              file_text(j));
  }
  for (const ConversionReplay& v : r.conversions) {
    if (!v.is_first()) continue;
    junit.add(v.unit, std::string("cvt ") + v.conversion->name,
              v.holds() ? "" : "the conversion differs from its rule", conversion_text(v));
  }
  return junit.suite(folder);
}

std::string hash_line(const oracle::HashReplay& v) {
  if (v.unit.empty())
    return fmt::format("{}: {} hashes, the catalogue has no unit for it\n", v.instruction,
                       v.hashes);
  std::string line = fmt::format("{}: {}: {} of {} hashes agree", v.instruction, v.unit,
                                 v.hashes - v.differ, v.hashes);
  if (v.differ != 0)
    line +=
        fmt::format(", the first that differs covers tiles {} to {}", v.first_tile, v.last_tile);
  return line + "\n";
}

std::string hashes_junit(const std::vector<oracle::HashReplay>& all, const std::string& folder) {
  Junit junit;
  for (const oracle::HashReplay& v : all)
    junit.add(v.unit.empty() ? v.chip : v.unit, v.instruction,
              v.differ == 0 ? "" : fmt::format("{} of {} hashes differ", v.differ, v.hashes),
              hash_line(v));
  return junit.suite(folder);
}

Json hashes_json(const std::vector<oracle::HashReplay>& all) {
  Json json = Json::array();
  for (const oracle::HashReplay& v : all) {
    Json one = {{"chip", v.chip},
                {"instruction", v.instruction},
                {"unit", v.unit},
                {"hashes", v.hashes},
                {"differ", v.differ}};
    if (v.differ != 0) one["first_tile"] = v.first_tile;
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace numemu::api
