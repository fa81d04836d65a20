// numemu search: thousands of formats and scales ranked for a network or a law, the best measured.
#include "api/studies.hpp"
#include "cli/command.hpp"
#include "cli/experiment_run.hpp"
#include "cli/network_options.hpp"

namespace numemu::cli {
namespace {

struct SearchOptions {
  api::SearchRequest asked;
  bool json = false, quiet = false;
};

int run_search(const SearchOptions& options) {
  return run_and_print(api::experiment_of(options.asked),
                       {.json = options.json, .quiet = options.quiet, .tables = true});
}

}  // namespace

void add_search(Program& program) {
  auto [command, options] = program.command<SearchOptions>("search", run_search);
  api::SearchRequest& asked = options.asked;
  command.option("--net NAME|FILE", asked.net, "Network to search recipes for");
  command.option("--data SET", asked.data, "Its data set");
  command.option("--dist LAW...", asked.dist,
                 "Laws or .npy files of numbers in place of a network");
  command
      .option("--bits B", asked.bits,
              "Most stored bits of an element with its scales, of weights and of activations each "
              "(default 4.5; beside --max-loss 9)")
      .positive();
  command
      .option(
          "--mac-cost C", asked.mac,
          "Most cost of a multiply-add over float32's: bits times bits of the elements, and the "
          "bits of the unit's adders")
      .positive();
  command
      .option("--max-loss POINTS", asked.max_loss,
              "Find the cheapest configuration that surely loses at most so much top-1")
      .non_negative();
  command.option("--tune STEPS", asked.tune,
                 "Last step of --max-loss: tune cheaper configurations (docs/tune.md; light)");
  command.option("--formats F...", asked.formats,
                 "Element formats, lists and grids as in analyze (default: all of so many bits)");
  command.option("--blocks N...", asked.blocks, "Sizes of blocks (default 8 16 32 64 128)");
  command.option("--scales F...", asked.scales,
                 "Scale formats of groups (default float16 float8_e4m3fn float8_e5m2)");
  command.option(
      "--rules NAME...", asked.rules,
      "Scale rules (default absmax pow2(absmax,up) floor ceil even nearest, four-over-six "
      "in groups, and mse of weights)");
  command.option("--units U...", asked.units, "Units of products (default f32.sequential)");
  command
      .option("--refine N", asked.refine,
              "Configurations refined by noise of random phase (default 64)")
      .whole(0, 10000);
  command.option("--measured N", asked.measured, "The best of them, measured (default 8)")
      .whole(0, 1000);
  command
      .option("--random N", asked.random, "Further ones, drawn at random and measured (default 8)")
      .whole(0, 1000);
  command.option("--images N", asked.images, "Test samples (default 2000)").whole(1, 100'000'000);
  command.option("--seed S", asked.seed, "Seed of what is drawn at random")
      .whole(0, std::int64_t{1} << 53);
  command.option("--out DIR", asked.out,
                 "Folder for rows and report (default out/search-NET-B, -loss-P)");
  command.option("--figures DIR", asked.figures,
                 "Folder for the report's figures as SVG, PDF and CSV and its tables as LaTeX");
  command.flag("--fresh", asked.existing, "Delete existing rows and trials", api::Existing::fresh);
  command.flag("--json", options.json, "Print the conclusion as JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
