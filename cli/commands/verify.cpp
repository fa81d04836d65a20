// numemu verify: results made elsewhere, held against those that an operation or a unit must give.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "api/array_files.hpp"
#include "api/oracle.hpp"
#include "api/oracle/records.hpp"
#include "api/text/verification.hpp"
#include "cli/command.hpp"
#include "cli/product.hpp"
#include "cli/progress.hpp"
#include "emu/oracle/recording/records.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {
namespace {

// What `numemu verify` prints of folders of recordings: text, JSON and JUnit's XML.

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
  if (!v.equal.empty()) return fmt::format("  {:<66} {:<19} {}\n", v.name, v.question, v.equal);
  const std::string first = v.holds() ? "-" : std::to_string(v.first->one.number[0]);
  return fmt::format("  {:<66} {:<19} {:>10} {:>8} {:>9} {:>8} {:>6}\n", v.name,
                     v.question.empty() ? "(unit)" : v.question, v.tally.mismatches(),
                     v.tally.records, zero_signs(v), v.tally.both_nan, first);
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

/// Per question the rivals, what excludes them, and for which instructions none does.
std::string questions_text(const std::vector<Judgement>& judgements) {
  constexpr std::size_t kNamed = 2;
  std::string text, question;
  for (const oracle::Standing& s : standings(judgements)) {
    if (s.question != question) {
      question = s.question;
      text += fmt::format("\n{}\n  {:<13} {:<66} {:>10}  {}\n", question, "chip", "rival",
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
  if (!v.question.empty()) json["question"] = v.question;
  if (!v.equal.empty()) json["equal"] = std::string(v.equal);
  if (v.holds()) return json;
  json["zero_signs"] = zero_signs(v);
  json["nan_bits"] = v.tally.both_nan;
  json["first"] = {{"record", v.first->one.number[0]},
                   {"recorded", fmt::format("{:#x}", recorded(v))},
                   {"expected", fmt::format("{:#x}", v.first->one.want[0])}};
  return json;
}

/// `folder` is the name of the folder; one test case for each file and each conversion.
std::string folder_text(const api::VerifiedFolder& r) {
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

Json folder_json(const api::VerifiedFolder& r) {
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
    questions.push_back({{"question", s.question},
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
                           {"question", v.records.question},
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

std::string folder_junit(const api::VerifiedFolder& r, const std::string& folder) {
  api::Junit junit;
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

/// Of the large runs of a folder; one test case for each.
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
  api::Junit junit;
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

struct VerifyOptions {
  std::string folder, only, in, d, junit, b_layout = "kn", element_order;
  std::string nan = "any", zero_sign = "strict", invalid = "strict";
  api::RecordsTold told;
  api::ProductFiles arrays;
  api::EpilogueFiles epilogue;
  std::string format_d;
  bool dots = false, hashes = false, json = false, quiet = false;
  std::int64_t max_errors = 0, ulp = 0;
};

struct Given {
  const char* option;
  bool given;
};

/// Refuses options that would be ignored.
void refuse_with(const char* what, std::initializer_list<Given> options) {
  for (const Given& one : options) {
    if (one.given) throw usage_error(fmt::format("{}: not allowed with {}", one.option, what));
  }
}

/// Everything that can be refused before anything is read.
void check_options(const VerifyOptions& o) {
  const bool arrays = !o.arrays.a.empty() || !o.arrays.b.empty() || !o.d.empty();
  if (arrays == !o.in.empty())
    throw usage_error("--in: expected a file of records, or the arrays --a, --b and --d");
  if (arrays) {
    if (o.arrays.a.empty() || o.arrays.b.empty() || o.d.empty() || o.told.unit.empty())
      throw usage_error("--a, --b, --d: expected all three, and --unit");
    refuse_with("arrays", {{"--fields", !o.told.fields.empty()}, {"--k", o.told.k != 0}});
    if (o.dots) refuse_with("--dots", {{"--b-layout", o.b_layout != "kn"}});
    api::check_meta_layout(o.arrays);
    require_requantize(o.epilogue);
  } else {
    if (!o.told.fields.empty() && api::is_form_of_fields(o.in))
      throw usage_error(
          fmt::format("--fields: not allowed with {}, whose fields have names", o.in));
    refuse_with("--in", {{"--c", !o.arrays.c.empty()},
                         {"--scale-a", !o.arrays.scale_a.empty()},
                         {"--scale-b", !o.arrays.scale_b.empty()},
                         {"--meta", !o.arrays.meta.empty()},
                         {"--meta-layout", !o.arrays.meta_layout.empty()},
                         {"--b-layout", o.b_layout != "kn"},
                         {"--seed", o.arrays.seed != 0},
                         {"--dots", o.dots},
                         {"--bias", !o.epilogue.bias.empty()},
                         {"--factor", !o.epilogue.factor.empty()},
                         {"--multiplier", !o.epilogue.multiplier.empty()},
                         {"--shift", !o.epilogue.shift.empty()},
                         {"--zero-point", o.epilogue.zero_point.has_value()}});
    require_requantize(o.epilogue);
  }
  if (!o.format_d.empty() && o.epilogue.requantize.empty())
    throw usage_error("--format-d: expected --requantize, too");
  if (o.told.fields.empty() && !o.element_order.empty())
    throw usage_error("--element-order: expected together with --fields");
  if (!o.told.unit.empty()) {
    refuse_with("--unit", {{"--op", !o.told.op.empty()},
                           {"--from", !o.told.from.empty()},
                           {"--to", !o.told.to.empty()},
                           {"--rounding", !o.told.rounding.empty()},
                           {"--overflow", !o.told.overflow.empty()}});
  }
  if (!o.junit.empty()) {
    api::require_file("--junit", o.junit);
    require_replaceable(o.junit);
    require_distinct_paths({{"--junit", o.junit}}, {{"--in", o.in == "-" ? "" : o.in},
                                                    {"--a", o.arrays.a},
                                                    {"--b", o.arrays.b},
                                                    {"--c", o.arrays.c},
                                                    {"--d", o.d}});
  }
}

/// The large runs of a folder; a line for each as it ends, every few seconds.
int run_hashes(const VerifyOptions& o) {
  const auto all = api::verify_hashes(o.folder, o.only, [&](const oracle::HashReplay& v) {
    if (o.json) return;
    fmt::print("{}", hash_line(v));
    std::fflush(stdout);
  });
  if (!o.junit.empty()) write_atomically(o.junit, {hashes_junit(all, o.folder)});
  std::int64_t differ = 0;
  for (const oracle::HashReplay& v : all) differ += v.differ != 0;
  if (o.json) {
    fmt::print("{}\n", hashes_json(all).dump(2));
  } else {
    fmt::print("\n{} of {} large runs differ from their units\n", differ, all.size());
  }
  return differ == 0 ? kFine : kMismatch;
}

/// What a folder of records says itself needs no option.
int run_folder(const VerifyOptions& o) {
  refuse_with("a folder", {{"--in", !o.in.empty()},
                           {"--a", !o.arrays.a.empty()},
                           {"--b", !o.arrays.b.empty()},
                           {"--d", !o.d.empty()},
                           {"--op", !o.told.op.empty()},
                           {"--fields", !o.told.fields.empty()},
                           {"--requantize", !o.epilogue.requantize.empty()},
                           {"--k", o.told.k != 0},
                           {"--ulp", o.ulp != 0},
                           {"--max-errors", o.max_errors != 0}});
  if (o.hashes) refuse_with("--hashes", {{"--unit", !o.told.unit.empty()}});
  if (!o.junit.empty()) {
    api::require_file("--junit", o.junit);
    require_replaceable(o.junit);
  }
  if (o.hashes) return run_hashes(o);
  const auto verified = api::verify_folder(o.folder, o.only, o.told.unit);
  if (!o.junit.empty()) write_atomically(o.junit, {folder_junit(*verified, o.folder)});
  fmt::print("{}", o.json ? folder_json(*verified).dump(2) + "\n" : folder_text(*verified));
  return verified->holds() ? kFine : kMismatch;
}

api::Equality equality_of(const VerifyOptions& o) {
  api::Equality equality;
  equality.tolerance.nan = o.nan == "canonical" ? oracle::NanMatch::canonical
                           : o.nan == "payload" ? oracle::NanMatch::payload
                                                : oracle::NanMatch::any;
  equality.tolerance.zero =
      o.zero_sign == "ignore" ? oracle::ZeroSign::ignore : oracle::ZeroSign::strict;
  equality.tolerance.any_invalid_integer = o.invalid == "any";
  equality.tolerance.ulps = static_cast<std::uint64_t>(o.ulp);
  equality.most_mismatches = o.max_errors;
  return equality;
}

api::Verified verify_arrays(const VerifyOptions& o) {
  api::ProductFiles files = o.arrays;
  files.format_a = o.told.format_a;
  files.format_b = o.told.format_b;
  files.shape = o.dots ? api::ProductShape::dots : api::ProductShape::batches;
  files.b_by_columns = o.b_layout == "nk";
  api::EpilogueFiles epilogue = o.epilogue;
  if (!o.format_d.empty()) epilogue.format = find_format(o.format_d).name;
  return api::verify_product(o.told.unit, files, o.d, equality_of(o), epilogue);
}

api::Verified verify_file(const VerifyOptions& o) {
  api::RecordsTold told = o.told;
  if (o.element_order == "msb") told.order = oracle::ElementOrder::msb;
  told.requantize = o.epilogue.requantize;
  told.format_d = o.format_d;
  told.low = o.epilogue.low;
  told.high = o.epilogue.high;
  return api::verify_records(o.in, told, equality_of(o), progress_of("verify", o.quiet));
}

int run_verify(const VerifyOptions& o) {
  if (!o.folder.empty()) return run_folder(o);
  refuse_with("records of a file", {{"--only", !o.only.empty()}, {"--hashes", o.hashes}});
  check_options(o);
  const api::Verified verified = o.in.empty() ? verify_arrays(o) : verify_file(o);
  if (!o.junit.empty()) write_atomically(o.junit, {api::verify_junit(verified)});
  fmt::print("{}", o.json ? api::verify_json(verified).dump(2) + "\n" : api::verify_text(verified));
  return verified.holds() ? kFine : kMismatch;
}

}  // namespace

void add_verify(Program& program) {
  auto [command, o] = program.command<VerifyOptions>("verify", run_verify);
  command.option("folder FOLDER", o.folder,
                 "Answers of a GPU as tests/oracle/cuda/run records them, or published ones");
  command.option(
      "--in FILE|-", o.in,
      "Records: text, csv or JSON lines, gzip or not; FILE.npz; PREFIX of $readmemh files; - is "
      "standard input");
  command.option("--unit U", o.told.unit, "A unit's name (numemu units) or a file unit.json");
  command.option("--op OP", o.told.op, oracle::joined_operation_names());
  command.option("--from F", o.told.from, "Format of the operands of --op");
  command.option("--to F", o.told.to, "Format of its results (default: --from)");
  command.option("--rounding R", o.told.rounding, "Rounding of --op (default: the file's, or rne)");
  command.option("--overflow O", o.told.overflow, "Overflow of --op (default: the file's)");
  command.option("--k K", o.told.k, "Products of a record, where the file has no first line")
      .whole(1, 65536);
  command.option("--fields LIST", o.told.fields,
                 "Fields of foreign lines: a:32xe4m3fn,b:32xe4m3fn,c:f32,d:f32");
  command
      .option("--element-order ORDER", o.element_order,
              "With --fields: which end of a word has element 0, lsb (default) or msb")
      .one_of({"lsb", "msb"});
  command.option("--a A.npy", o.arrays.a, "Codes of A of a kernel, [batch x] M x K");
  command.option("--b B.npy", o.arrays.b, "Codes of B, [batch x] K x N");
  command.option("--b-layout LAYOUT", o.b_layout, "kn, or nk where B is [batch x] N x K")
      .one_of({"kn", "nk"});
  command.flag("--dots", o.dots, "A and B are N x K, C and D have N elements, as in numemu dot");
  command.option("--c C.npy", o.arrays.c, "C, [batch x] M x N (default: +0)");
  command.option("--d D.npy", o.d, "The kernel's D, [batch x] M x N");
  command.option("--format-a F", o.told.format_a, "Format of A if the unit takes any format");
  command.option("--format-b F", o.told.format_b, "Format of B if the unit takes any format");
  add_epilogue(command, o.epilogue);
  command.option("--bias BIAS.npy", o.epilogue.bias, "int32 [N], with --requantize and arrays");
  command.option("--format-d F", o.format_d, "Format of the codes of --requantize (default: int8)");
  command.option("--scale-a SA.npy", o.arrays.scale_a, "Block scales of A, [batch x] M x blocks");
  command.option("--scale-b SB.npy", o.arrays.scale_b, "Block scales of B, [batch x] blocks x N");
  command.option("--meta E.npy", o.arrays.meta, "Metadata of a sparse A");
  command.option("--meta-layout LAYOUT", o.arrays.meta_layout, "Of --meta: index (default) or ptx");
  command.option("--seed S", o.arrays.seed, "Seed of a kernel's stochastic registers (default: 0)");
  command.option("--nan RULE", o.nan, "any, canonical or payload: which NaN results are equal")
      .one_of({"any", "canonical", "payload"});
  command.option("--zero-sign RULE", o.zero_sign, "strict or ignore: whether +0 equals -0")
      .one_of({"strict", "ignore"});
  command
      .option("--invalid RULE", o.invalid,
              "strict or any: whether all integers of conversions that raise NV are equal")
      .one_of({"strict", "any"});
  command.option("--ulp N", o.ulp, "Finite results within N ulps are equal (default: 0)")
      .whole(0, std::int64_t{1} << 62);
  command.option("--max-errors N", o.max_errors, "Stop after N mismatches (default: never)")
      .whole(0, std::int64_t{1} << 62);
  command.option("--only TEXT", o.only,
                 "Of a folder: files whose kind, instruction or name has it");
  command.flag("--hashes", o.hashes, "Of a folder: compute every dot of the large runs again");
  command.option("--junit FILE", o.junit, "Write a JUnit report, too");
  command.flag("--json", o.json, "Print JSON");
  command.flag("--quiet", o.quiet, "No progress");
  add_threads(command);
}

}  // namespace numemu::cli
