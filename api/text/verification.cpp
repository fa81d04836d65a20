#include "api/text/verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "api/text/trace.hpp"
#include "emu/oracle/codes_of_sums.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/explain.hpp"
#include "emu/unit/reference/given_result.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "formats/joined.hpp"
#include "formats/storage/number_text.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::api {
namespace {

using oracle::Explanation;
using oracle::Fit;
using oracle::Mismatch;
using oracle::MismatchedRecord;
using oracle::Subject;
using oracle::Tally;

class Report {
 public:
  explicit Report(const Verified& verified)
      : v_(verified.judge), verified_(verified), explanation_(verified.explanation) {}

  std::string text() const {
    const Tally& t = v_.judged().tally;
    std::string text = fmt::format("{}: {}\n", harmless(verified_.name), subject_text());
    text +=
        fmt::format("{:<11} {}{}\n", "records", t.records,
                    verified_.complete ? "" : ", the limit of mismatches: the rest is not read");
    text += fmt::format("{:<11} {}", "matches", t.matches());
    if (t.tolerated != 0)
      text += fmt::format(", {} of them by --ulp, --nan, --invalid or --zero-sign", t.tolerated);
    text += fmt::format("\n{:<11} {}\n", "mismatches", t.mismatches());
    for (std::size_t m = 1; m < t.by_mismatch.size(); ++m) {
      if (t.by_mismatch[m] != 0)
        text += fmt::format("  {:<20} {}\n", name_of(static_cast<Mismatch>(m)), t.by_mismatch[m]);
    }
    if (t.mismatches() == 0) return text;
    std::string bars;
    for (std::size_t i = 0; i < t.by_ulps.size(); ++i) {
      if (t.by_ulps[i] == 0) continue;
      const std::uint64_t low = std::uint64_t{1} << i;
      bars += fmt::format("  {:<20} {}\n", i == 0 ? "1" : fmt::format("{}..{}", low, 2 * low - 1),
                          t.by_ulps[i]);
    }
    if (!bars.empty()) text += "ulps\n" + bars;
    if (v_.judged().classes.size() > 1) {
      text += "classes\n";
      for (const auto& [name, tally, first] : v_.judged().classes) {
        if (tally.mismatches() != 0)
          text += fmt::format("  {:<20} {} of {}\n", name.empty() ? "none" : harmless(name),
                              tally.mismatches(), tally.records);
      }
    }
    text += finding_text("first", *v_.judged().first);
    if (v_.judged().worst->one.number != v_.judged().first->one.number)
      text += finding_text("worst", *v_.judged().worst);
    return text + rules_text();
  }

  Json json() const {
    const Tally& t = v_.judged().tally;
    Json kinds = Json::object(), ulps = Json::array(), classes = Json::array(),
         rules = Json::array();
    for (std::size_t m = 1; m < t.by_mismatch.size(); ++m)
      kinds[std::string(name_of(static_cast<Mismatch>(m)))] = t.by_mismatch[m];
    for (std::size_t i = 0; i < t.by_ulps.size(); ++i) {
      if (t.by_ulps[i] != 0)
        ulps.push_back({{"from", std::uint64_t{1} << i},
                        {"to", 2 * (std::uint64_t{1} << i) - 1},
                        {"count", t.by_ulps[i]}});
    }
    for (const auto& [name, tally, first] : v_.judged().classes)
      classes.push_back({{"class", utf8_text(name)},
                         {"records", tally.records},
                         {"mismatches", tally.mismatches()}});
    const auto fit_json = [](const Fit& fit, const char* of) {
      Json also = Json::array();
      for (const oracle::Rule& equal : fit.equal) also.push_back(equal.name);
      return Json{{"rule", fit.rule.name},
                  {"family", fit.rule.family},
                  {"of", of},
                  {"explained", fit.explained},
                  {"mismatches", fit.of},
                  {"contradicted", fit.contradicted},
                  {"matches", fit.against},
                  {"also", also}};
    };
    Json nearest = Json::array();
    std::int64_t tried = 0;
    for (const auto& [of, account] :
         {std::pair("results", &explanation_.of_results), {"flags", &explanation_.of_flags}}) {
      for (const Fit& fit : account->fits) rules.push_back(fit_json(fit, of));
      if (account->nearest) nearest.push_back(fit_json(*account->nearest, of));
      tried += account->rules;
    }
    Json json = {{"in", utf8_text(verified_.name)},
                 {"subject", subject_text()},
                 {"records", t.records},
                 {"complete", verified_.complete},
                 {"matches", t.matches()},
                 {"tolerated", t.tolerated},
                 {"mismatches", t.mismatches()},
                 {"by_mismatch", kinds},
                 {"by_ulps", ulps},
                 {"classes", classes},
                 {"rules", rules},
                 {"nearest", nearest},
                 {"rules_tried", tried},
                 {"tried_on",
                  {{"mismatches", explanation_.mismatches},
                   {"matches", explanation_.matches},
                   {"flags", with_flags()}}}};
    json["first"] = v_.judged().first ? finding_json(*v_.judged().first) : Json();
    json["worst"] = v_.judged().worst ? finding_json(*v_.judged().worst) : Json();
    return json;
  }

