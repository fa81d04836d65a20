// The table of published systems against the claims that experiments declare, and its page.
#include "experiments/published/systems.hpp"

#include <algorithm>
#include <set>

#include "experiments/engine/experiment.hpp"
#include "experiments/published/page.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace systems_test {

using namespace numemu::experiments;
using Catch::Contains;
using numemu::Verdict;

namespace {

/// The claim of the experiment with that key; null where it has none.
const Claim* declared(std::string_view experiment, std::string_view key) {
  const std::vector<Claim>& claims = find_experiment(experiment).claims;
  const auto found =
      std::ranges::find_if(claims, [&](const Claim& claim) { return claim.key == key; });
  return found == claims.end() ? nullptr : &*found;
}

bool tagged(std::string_view text, std::string_view tag) {
  return text.find("(" + std::string(tag)) != text.npos;
}

/// A run of the experiment with that verdict on its claim, measured 1.25.
ConcludedRun run_of(const std::string& name, const std::string& key, Verdict verdict) {
  ConcludedRun run{name + "-run", "../" + name + "-run/report.html", {}};
  run.file.name = name;
  run.file.settings = numemu::Json{{"net", "mlp|x"}, {"data", "glyphs"}, {"seeds", "5"}};
  ClaimRow claim;
  claim.key = key;
  claim.verdict = verdict;
  claim.holds = verdict == Verdict::holds;
  claim.undecided = verdict == Verdict::undecided;
  claim.fails = 2 * (verdict == Verdict::fails);
  Finding worst;
  worst.what = "the <worst>";
  worst.measured = 1.25;
  worst.predicted = 1;
  claim.worst = worst;
  run.file.claims = {claim};
  return run;
}

}  // namespace

TEST_CASE("every claim of every experiment is tagged by its source", "[fast]") {
  for (const Experiment* experiment : all_experiments()) {
    for (const Claim& claim : experiment->claims) {
      INFO(experiment->name << ": " << claim.key);
      CHECK(tagged(claim.text, "published") + tagged(claim.text, "derived here") +
                tagged(claim.text, "a contrast") + tagged(claim.text, "an open question") >=
            1);
    }
  }
}

TEST_CASE("systems name published claims of experiments", "[fast]") {
  std::set<std::string_view> names;
  for (const System& system : published_systems()) {
    INFO(system.name);
    CHECK(names.insert(system.name).second);
    CHECK_FALSE(system.claims.empty());
    for (const PublishedClaim& published : system.claims) {
      INFO(published.text);
      CHECK_FALSE(published.place.empty());
      CHECK(published.key.empty() == published.experiment.empty());
      CHECK(published.key.empty() != published.nearest.empty());
      // What follows from the definition is seen in any set-up.
      if (published.identity) CHECK((published.setup.empty() && !published.key.empty()));
      if (published.key.empty()) continue;
      const Claim* claim = declared(published.experiment, published.key);
      REQUIRE(claim);
      CHECK(tagged(claim->text, "published"));
    }
  }
  CHECK(names.size() == 33);
}

TEST_CASE("every claim that is tagged as published stands in one system", "[fast]") {
  for (const Experiment* experiment : all_experiments()) {
    for (const Claim& claim : experiment->claims) {
      INFO(experiment->name << ": " << claim.key);
      CHECK(tagged(claim.text, "published") ==
            (published_claim(experiment->name, claim.key) != nullptr));
      const auto tests_it = [&](const PublishedClaim& one) {
        return one.experiment == experiment->name && one.key == claim.key;
      };
      std::ptrdiff_t places = 0;
      for (const System& system : published_systems())
        places += std::ranges::count_if(system.claims, tests_it);
      CHECK(places <= 1);
    }
  }
}

TEST_CASE("a test is a claim in a run; claims without runs are counted apart", "[fast]") {
  const SystemsTally none = tally({});
  CHECK(none.tests.compared() == 0);
  CHECK(none.not_tested > 0);
  const SystemsTally some = tally({run_of("novograd", "state", Verdict::holds),
                                   run_of("novograd", "accuracy", Verdict::fails),
                                   run_of("novograd", "accuracy", Verdict::undecided),
                                   run_of("novograd", "epsilon", Verdict::fails)});
  CHECK(some.tests.holds == 1);
  CHECK(some.tests.compared() == 1);
  CHECK(some.identities == 1);       // half of Adam's state, which any correct program keeps
  CHECK(some.elsewhere.fails == 1);  // the paper trains larger networks
  CHECK(some.elsewhere.undecided == 1);
  CHECK(some.without == none.without - 2);
  CHECK_THAT(answer(some),
             Contains("33 systems. Of 1 test of published claims that any set-up can test 1 "
                      "holds (1 of them an identity or proven bound of the method, which any "
                      "correct program meets). Of 2 tests of published claims that papers test on "
                      "larger networks, longer trainings or other machines, here 1 is undecided, 1 "
                      "fails. "));
  const SystemsTally mixed =
      tally({run_of("novograd", "state", Verdict::holds), run_of("birder", "bits", Verdict::holds),
             run_of("actnn", "unbiased", Verdict::holds),
             run_of("kure", "published curve", Verdict::fails),
             run_of("binarized", "xnor", Verdict::fails)});
  CHECK(mixed.identities == 2);
  CHECK_THAT(answer(mixed), Contains("3 hold (2 of them identities or proven bounds of the method, "
                                     "which any correct program meets), 2 fail."));
  CHECK_THAT(answer(none), Contains("33 systems. No published claim was tested. "));
}

