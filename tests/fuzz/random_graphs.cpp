// Runs random networks with predictions, each under the shipped recipe that its seed draws, all in
// one process: FOLDER of data, graphs, first seed. Exit code 1 after an error that is no refusal.
#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "experiments/engine/recipe_files.hpp"
#include "experiments/engine/row_noise.hpp"
#include "experiments/predict/injected_noise.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/predict/left_out.hpp"
#include "formats/error.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/notes/notes.hpp"
#include "tests/fuzz/random_graph.hpp"

/// Undefined behaviour is a finding, as an address is.
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }

namespace {

using namespace numemu;

constexpr std::int64_t kProbesOfAGraph = 2;
/// Graphs that a seed draws until its recipe and the import take one.
constexpr std::uint64_t kAttempts = 4;

/// What `infer` does with a model and a recipe, but for files.
void run(const policies::Recipe& recipe, fuzz::Draws& draws) {
  const net::ImportedModel model = fuzz::random_graph(draws);
  const net::Graph& graph = model.graph;
  const std::int64_t samples = 1 + draws.below(4);
  std::vector<net::Tensor> batch;
  for (const net::GraphInput& input : graph.inputs) {
    net::Shape shape = input.shape;
    shape.insert(shape.begin(), samples);
    net::Tensor& x = batch.emplace_back(shape);
    x.data = draws.numbers(x.size());
  }
  policies::RecipeNumerics numerics(recipe, graph);
  const policies::BoundRecipe& bound = numerics.bound();
  const policies::FloatReference reference = policies::float_reference(graph, std::move(batch));
  numerics.freeze(graph, reference);
  policies::recipe_notes(bound, reference);
  policies::notes_on_tables(bound);
  experiments::model_notes(bound);
  policies::effective_bits(bound, reference);
  experiments::NoiseFigures figures;
  experiments::FitCache fits;
  figures.tensors =
      experiments::predict_tensors(bound, reference, fits, numerics.roles().static_scales());
  figures.predicted = experiments::predict_layers(
      bound, reference, numerics.roles().static_scales(), kProbesOfAGraph);
  experiments::leave_out(figures.predicted, bound, figures.tensors);
  figures.measured = experiments::measure_once(figures.tensors, numerics, numerics, reference,
                                               [](const net::Node&) {});
  experiments::Row row;
  experiments::add_noise(row, figures, graph, numerics);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: random_graphs DATA GRAPHS FIRST_SEED\n", stderr);
    return 2;
  }
  omp_set_num_threads(1);  // graphs are smaller than what a thread costs
  const std::string data = argv[1];
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t first = std::strtoull(argv[3], nullptr, 10);
  const std::vector<std::string> names = experiments::shipped_recipes(data, true);
  std::vector<policies::Recipe> recipes;
  for (const std::string& name : names) {
    const Json json = experiments::read_recipe(name, data, "recipe");
    recipes.push_back(policies::Recipe::parse(json, name).last_stage());
  }
  std::map<std::string, std::uint64_t> ran, refused;
  std::uint64_t wrong = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::size_t drawn = seed % names.size();
    std::printf("%llu %s", static_cast<unsigned long long>(seed), names[drawn].c_str());
    std::fflush(stdout);  // the seed stands last when a signal ends the process
    fuzz::Draws draws(seed);
    try {
      for (std::uint64_t attempt = 1;; ++attempt) {
        try {
          run(recipes[drawn], draws);
          ++ran[names[drawn]];
          std::puts("");
          break;
        } catch (const Error& error) {
          std::printf("%s refused: %s", attempt == 1 ? ":" : ";", error.what());
          if (attempt < kAttempts) continue;
          ++refused[names[drawn]];
          std::puts("");
          break;
        }
      }
    } catch (const std::exception& error) {
      ++wrong;
      std::printf(": internal error: %s\n", error.what());
    }
  }
  for (const std::string& name : names)
    std::printf("%s: %llu ran, %llu refused\n", name.c_str(),
                static_cast<unsigned long long>(ran[name]),
                static_cast<unsigned long long>(refused[name]));
  std::printf("%llu graphs, %llu internal errors\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
