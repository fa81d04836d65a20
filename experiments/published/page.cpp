#include "experiments/published/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/published/systems.hpp"
#include "experiments/report/datasets.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// What a run found about a published claim.
struct TestedIn {
  const ConcludedRun* run;
  const ClaimRow* claim;
  std::vector<std::string> also = {};  ///< names of later runs that found the same
};

/// Whether two runs have one measurement and verdict: no setting that differs has changed them.
/// Means over other numbers of equal seeds differ in their last bits.
bool same_test(const ClaimRow& a, const ClaimRow& b) {
  const auto same = [](double x, double y) {
    const auto rounded = [](double z) { return fmt::format("{:.6g}", z); };
    return known(x).has_value() == known(y).has_value() && (!known(x) || rounded(x) == rounded(y));
  };
  return a.verdict == b.verdict && a.worst->what == b.worst->what &&
         same(a.worst->predicted, b.worst->predicted) &&
         same(a.worst->measured, b.worst->measured) && same(a.worst->low, b.worst->low) &&
         same(a.worst->high, b.worst->high);
}

std::vector<TestedIn> tests_of(const PublishedClaim& published,
                               const std::vector<ConcludedRun>& runs) {
  std::vector<TestedIn> tests;
  for (const ConcludedRun& run : runs) {
    if (run.file.name != published.experiment) continue;
    for (const ClaimRow& claim : run.file.claims) {
      if (claim.key != published.key || !claim.worst) continue;
      const auto known = std::ranges::find_if(
          tests, [&](const TestedIn& test) { return same_test(*test.claim, claim); });
      if (known == tests.end())
        tests.push_back({&run, &claim});
      else
        known->also.push_back(run.name);
    }
  }
  return tests;
}

/// "; the same in a, b", of a test that other runs have, too.
std::string also_in(const TestedIn& test) {
  return test.also.empty() ? "" : "; the same in " + joined(test.also, ", ");
}

/// "mvue-n-m-pruning-of-gradients": letters, digits and '-'.
std::string file_name(std::string_view title) {
  std::string out;
  for (const char c : title) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (kept)
      out += c;
    else if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c - 'A' + 'a');
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