TEST_CASE("runs that share a measurement are one test", "[fast]") {
  ConcludedRun full = run_of("novograd", "state", Verdict::holds), other = full;
  full.name = "full-run";
  other.name = "other-run";
  other.file.claims[0].worst->measured = 1.5;
  const std::vector<ConcludedRun> runs = {run_of("novograd", "state", Verdict::holds), full, other};
  CHECK(tally(runs).tests.holds == 2);
  CHECK_THAT(systems_markdown(runs), Contains("seeds: 5; the same in full-run; the \\<worst\\>"));
  CHECK_THAT(systems_html(runs, embedded_assets()),
             Contains("seeds: 5; the same in full-run. the"));
  // Means over other numbers of equal seeds differ in their last bits.
  ConcludedRun last_bit = full;
  last_bit.file.claims[0].worst->measured += 1e-15;
  CHECK(tally({full, last_bit}).tests.holds == 1);
}

TEST_CASE("a claim that a run cannot show is not tested by it", "[fast]") {
  ConcludedRun run = run_of("novograd", "state", Verdict::none);
  const SystemsTally some = tally({run}), none = tally({});
  CHECK(some.tests.compared() == 0);
  CHECK(some.without == none.without);
  CHECK_THAT(systems_markdown({run}), Contains("the \\<worst\\> | 1 | 1.25 | - | not tested |"));
  CHECK_THAT(systems_html({run}, embedded_assets()), Contains(">not tested<"));
}

TEST_CASE("the page has every system, its runs and what is not tested", "[fast]") {
  const std::vector<ConcludedRun> runs = {run_of("novograd", "accuracy", Verdict::fails)};
  const std::string markdown = systems_markdown(runs);
  CHECK_THAT(markdown, Contains("## TracIn"));
  ConcludedRun tuned = runs[0];
  tuned.file.settings = {
      {"nets", "-"}, {"data", "glyphs"}, {"tuned_nets", "n.onnx"}, {"tuned_data", "cifar10:d"}};
  // The data of networks that the run does without are not its own.
  CHECK_THAT(systems_markdown({tuned}), Contains("report.html): n.onnx on cifar10:d; the "));
  CHECK_THAT(
      markdown,
      Contains("[novograd-run](../novograd-run/report.html): mlp\\|x on glyphs; "
               "seeds: 5; the \\<worst\\> | 1 | 1.25 | - | fails in this set-up (2 fail) |"));
  CHECK_THAT(markdown, Contains("| not tested here |"));
  CHECK_THAT(markdown, Contains("half of Adam's state (abstract; any correct program meets it)"));
  // A system that nothing here tests has no command.
  CHECK_THAT(markdown, Contains("## 8-bit optimizer states\nDettmers et al., ICLR 2022, arXiv "
                                "2110.02861\n\n"));
  const std::string html = systems_html(runs, embedded_assets());
  CHECK_THAT(html, Contains("<a href=\"../novograd-run/report.html\">novograd-run</a>: mlp|x on "
                            "glyphs; seeds: 5. the &lt;worst&gt;"));
  CHECK_THAT(html, Contains("fails in this set-up<small>2 fail</small>"));
  // At a glance: a sign for each verdict, linked to the claims.
  CHECK_THAT(html, Contains("<a href=\"#s") && Contains("class=\"verdict fails elsewhere\"") &&
                       Contains("fails in this set-up (novograd-run)\">✕</span>"));
  CHECK(html.find("{{") == html.npos);
}

TEST_CASE("systems: figures and the table of claims for papers", "[fast]") {
  ConcludedRun run = run_of("novograd", "accuracy", Verdict::fails);
  CHECK(systems_paper({run}, embedded_assets())["figures"].empty());
  run.file.charts = {{.title = "empty"}, {.title = "Bits", .series = {{"a", {{.x = 1, .y = 2}}}}}};
  const numemu::Json page = systems_paper({run}, embedded_assets());
  REQUIRE(page["figures"].size() == 1);
  CHECK(page["figures"][0]["name"] == "novograd");
  CHECK(page["figures"][0]["title"] == "NovoGrad: Bits");
  CHECK_THAT(systems_html({run}, embedded_assets()), Contains("NovoGrad: Bits"));
  const ResultTable table = systems_table({run});
  const auto tested =
      std::ranges::count_if(table.rows, [](const auto& row) { return row[2] == "novograd-run"; });
  CHECK(tested == 1);
  CHECK(std::ranges::count_if(table.rows, [](const auto& row) {
          return row.back() == "not tested here";
        }) == std::ssize(table.rows) - 1);
}

}  // namespace systems_test