  std::string junit() const {
    Junit junit;
    for (const auto& [name, tally, first] : v_.judged().classes) {
      const std::string shown = name.empty() ? "records" : name;
      if (tally.mismatches() == 0) {
        junit.add(subject_text(), shown);
      } else {
        junit.add(subject_text(), shown,
                  fmt::format("{} of {} records differ", tally.mismatches(), tally.records),
                  finding_text("first", *first) + rules_text(), true);
      }
    }
    return junit.suite(verified_.name);
  }

 private:
  const Subject& subject() const { return v_.subject(); }
  /// Whether the flags of records are compared, too.
  bool with_flags() const { return v_.flags_field() >= 0; }

  /// Where the ulps that are counted are not those of the results.

  std::string ulp_text() const {
    const int narrower = v_.comparer().narrower_by();
    if (narrower == 0) return "";
    return fmt::format(", ulps of the register {}",
                       subject().unit->description()->accumulator.format->name);
  }

  std::string subject_text() const {
    const Subject& s = subject();
    if (s.unit != nullptr)
      return fmt::format("{}: {} x {}, K = {}, {} results{}{}", s.unit->row().name, s.a->name,
                         s.b->name, s.k, s.codes ? s.to->name : s.unit->row().result, ulp_text(),
                         s.codes ? fmt::format(" of {} to {}, by {}", s.codes->low, s.codes->high,
                                               unit::row_of(s.codes->how).name)
                                 : "");
    return fmt::format("{} of {} to {}, rounding {}, overflow {}{}", to_string(s.operation),
                       s.a->name, s.to->name, to_string(s.rounding), to_string(s.overflow),
                       s.operation == oracle::Operation::dot ? fmt::format(", K = {}", s.k) : "");
  }

  /// "3f800001 = 0x1.000002p+0 (1.00000012)"

  std::string code_text(std::uint64_t code) const {
    const Format* format = subject().to;
    const int bits = v_.layout()[static_cast<std::size_t>(v_.result_field())].bits;
    std::string text = fmt::format("{:0{}x}", code, (bits + 3) / 4);
    if (format == nullptr) {
      const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
      const auto number = static_cast<std::int64_t>((code & (2 * sign - 1)) ^ sign);
      return text + fmt::format(" = {}", number - static_cast<std::int64_t>(sign));
    }
    const Value value = decode(*format, code);
    text += " = " + hex_text(value);
    if (value.kind == Class::finite) text += fmt::format(" ({})", decimal_text(value));
    return text;
  }

  std::string place(const MismatchedRecord& f) const {
    const std::int64_t number = f.one.number[0];
    if (verified_.product != nullptr) {
      const Product& p = *verified_.product;
      return fmt::format("D[{}]", place_text(place_of(number, p.batch), p));
    }
    const std::string name(f.one.records.class_name(0));
    return fmt::format("{} {}{}", verified_.place, f.one.records.line[0],
                       name.empty() ? "" : " [" + name + "]");
  }

  std::string mismatch_text(const MismatchedRecord& f) const {
    if (f.comparison.mismatch == Mismatch::unknown) return "X or Z digits";
    const std::uint64_t given = f.one.records.code(v_.result_field(), 0);
    const std::uint64_t ulps = f.comparison.ulps.value_or(0);
    std::string text = fmt::format(
        "expected {}, found {}; {}", code_text(f.one.want[0]), code_text(given),
        f.comparison.mismatch == Mismatch::ulps ? fmt::format("{} ulps", ulps)
                                                : std::string(name_of(f.comparison.mismatch)));
    if (f.comparison.mismatch == Mismatch::flags)
      text = fmt::format("{}: flags: expected {:02x}, found {:02x}", code_text(given),
                         f.one.want_flags[0], f.one.records.code(v_.flags_field(), 0));
    return text;
  }

  /// The rule that gives the finding's result; nullptr where none does.
  const oracle::Rule* rule_of(const MismatchedRecord& f) const {
    for (const Fit& fit : explanation_.of_results.fits) {
      if (oracle::gives(v_, fit.rule, f.one)) return &fit.rule;
    }
    return nullptr;
  }

  std::string finding_text(std::string_view title, const MismatchedRecord& f) const {
    std::string text = fmt::format("{:<11} {}: {}\n", title, place(f), mismatch_text(f));
    if (f.comparison.mismatch == Mismatch::unknown) return text;
    for (const std::string& line : oracle::parting(subject(), f.one.records, rule_of(f)))
      text += fmt::format("{:<11} {}\n", "", line);
    return text;
  }

  /// What rules of results explain.
  std::string of_results() const {
    const bool flags = explanation_.flags != 0 || explanation_.of_results.fits.empty();
    if (!with_flags()) return "mismatches";
    return flags ? "mismatches of results" : "mismatches with their flags";
  }

