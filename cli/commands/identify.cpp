// numemu identify: the rule of an unknown unit, from its answers to questions that tell units
// apart.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/oracle.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/talk.hpp"
#include "emu/oracle/identify/protocol.hpp"
#include "emu/oracle/identify/step_map.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/description/words.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {
namespace {

using api::Identified;

std::string hex(std::uint64_t code) { return fmt::format("{:#x}", code); }

std::string without_end(std::string line) {
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

Json json_of(const Identified& report) {
  const oracle::FoundRule& f = report.finding;
  Json json = {
      {"fits", f.fits}, {"presets", f.presets}, {"questions", report.asked}, {"tried", f.tried}};
  const std::string text = unit::description_json(api::own_description(report));
  if (!f.steps.empty()) json["steps"] = f.steps;
  json[f.fits ? "description" : "nearest"] = Json::parse(text);
  Json open = Json::array();
  for (const oracle::Undetermined& one : f.undetermined) {
    Json entry = {{"rival", one.rival}};
    if (one.separating)
      entry["separated_by"] = without_end(question_text(report.ports, *one.separating));
    open.push_back(std::move(entry));
  }
  json["undetermined"] = std::move(open);
  if (!f.fits && f.contradictions != 0) {
    const oracle::Answered& first = f.answered[f.contradiction];
    json["contradiction"] = {
        {"question", without_end(question_text(report.ports, first.question.dot))},
        {"answer", hex(first.code)},
        {"expected", hex(f.expected)},
        {"count", static_cast<std::int64_t>(f.contradictions)}};
  }
  json["confirmations"] = {{"asked", f.confirmed}, {"differing", f.differing}};
  if (f.fits && f.confirmed != 0) json["confirmations"]["unseen_at_95"] = f.unseen();
  if (f.too_late) json["too_late"] = true;
  if (report.records()) json["decided"] = f.fits && f.decided;
  if (!f.lost.empty()) json["lost_products"] = f.lost;
  if (f.changed) {
    json["inconsistent"] = {{"question", without_end(question_text(report.ports, f.changed->dot))},
                            {"first_answer", hex(f.changed->first)},
                            {"again", hex(f.changed->again)},
                            {"count", f.changes},
                            {"reproducible", f.reproducible}};
    if (report.records())
      json["inconsistent"][report.place] = {report.places[f.changed->first_record],
                                            report.places[f.changed->again_record]};
  }
  if (report.tree)
    json["order"] = {{"words", oracle::order_words(*report.tree)},
                     {"tree", oracle::to_string(*report.tree)}};
  return json;
}

std::string undetermined_text(const Identified& report) {
  constexpr std::size_t kShown = 12;
  const oracle::FoundRule& f = report.finding;
  if (f.undetermined.empty()) return "Every rule one parameter away gives another answer.\n";
  std::string text =
      fmt::format("Left open, equal in all answers{}:\n",
                  report.records() ? "" : fmt::format(" and on {} questions tried", f.tried));
  for (std::size_t i = 0; i < std::min(kShown, f.undetermined.size()); ++i)
    text += "  " + f.undetermined[i].rival + "\n";
  if (f.undetermined.size() > kShown)
    text += fmt::format("  and {} more (--json lists them)\n", f.undetermined.size() - kShown);
  for (const oracle::Undetermined& one : f.undetermined) {
    if (!one.separating) continue;
    text += fmt::format("This question would decide whether: {}\n  {}", one.rival,
                        question_text(report.ports, *one.separating));
    break;
  }
  return text;
}

/// "10000 mixed vectors of this rule, asked after it was found, agree: ..."
std::string confirmed_text(const Identified& report) {
  const oracle::FoundRule& f = report.finding;
  std::string text;
  if (f.too_late) text = "The time is over (--time-limit) before all questions were asked.\n";
  if (f.confirmed == 0) return text;
  const char* const what = report.records() ? "records that chose no rule" : "mixed vectors of it";
  return text + fmt::format("{} {} agree: at 95 %, at most 1 of {} such differs (3/n)\n",
                            f.confirmed, what, static_cast<std::int64_t>(1 / f.unseen()));
}

std::string changed_text(const Identified& report) {
  const oracle::FoundRule& f = report.finding;
  if (!f.changed) return "";
  const std::string question = question_text(report.ports, f.changed->dot);
  if (report.records())
    return fmt::format(
        "{} {} answers {} to the question of {} {}, which has {} ({} such in all):\n  {}",
        report.place, report.places[f.changed->again_record], hex(f.changed->again), report.place,
        report.places[f.changed->first_record], hex(f.changed->first), f.changes, question);
  return fmt::format(
      "{} of the questions got another answer when asked again, first {}, then {}:\n  {}",
      f.changes, hex(f.changed->first), hex(f.changed->again), question);
}

std::string contradiction_text(const Identified& report) {
  const oracle::FoundRule& f = report.finding;
  if (f.contradictions == 0) return "";
  const oracle::Answered& first = f.answered[f.contradiction];
  const std::string where =
      report.records() ? fmt::format("{} {}, ", report.place, report.places[f.contradiction]) : "";
  return fmt::format("First contradiction ({}{}), answered {} where the nearest gives {}:\n  {}",
                     where, first.question.aspect, hex(first.code), hex(f.expected),
                     question_text(report.ports, first.question.dot));
}

/// "Found after 640 questions: RULE", or what records lack.
std::string found_text(const Identified& report) {
  const oracle::FoundRule& f = report.finding;
  const std::string rule = unit::description_line(f.description);
  if (!f.decided)
    return fmt::format(
        "Not decided: {} of {} records had no part in the choice of the rule (expected at least {} "
        "to confirm it). All fit: {}\n",
        f.confirmed, report.asked, oracle::kFewestConfirming, rule);
  return fmt::format("Found after {} {}: {}\n", report.asked,
                     report.records() ? "records" : "questions", rule);
}

std::string presets_text(const oracle::FoundRule& f) {
  if (f.presets.empty()) return "No unit of the catalogue answers so.\n";
  std::string text;
  for (const std::string& name : f.presets) text += "  answers as " + name + "\n";
  return text;
}

/// "The products at positions 2, 18 have no effect."
std::string lost_text(const oracle::FoundRule& f) {
  if (f.lost.empty()) return "";
  return fmt::format(
      "The product{} at position{} {} {} no effect{}.\n", f.lost.size() > 1 ? "s" : "",
      f.lost.size() > 1 ? "s" : "", joined(f.lost, ", "), f.lost.size() > 1 ? "have" : "has",
      f.found_but() && f.steady == 0 && f.changes == 0 ? ": with zeros there every answer fits"
                                                       : "");
}

std::string identify_json(const Identified& report) { return json_of(report).dump(2) + "\n"; }

std::string identify_text(const Identified& report) {
  const oracle::FoundRule& f = report.finding;
  std::string text;
  if (f.fits) {
    text = found_text(report) + presets_text(f);
    if (!f.steps.empty())
      text += fmt::format("Products of one step: {}\n", oracle::step_words(f.steps));
    text += confirmed_text(report);
    text += undetermined_text(report);
  } else {
    const std::string rule = unit::description_line(f.description);
    if (!f.reproducible) {
      text =
          fmt::format("The {} not reproducible: ", report.records() ? "records are" : "device is") +
          changed_text(report);
    } else if (f.found_but()) {
      text = fmt::format("Found, but {} of {} confirmations differ: {}\n", f.differing, f.confirmed,
                         rule);
      if (!f.lost.empty()) text += presets_text(f);
      text += lost_text(f) + changed_text(report) + contradiction_text(report);
    } else {
      text = fmt::format("{} The nearest contradicts {} of {} answers{}: {}\n",
                         f.too_late ? "The time is over (--time-limit); no rule fits so far."
                                    : "No rule fits.",
                         f.contradictions, f.answered.size(),
                         f.confirmed == 0 ? ""
                                          : fmt::format(", and {} of {} mixed vectors of its own",
                                                        f.differing, f.confirmed),
                         rule) +
             lost_text(f) + contradiction_text(report) + changed_text(report);
    }
  }
  if (report.order_asked && !report.tree)
    text += "Order of the sum: the answers fit no tree of additions\n";
  if (report.tree)
    text += fmt::format("Order of the sum: {}\n  {}\n", oracle::order_words(*report.tree),
                        oracle::to_string(*report.tree));
  return text;
}

std::string finding_text(const oracle::RecordedUnit& one, const oracle::FoundRule& f) {
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

Json finding_json(const oracle::RecordedUnit& one, const oracle::FoundRule& f) {
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

struct Options {
  std::string in, instr, device, out, nan = "strict";
  api::PortsTold told;
  std::int64_t confirm = 10'000;
  std::uint64_t seed = 0;
  double timeout = 10;
  std::optional<double> time_limit;
  bool live = false, order = false, json = false, quiet = false;
};

/// A bar for each phase of work that takes longer than a moment.
class Phases {
 public:
  explicit Phases(bool quiet) : quiet_(quiet) {}
  void operator()(std::string_view phase, std::size_t done, std::size_t total) {
    constexpr double kMoment = 2;  // seconds
    if (phase != phase_) {
      bar_ = nullptr;
      phase_ = phase;
      first_ = done - 1;
      start_ = seconds();
    }
    if (bar_ == nullptr && seconds() - start_ < kMoment) return;
    if (bar_ == nullptr)
      bar_ = std::make_shared<Progress>("identify", static_cast<std::int64_t>(total), phase_,
                                        quiet_, start_);
    bar_->show(static_cast<double>(std::min(done, total)), "", static_cast<double>(first_));
  }

 private:
  std::string phase_;
  std::shared_ptr<Progress> bar_;
  std::size_t first_ = 0;
  double start_ = 0;
  bool quiet_;
};

int run_folder(const Options& o, const oracle::IdentifyOptions& options) {
  Json all = Json::array();
  const bool fits =
      api::identify_folder(o.in, o.instr, options,
                           [&](const oracle::RecordedUnit& one, const oracle::FoundRule& finding) {
                             if (o.json) return all.push_back(finding_json(one, finding));
                             fmt::print("{}", finding_text(one, finding));
                             std::fflush(stdout);
                           });
  if (o.json) fmt::print("{}\n", all.dump(2));
  return fits ? kFine : kMismatch;
}

Identified ask_device(const Options& o, const oracle::IdentifyOptions& options) {
  const api::UnknownUnit unknown = api::unknown_unit(o.told);
  const auto device = o.live ? api::QuestionDevice::of_standard_streams(o.timeout, seconds)
                             : api::QuestionDevice::of_command(o.device, o.timeout, seconds);
  return api::identify(unknown, *device, o.order, options);
}

int run_identify(const Options& o) {
  if (int{!o.in.empty()} + int{!o.device.empty()} + int{o.live} != 1)
    throw usage_error("expected one of --in FILE, --device COMMAND and --live");
  if (o.order && !o.in.empty()) throw usage_error("--order: not allowed with --in: it asks");
  if (!o.out.empty()) {
    if (api::is_folder(o.in)) throw usage_error("--out: not allowed with --in FOLDER");
    require_replaceable(o.out);
    require_distinct_paths({{"--out", o.out, false}},
                           {{"--in", o.in, false},
                            {"--like", api::is_unit_file(o.told.like) ? o.told.like : "", false}});
  }
  oracle::IdentifyOptions options{.seed = o.seed,
                                  .confirmations = static_cast<std::size_t>(o.confirm),
                                  .any_nan = o.nan == "any"};
  if (o.time_limit)
    options.stop = [until = seconds() + *o.time_limit] { return seconds() > until; };
  options.on_progress = Phases(o.quiet || o.json);
  if (api::is_folder(o.in)) return run_folder(o, options);
  if (!o.instr.empty()) throw usage_error("--instr: expected together with --in FOLDER");
  const Identified identified =
      o.in.empty() ? ask_device(o, options) : api::identify_records(o.in, o.told, options);
  if (identified.ignored != 0)
    say("numemu: {}: {} records with unknown digits or beyond 2^20 are ignored", o.in,
        identified.ignored);
  if (!o.out.empty() && identified.found())
    unit::write_description(api::own_description(identified), o.out);
  const std::string text = o.json ? identify_json(identified) : identify_text(identified);
  // Standard output belongs to the questions.
  if (o.live) {
    write_talk(text);
  } else if (!o.quiet || o.json) {
    fmt::print("{}", text);
  }
  return identified.found() ? kFine : kMismatch;
}

}  // namespace

void add_identify(Program& program) {
  auto [command, o] = program.command<Options>("identify", run_identify);
  command.option(
      "--in FILE", o.in,
      "Records of a vector file of any form, results made elsewhere; - is standard input");
  command.option("--instr TEXT", o.instr,
                 "Of a folder that a GPU recorded (--in FOLDER): instructions whose name has it");
  command.option("--device COMMAND", o.device, "A program that reads questions and writes answers");
  command.flag("--live", o.live,
               "Ask on standard output, read answers from standard input, report on stderr");
  command.option(
      "--like U", o.told.like,
      "What the unit takes: as this unit, by name, or a file unit.json, which may be it");
  command.option("--format-a F", o.told.a, "Format of A (and of B)");
  command.option("--format-b F", o.told.b, "Format of B");
  command.option("--format-c F", o.told.c, "Format of C (default: that of D)");
  command.option("--format-d F", o.told.d, "Format of D; int32: two's complement (int2 to int32)");
  command.option("--k K", o.told.k, "Elements of B in a dot").whole(1, 4096);
  command.option("--scale F", o.told.scale, "Format of block scales");
  command.option("--block N", o.told.block, "Elements per scale").whole(1, 4096);
  command.option("--sparsity N:M", o.told.sparsity, "Kept elements of A");
  command
      .option("--nan RULE", o.nan,
              "strict: NaN answers count bit by bit; any: every NaN is the same")
      .one_of({"strict", "any"});
  command.option("--confirm N", o.confirm, "Mixed vectors of the rule that was found, asked last")
      .whole(0, 1000000)
      .show_default();
  command.option("--timeout S", o.timeout, "Seconds to wait for a whole answer")
      .positive()
      .show_default();
  command.option("--time-limit S", o.time_limit, "Seconds after which what is known is reported")
      .positive();
  command.flag("--order", o.order,
               "Read the order of the sum, too (asked anyway where no rule fits)");
  command.option("--out UNIT.json", o.out, "The description, for gemm --unit");
  command.option("--seed S", o.seed, "Seed of the random questions (default: 0)");
  command.flag("--json", o.json, "Print JSON");
  command.flag("--quiet", o.quiet, "No report");
  add_threads(command);
}

}  // namespace numemu::cli
