#include "cli/identify_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "emu/oracle/protocol.hpp"
#include "emu/oracle/step_map.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/description/words.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {
namespace {

using api::Identified;

std::string hex(std::uint64_t code) { return fmt::format("{:#x}", code); }

std::string without_end(std::string line) {
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

Json json_of(const Identified& report) {
  const oracle::Finding& f = report.finding;
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
  const oracle::Finding& f = report.finding;
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
  const oracle::Finding& f = report.finding;
  std::string text;
  if (f.too_late) text = "The time is over (--time-limit) before all questions were asked.\n";
  if (f.confirmed == 0) return text;
  const char* const what = report.records() ? "records that chose no rule" : "mixed vectors of it";
  return text + fmt::format("{} {} agree: at 95 %, at most 1 of {} such differs (3/n)\n",
                            f.confirmed, what, static_cast<std::int64_t>(1 / f.unseen()));
}

std::string changed_text(const Identified& report) {
  const oracle::Finding& f = report.finding;
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
  const oracle::Finding& f = report.finding;
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
  const oracle::Finding& f = report.finding;
  const std::string rule = unit::description_line(f.description);
  if (!f.decided)
    return fmt::format(
        "Not decided: {} of {} records had no part in the choice of the rule (expected at least {} "
        "to confirm it). All fit: {}\n",
        f.confirmed, report.asked, oracle::kFewestConfirming, rule);
  return fmt::format("Found after {} {}: {}\n", report.asked,
                     report.records() ? "records" : "questions", rule);
}

std::string presets_text(const oracle::Finding& f) {
  if (f.presets.empty()) return "No unit of the catalogue answers so.\n";
  std::string text;
  for (const std::string& name : f.presets) text += "  answers as " + name + "\n";
  return text;
}

/// "The products at positions 2, 18 have no effect."
std::string lost_text(const oracle::Finding& f) {
  if (f.lost.empty()) return "";
  return fmt::format(
      "The product{} at position{} {} {} no effect{}.\n", f.lost.size() > 1 ? "s" : "",
      f.lost.size() > 1 ? "s" : "", joined(f.lost, ", "), f.lost.size() > 1 ? "have" : "has",
      f.found_but() && f.steady == 0 && f.changes == 0 ? ": with zeros there every answer fits"
                                                       : "");
}

}  // namespace

std::string identify_json(const Identified& report) { return json_of(report).dump(2) + "\n"; }

std::string identify_text(const Identified& report) {
  const oracle::Finding& f = report.finding;
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

std::string finding_text(const oracle::RecordedUnit& one, const oracle::Finding& f) {
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

Json finding_json(const oracle::RecordedUnit& one, const oracle::Finding& f) {
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

}  // namespace numemu::cli
