// The text of --steps, and the table of steps.
#include "policies/tune/base/tune_step.hpp"

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/policies/option_cell.hpp"

namespace tune_step_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

/// The row of a step in docs/tune.md.
std::string row_of(const TuneStepKind& kind) {
  const auto options = kind.options();
  std::vector<std::string> cells;
  for (const Option& option : options->list()) cells.push_back(policies::test::option_cell(option));
  return fmt::format("| `{}` | {} | {} | {} |\n", kind.name, policies::test::join(cells, "<br>"),
                     kind.summary, kind.source);
}

}  // namespace

TEST_CASE("docs/tune.md has the row of every step", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/tune.md");
  for (const TuneStepKind* kind : all_tune_steps()) {
    INFO("expected in docs/tune.md:\n" << row_of(*kind));
    CHECK(page.find(row_of(*kind)) != page.npos);
  }
}

TEST_CASE("a pipeline stands for its steps, and docs/tune.md has its row", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/tune.md");
  for (const TunePipeline& pipeline : tune_pipelines()) {
    const std::string steps = tune_steps_text(parse_tune_steps(std::string(pipeline.steps), ""));
    CHECK(tune_steps_text(parse_tune_steps(std::string(pipeline.name) + ",bias", "--steps")) ==
          steps + ",bias");
    const std::string row =
        fmt::format("| `{}` | `{}` | {} |\n", pipeline.name, pipeline.steps, pipeline.summary);
    INFO("expected in docs/tune.md:\n" << row);
    CHECK(page.find(row) != page.npos);
  }
  CHECK_THROWS_WITH(parse_tune_steps("light(3)", "--steps"),
                    Catch::Contains("--steps: light: expected no options, found '3'"));
}

TEST_CASE("every tuning step has a name, texts, options and a step", "[fast]") {
  REQUIRE(all_tune_steps().size() >= 1);
  for (const TuneStepKind* kind : all_tune_steps()) {
    CAPTURE(kind->name);
    CHECK(&find_tune_step(kind->name) == kind);
    CHECK_FALSE(kind->summary.empty());
    CHECK_FALSE(kind->source.empty());
    const auto options = kind->options();
    for (const Option& option : options->list()) CHECK_FALSE(option.help.empty());
    CHECK(kind->make(*options) != nullptr);
  }
}

TEST_CASE("options of steps are read by place and by name, and written by name", "[fast]") {
  const auto text = [](const std::string& steps) {
    return tune_steps_text(parse_tune_steps(steps, "--steps"));
  };
  CHECK(text("calibrate") == "calibrate");
  CHECK(text("calibrate(recipe)") == "calibrate");
  CHECK(text("calibrate(percentile(99.5))") == "calibrate(rule=percentile(99.5))");
  CHECK(text("calibrate(rule=mse),calibrate") == "calibrate(rule=mse),calibrate");
}

TEST_CASE("steps that need classes are refused without, and left out of pipelines", "[fast]") {
  auto steps = parse_tune_steps("advanced,calibrate", "--steps");
  const std::size_t all = steps.size();
  CHECK(leave_out_class_steps(steps, "--steps") ==
        std::vector<std::string>{"advanced leaves out bias, which compares probabilities of "
                                 "classes: the targets are numbers."});
  CHECK(steps.size() == all - 1);
  CHECK(tune_steps_text(steps).find("bias") == std::string::npos);
  CHECK(leave_out_class_steps(steps, "--steps").empty());
  for (const char* name : {"bias", "distill"}) {
    auto alone = parse_tune_steps(std::string("light,") + name, "--steps");
    CHECK_THROWS_WITH(
        leave_out_class_steps(alone, "--steps"),
        Catch::StartsWith(std::string("--steps: ") + name + ": expected a task of classes"));
  }
}

TEST_CASE("steps that need classes are taken from a list, whoever named them", "[fast]") {
  auto steps = parse_tune_steps("bias,advanced,distill,calibrate", "--steps");
  const std::size_t all = steps.size();
  std::string names;
  for (const TuneStepChoice& step : take_class_steps(steps))
    names += std::string(step.kind->name) + " ";
  CHECK(names == "bias bias distill ");
  CHECK(steps.size() == all - 3);
  CHECK(std::string(steps.back().kind->name) == "calibrate");
  CHECK(take_class_steps(steps).empty());
}

TEST_CASE("steps and options that are not there are named", "[fast]") {
  const auto fails = [](const std::string& steps, const std::string& with) {
    CHECK_THROWS_WITH(parse_tune_steps(steps, "--steps"), Catch::Contains(with));
  };
  fails("calibrat", "--steps: unknown tuning step 'calibrat'; did you mean 'calibrate'?");
  fails("", "--steps: unknown tuning step ''");
  fails("calibrate,,calibrate", "unknown tuning step ''");
  fails("calibrate(rul=mse)", "--steps: calibrate: unknown option 'rul'");
  fails("calibrate(rule=median)", "--steps: calibrate: rule");
  fails("calibrate(dynamic)", "expected a rule that gives ranges");
  fails("calibrate(mse,3)", "expected at most 1 option, found '3'");
}

}  // namespace tune_step_test
