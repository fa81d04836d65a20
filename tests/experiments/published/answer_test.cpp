// The sentence that a conclusion opens with, and the figures of papers beside its claims.
#include "experiments/published/systems.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace answer_test {

using namespace numemu::experiments;
using numemu::Json;
using numemu::Verdict;

namespace {

ClaimRow claim_of(const char* key, const char* text, Verdict verdict) {
  ClaimRow claim;
  claim.key = key;
  claim.claim = text;
  claim.verdict = verdict;
  return claim;
}

ExperimentFile actnn() {
  ExperimentFile file;
  file.name = "actnn";
  file.settings = Json{{"net", "mlp"},  {"data", "glyphs"}, {"seeds", "10"},
                       {"epochs", "4"}, {"batch", "128"},   {"train_samples", "8192"}};
  file.claims = {claim_of("memory", "It keeps 12 times less (published).", Verdict::holds),
                 claim_of("unbiased", "No bias (published).", Verdict::undecided),
                 claim_of("bytes", "Bytes are counted (derived here).", Verdict::fails)};
  return file;
}

}  // namespace

TEST_CASE("the answer counts published claims, and names network, data, seeds and steps",
          "[fast]") {
  ExperimentFile file = actnn();
  const std::string larger =
      "whose papers test larger networks, longer trainings or other machines ";
  CHECK(answer_of(file) == "Of 1 published claim 1 is undecided; of 1 " + larger +
                               "1 holds in this set-up (mlp on glyphs; seeds: 10; steps: 256).");
  file.claims.erase(file.claims.begin() + 1);
  CHECK(answer_of(file) == "Of 1 published claim " + larger +
                               "1 holds in this set-up (mlp on glyphs; seeds: 10; steps: 256).");
  file.claims.erase(file.claims.begin());
  CHECK(answer_of(file) == "Of 1 claim 1 fails (mlp on glyphs; seeds: 10; steps: 256).");
  file.claims[0].verdict = Verdict::none;
  CHECK(answer_of(file) == "Of 1 claim 1 is not tested (mlp on glyphs; seeds: 10; steps: 256).");
  file.claims.clear();
  CHECK(answer_of(file).empty());
}

TEST_CASE("steps need the samples, and files may have any settings", "[fast]") {
  ExperimentFile file = actnn();
  file.settings["train_samples"] = "0";  // all, which the file does not say
  CHECK(run_words(file) == "mlp on glyphs; seeds: 10; epochs: 4");
  file.settings["trained"] = "0";  // the epochs are those of further networks
  CHECK(run_words(file) == "mlp on glyphs; seeds: 10");
  file.settings["epochs"] = "many";
  CHECK(run_words(file) == "mlp on glyphs; seeds: 10");
  file.settings = Json::array();
  CHECK(run_words(file).empty());
  file.settings = {{"nets", "-"}, {"data", "glyphs"}, {"tuned_nets", "n"}, {"tuned_data", "d"}};
  CHECK(run_words(file) == "n on d");
  // Of files that are trained on, the steps are theirs, not those of networks that the run lacks.
  for (const char* key : {"batch", "tuned_batch"}) file.settings[key] = "128";
  file.settings["epochs"] = "1";
  file.settings["train_samples"] = "1024";
  file.settings["tuned_epochs"] = "2";
  file.settings["tuned_train_samples"] = "5000";
  CHECK(run_words(file) == "n on d; steps: 80");
  file.settings["tuned_nets"] = "-";
  file.settings["nets"] = "mlp";
  CHECK(run_words(file) == "mlp on glyphs; steps: 8");
  file.settings = {{"net", "mlp"}, {"nets", "mlp"}, {"data", "glyphs"}};
  CHECK(run_words(file) == "mlp on glyphs");
  // Images and a text, each with its own steps.
  file.settings = {{"nets", "-"},
                   {"data", "glyphs"},
                   {"text_nets", "lstm-char"},
                   {"text_data", "chain"},
                   {"text_epochs", "2"},
                   {"text_batch", "8"},
                   {"text_train_samples", "64"}};
  CHECK(run_words(file) == "lstm-char on chain; steps on text: 16");
  // The steps of networks that the run lacks are none of its.
  file.settings["net"] = "-";
  for (const char* key : {"epochs", "batch", "train_samples"}) file.settings[key] = "64";
  CHECK(run_words(file) == "lstm-char on chain; steps on text: 16");
  file.settings["net"] = "mlp";
  file.settings["text_net"] = "lstm-char";  // of a setting that takes one network
  file.settings["text_nets"] = "-";
  CHECK(run_words(file) == "mlp on glyphs; lstm-char on chain; steps: 64; steps on text: 16");
  file.settings = {{"nets", "-"}, {"data", "glyphs"}, {"text_nets", "-"}, {"text_data", "chain"}};
  CHECK(run_words(file).empty());
}

TEST_CASE("a verdict on another set-up than the paper's says so", "[fast]") {
  CHECK(verdict_text(Verdict::fails, false) == "fails");
  CHECK(verdict_text(Verdict::fails, true) == "fails in this set-up");
  CHECK(verdict_text(Verdict::undecided, true) == "undecided");
  CHECK(published_claim("actnn", "bytes") == nullptr);
  CHECK(published_claim("", "") == nullptr);  // of what no experiment tests there are several
  REQUIRE(published_claim("actnn", "memory"));
  CHECK(published_claim("actnn", "memory")->figure == "12 x");
}

TEST_CASE("figures of papers stand beside their claims", "[fast]") {
  ExperimentFile file = actnn();
  CHECK(published_figures(file) ==
        std::vector<std::string>{"12 x, ResNets, detectors and segmentation networks (abstract)",
                                 "", ""});
  CHECK(published_figure("birder", "bits") == "1 bit (abstract)");
  CHECK(published_figure("ghost-bn", "gap") ==
        "networks trained to the end on MNIST, CIFAR and ImageNet (abstract)");
  file.claims.erase(file.claims.begin());
  CHECK(published_figures(file).empty());
}

}  // namespace answer_test