  std::string rule_text(const Fit& fit, std::string_view of) const {
    std::string text =
        fmt::format("{} ({}): explains {} of {} {}, {}", fit.rule.name, fit.rule.family,
                    fit.explained, fit.of, of,
                    fit.against == 0 ? "there are no matches to compare it with"
                                     : fmt::format("contradicts 0 of {} matches", fit.against));
    constexpr std::size_t kShown = 3;
    std::vector<std::string> equal;
    for (const auto& rule : fit.equal) equal.push_back(rule.name);
    return text + (equal.empty() ? "" : "; so do: " + joined_first(equal, ", ", kShown));
  }

  std::string account_text(const oracle::Account& account, std::string_view of) const {
    std::string text;
    for (const Fit& fit : account.fits)
      text += fmt::format("{:<11} {}\n", text.empty() ? "rule" : "", rule_text(fit, of));
    if (!text.empty() || account.rules == 0) return text;
    text = fmt::format("{:<11} none of {} fits the {}", "rule", account.rules, of);
    if (const auto& nearest = account.nearest)
      text +=
          fmt::format("; the nearest, {} ({}), contradicts {} of {} records", nearest->rule.name,
                      nearest->rule.family, nearest->not_given(), nearest->of + nearest->against);
    return text + "\n";
  }

  std::string rules_text() const {
    if (explanation_.mismatches == 0) return "";
    std::string text = account_text(explanation_.of_results, of_results()) +
                       account_text(explanation_.of_flags, "mismatches of flags");
    if (explanation_.mismatches < v_.judged().tally.mismatches())
      text += fmt::format("{:<11} tried on the first {} mismatches and on {} matches\n", "",
                          explanation_.mismatches, explanation_.matches);
    return text;
  }

  Json finding_json(const MismatchedRecord& f) const {
    const std::int64_t number = f.one.number[0];
    Json json = {{"record", number},
                 {"class", utf8_text(std::string(f.one.records.class_name(0)))}};
    if (verified_.product != nullptr) {
      add_place(place_of(number, verified_.product->batch), *verified_.product, json);
    } else {
      json[verified_.place] = f.one.records.line[0];
    }
    json["mismatch"] = name_of(f.comparison.mismatch);
    if (f.comparison.ulps) json["ulps"] = *f.comparison.ulps;
    if (f.comparison.mismatch == Mismatch::unknown) return json;
    json["expected"] = code_text(f.one.want[0]);
    json["found"] = code_text(f.one.records.code(v_.result_field(), 0));
    json["step"] = Json(oracle::parting(subject(), f.one.records, rule_of(f)));
    return json;
  }

  const oracle::Judge& v_;
  const Verified& verified_;
  const Explanation& explanation_;
};

/// Text as XML has it, in attributes and elements; control characters are left out.
std::string xml_text(std::string_view text) {
  std::string escaped;
  for (const char c : harmless(text)) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace

void Junit::add(const std::string& class_name, const std::string& name, const std::string& failure,
                const std::string& lines, bool whole_lines) {
  ++tests_;
  cases_ +=
      fmt::format("  <testcase classname=\"{}\" name=\"{}\"", xml_text(class_name), xml_text(name));
  if (failure.empty()) {
    cases_ += "/>\n";
    return;
  }
  ++failures_;
  cases_ += fmt::format(">\n    <failure message=\"{}\">", xml_text(failure));
  if (!whole_lines) cases_ += xml_text(lines);
  for (std::size_t begin = 0; whole_lines && begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    cases_ += xml_text(std::string_view(lines).substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  cases_ += "</failure>\n  </testcase>\n";
}

std::string Junit::suite(const std::string& what) const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"numemu verify {}\" "
      "tests=\"{}\" failures=\"{}\">\n{}</testsuite>\n",
      xml_text(what), tests_, failures_, cases_);
}

std::string explain_record(const Subject& s, const oracle::Records& one) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) text += line + "\n";
  };
  if (s.unit == nullptr) {
    add(oracle::parting(s, one, nullptr));
    return text;
  }
  const oracle::Layout layout = oracle::layout_of(s);
  oracle::UnitDot dot(s, layout);
  unit::Trace steps;
  const std::uint64_t own = dot.outcome(one, 0, nullptr, &steps).code;
  const unit::Gemm gemm = dot.gemm(one, 0);
  const std::uint64_t given = one.code(oracle::find_field(layout, "d"), 0);
  text = trace_text({*s.unit, gemm, 0, 0, std::move(steps)}, "0");
  if (s.codes) return text + oracle::epilogue_text(s, oracle::sum_record(s, one, 0)) + "\n";
  if (given == own) return text;
  const unit::UnitDescription& u = *s.unit->description();
  add(unit::explain_result(
      u, gemm, 0, 0, 0, unit::element_value(s.unit->d_format(), unit::result_register(u), given)));
  return text;
}

std::string verify_text(const Verified& v) { return Report(v).text(); }
Json verify_json(const Verified& v) { return Report(v).json(); }
std::string verify_junit(const Verified& v) { return Report(v).junit(); }

}  // namespace numemu::api