/// The experiments that test a system, each once.
std::vector<std::string> experiments_of(const System& system) {
  std::vector<std::string> out;
  for (const PublishedClaim& claim : system.claims) {
    const std::string name(claim.experiment);
    if (!name.empty() && std::ranges::find(out, name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string commands_of(const System& system) {
  std::string out;
  for (const std::string& name : experiments_of(system))
    out += fmt::format("{}./numemu experiment {}", out.empty() ? "" : "; ", name);
  return out;
}

/// What the findings of a claim that has several decide: "9 hold, 1 is not tested"; "" for one, and
/// where none is decided.
std::string of_several(const TestedIn& test, const char* format) {
  const VerdictCounts counts = test.claim->counts();
  const auto untested = std::ranges::count_if(test.run->file.findings, [&](const Finding& finding) {
    return finding.claim == test.claim->key && !is_judged(finding.verdict);
  });
  if (counts.compared() == 0 || (counts.compared() == 1 && untested == 0)) return "";
  std::string words = verdict_words(counts);
  if (untested > 0)
    words += fmt::format(", {} {} not tested", untested, untested == 1 ? "is" : "are");
  return fmt::format(fmt::runtime(format), words);
}

constexpr const char* kNoRun = "none of these runs tests it";

/// "abstract; there: ResNet-50 on ImageNet"
std::string place_of(const PublishedClaim& published) {
  return fmt::format("{}{}{}{}", published.place,
                     published.identity ? "; any correct program meets it" : "",
                     published.setup.empty() ? "" : "; there: ", published.setup);
}

bool has_verdict(const TestedIn& test) { return is_judged(test.claim->verdict); }

std::string verdict_of(const TestedIn& test, const PublishedClaim& published) {
  return has_verdict(test) ? verdict_text(test.claim->verdict, !published.setup.empty())
                           : "not tested";
}

std::string markdown_rows(const PublishedClaim& published, const std::vector<ConcludedRun>& runs) {
  std::string text = fmt::format("{} ({})", published.text, place_of(published));
  const auto row = [&text](const std::string& run, const Finding& found,
                           const std::string& verdict) {
    const std::string out =
        fmt::format("| {} | {} | {} | {} | {} | {} |\n", markdown_cell(text), run,
                    figure_text(found.predicted, found.tolerance, "-"),
                    figure_text(found.measured, half_width(found), "-"),
                    markdown_cell(interval_text(found.low, found.high, "-")), verdict);
    text = "the same";
    return out;
  };
  if (published.key.empty())
    return row(markdown_cell(published.nearest), Finding(), "not tested here");
  std::string out;
  for (const TestedIn& test : tests_of(published, runs)) {
    const std::string words = run_words(test.run->file);
    out += row(fmt::format("[{}]({}){}{}{}; {}", markdown_cell(test.run->name), test.run->link,
                           words.empty() ? "" : ": ", markdown_cell(words),
                           markdown_cell(also_in(test)), markdown_cell(test.claim->worst->what)),
               *test.claim->worst, verdict_of(test, published) + of_several(test, " ({})"));
  }
  return out.empty() ? row(kNoRun, Finding(), "-") : out;
}

std::string html_rows(const PublishedClaim& published, const std::vector<ConcludedRun>& runs) {
  const std::string claim = fmt::format("{} <span class=\"place\">({})</span>",
                                        html_text(published.text), html_text(place_of(published)));
  std::string first = claim;
  const auto row = [&first](const std::string& more, const Finding& found, Verdict verdict,
                            const std::string& shown) {
    const auto number = [](double x, double half) {
      return html_number_cell(known(x), figure_text(x, half, kNone));
    };
    const std::string out = fmt::format(
        "<tr><td>{}<small>{}</small></td>{}{}<td class=\"n\">{}</td>{}</tr>\n", first, more,
        number(found.predicted, found.tolerance), number(found.measured, half_width(found)),
        interval_text(found.low, found.high, kNone), html_verdict_cell(verdict, shown));
    first = "The same";
    return out;
  };
  if (published.key.empty())
    return row(html_text(published.nearest), {}, Verdict::none, "not tested here");
  std::string out;
  for (const TestedIn& test : tests_of(published, runs)) {
    const std::string words = run_words(test.run->file);
    out += row(fmt::format("<a href=\"{}\">{}</a>{}{}{}. {}", html_text(test.run->link),
                           html_text(test.run->name), words.empty() ? "" : ": ", html_text(words),
                           html_text(also_in(test)), html_text(test.claim->worst->what)),
               *test.claim->worst, test.claim->verdict,
               verdict_of(test, published) + of_several(test, "<small>{}</small>"));
  }
  return out.empty() ? row(kNoRun, {}, Verdict::none, kNone) : out;
}

/// The first chart of the first run of each system that has one, with the name of the system in
/// front of its title; named by the run.
std::vector<NamedChart> charts_of(const std::vector<ConcludedRun>& runs) {
  std::vector<NamedChart> out;
  for (const System& system : published_systems()) {
    for (const std::string& name : experiments_of(system)) {
      const auto run = std::ranges::find_if(
          runs, [&](const ConcludedRun& one) { return one.file.name == name; });
      if (run == runs.end()) continue;
      const auto drawn = std::ranges::find_if(
          run->file.charts, [](const Chart& chart) { return !experiment_charts({chart}).empty(); });
      if (drawn == run->file.charts.end()) continue;
      NamedChart& chart = out.emplace_back(NamedChart{file_name(system.name), *drawn});
      chart.chart.title = fmt::format("{}: {}", system.name, drawn->title);
      break;
    }
  }
  return out;
}

struct Mark {
  Verdict verdict;
  const char *sign, *words;
};
constexpr Mark kMarks[] = {{Verdict::holds, "●", "holds"},
                           {Verdict::undecided, "◐", "undecided"},
                           {Verdict::fails, "✕", "fails"}};
constexpr const char* kNoTest = "–";

/// Verdicts of a system, claim by claim: signs that differ in shape as well as in colour.
std::string marks_of(const System& system, const std::vector<ConcludedRun>& runs) {
  std::string out;
  for (const PublishedClaim& claim : system.claims) {
    const std::vector<TestedIn> tests = tests_of(claim, runs);
    if (std::ranges::none_of(tests, has_verdict))
      out +=
          fmt::format("<span title=\"{}: not tested\">{}</span>", html_text(claim.text), kNoTest);
    for (const TestedIn& test : tests) {
      for (const Mark& mark : kMarks) {
        if (test.claim->verdict == mark.verdict)
          out += fmt::format("<span class=\"verdict {}{}\" title=\"{}: {} ({})\">{}</span>",
                             to_string(mark.verdict), claim.setup.empty() ? "" : " elsewhere",
                             html_text(claim.text), verdict_of(test, claim),
                             html_text(test.run->name), mark.sign);
      }
    }
  }
  return out;
}

/// Every system with its verdicts at a glance, linked to its claims below.
std::string overview(const std::vector<ConcludedRun>& runs) {
  std::string out, key;
  for (std::size_t i = 0; i < published_systems().size(); ++i) {
    const System& system = published_systems()[i];
    out += fmt::format("<li><a href=\"#s{}\">{}</a> <span class=\"marks\">{}</span></li>\n", i,
                       html_text(system.name), marks_of(system, runs));
  }
  for (const Mark& mark : kMarks)
    key += fmt::format("<span class=\"verdict {}\">{}</span> {}, ", to_string(mark.verdict),
                       mark.sign, mark.words);
  return fmt::format(
      "<p class=\"facts\">A mark is a published claim in one run: {}{} not tested here; dotted "
      "below: the paper tests it on larger networks, longer trainings or other machines.</p>\n"
      "<ol class=\"overview\">\n{}</ol>\n",
      key, kNoTest, out);
}

}  // namespace

SystemsTally tally(const std::vector<ConcludedRun>& runs) {
  SystemsTally out;
  for (const System& system : published_systems()) {
    for (const PublishedClaim& claim : system.claims) {
      if (claim.key.empty()) {
        ++out.not_tested;
        continue;
      }
      const std::vector<TestedIn> tests = tests_of(claim, runs);
      out.without += std::ranges::none_of(tests, has_verdict);
      for (const TestedIn& test : tests) {
        (claim.setup.empty() ? out.tests : out.elsewhere).add(test.claim->verdict);
        out.identities += claim.identity && test.claim->verdict == Verdict::holds;
      }
    }
  }
  return out;
}

std::string answer(const SystemsTally& tally) {
  std::string out = fmt::format("{} systems.", published_systems().size());
  const auto say = [&out](const VerdictCounts& tests, const std::string& of,
                          std::size_t identities) {
    if (tests.compared() == 0) return;
    std::string words = verdict_words(tests);
    if (identities > 0) {  // behind the first verdict, those that hold
      const std::string held = verdict_words({.holds = tests.holds});
      words.insert(
          held.size(),
          fmt::format(
              " ({} of them {} of the method, which any correct program meets)", identities,
              identities == 1 ? "an identity or proven bound" : "identities or proven bounds"));
    }
    out += fmt::format(" Of {} test{} of published claims that {} {}.", tests.compared(),
                       tests.compared() == 1 ? "" : "s", of, words);
  };
  say(tally.tests, "any set-up can test", tally.identities);
  say(tally.elsewhere, fmt::format("papers test on {}, here", kElsewhere), 0);
  if (tally.tests.compared() + tally.elsewhere.compared() == 0)
    out += " No published claim was tested.";
  out += fmt::format(" {} claims are not tested here", tally.not_tested);
  if (tally.without > 0)
    out += fmt::format("; {} other{} a verdict from none of these runs", tally.without,
                       tally.without == 1 ? " gets" : "s get");
  return out + ".";
}

std::string systems_markdown(const std::vector<ConcludedRun>& runs) {
  std::string out = "# Published systems\n\n" + answer(tally(runs)) + "\n\n";
  out +=
      "A test is a published claim in one run; runs that share a measurement are one test. What "
      "the set-up of a run cannot show is not tested, and the finding says why. Numbers are those "
      "of the worst finding of the claim in the run; intervals are 95 %. A verdict of "
      "several findings is that of the worst. *There* is what the paper tests the claim on, which "
      "no run here has: most train small networks for a few hundred steps on two cores. Such a "
      "verdict is one on the set-up of the run, neither on the paper's nor for it.\n";
  for (const System& system : published_systems()) {
    const std::string commands = commands_of(system);
    out += fmt::format("\n## {}\n{}{}\n\n", markdown_cell(system.name), markdown_cell(system.paper),
                       commands.empty() ? "" : ": `" + commands + "`");
    out += fmt::format(
        "| published claim | run; worst finding | {} | {} | 95 % | verdict |\n"
        "|---|---|---:|---:|---|---|\n",
        kPredictedTitle, kMeasuredTitle);
    for (const PublishedClaim& claim : system.claims) out += markdown_rows(claim, runs);
  }
  return out;
}

std::string systems_html(const std::vector<ConcludedRun>& runs, const ReportAssets& assets) {
  const std::string title = "Published systems";
  const std::vector<NamedChart> drawn = charts_of(runs);
  std::vector<Chart> charts;
  for (const NamedChart& one : drawn) charts.push_back(one.chart);
  const Json figures = experiment_charts(charts);
  std::string rows;
  for (std::size_t i = 0; i < published_systems().size(); ++i) {
    const System& system = published_systems()[i];
    const std::string commands = commands_of(system);
    const auto figure = std::ranges::find(drawn, file_name(system.name), &NamedChart::name);
    const std::string link =
        figure == drawn.end() || assets.libraries.empty()
            ? ""
            : fmt::format(" · <a href=\"#fig-e{0}\">figure E{0}</a>", figure - drawn.begin() + 1);
    rows += fmt::format(
        "<tr class=\"system\" id=\"s{}\"><th scope=\"rowgroup\" colspan=\"5\">{}<small>{}{}{}"
        "</small></th></tr>\n",
        i, html_text(system.name), html_text(system.paper),
        commands.empty() ? "" : ": <code>" + html_text(commands) + "</code>", link);
    for (const PublishedClaim& claim : system.claims) rows += html_rows(claim, runs);
  }
  std::string section = "<section aria-label=\"Published systems\">\n<p class=\"answer\">" +
                        html_text(answer(tally(runs))) + "</p>" + overview(runs) +
                        html_table_start("Published claims", html_finding_titles("Published claim"),
                                         " class=\"claims\"") +
                        rows + kTableEnd;
  if (!assets.libraries.empty()) section += experiment_figures(figures);
  section += "</section>\n";
  return fill_template(
      with_section(assets.page, "rows", false),
      {{"title", title},
       {"facts",
        "Numbers are those of the worst finding of a claim in a run; intervals are 95 %; most runs "
        "are small networks on two cores."},
       {"style", std::string(assets.style)},
       {"gate", ""},
       {"experiment", std::move(section)},
       {"answer", ""},
       {"layers", ""},
       {"citation", ""},
       {"scripts", experiment_scripts(figures, assets)}});
}

Json systems_paper(const std::vector<ConcludedRun>& runs, const ReportAssets& assets) {
  return paper_page(charts_of(runs), chart_datasets({}, nullptr), assets);
}

ResultTable systems_table(const std::vector<ConcludedRun>& runs) {
  ResultTable out{"published systems",
                  {"system", "published claim", "run", kPredictedTitle, kMeasuredTitle, "verdict"},
                  {}};
  for (const System& system : published_systems()) {
    for (const PublishedClaim& claim : system.claims) {
      const std::vector<TestedIn> tests = tests_of(claim, runs);
      if (tests.empty())
        out.rows.push_back(
            {std::string(system.name), std::string(claim.text), "", "", "", "not tested here"});
      for (const TestedIn& test : tests) {
        const Finding& worst = *test.claim->worst;
        out.rows.push_back({std::string(system.name), std::string(claim.text), test.run->name,
                            figure_text(worst.predicted, worst.tolerance, "-"),
                            figure_text(worst.measured, half_width(worst), "-"),
                            verdict_of(test, claim)});
      }
    }
  }
  return out;
}

}  // namespace numemu::experiments
