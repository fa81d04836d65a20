// MLPerf Inference without its hardware: quality targets of shipped recipes, and what the load
// generator's scenarios measure of simulated machines (Reddi et al., ISCA 2020, arXiv 1911.02549).
#include "experiments/engine/experiment.hpp"
#include "experiments/mlperf/gates.hpp"
#include "experiments/mlperf/scenarios.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_mlperf(const ExperimentRun& run) {
  mlperf::check_recipes(run);
  Conclusion conclusion;
  mlperf::add_scenarios(run, conclusion);
  mlperf::add_gates(run, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_mlperf;
const Experiment experiment_mlperf = {
    "mlperf",
    "which recipes pass MLPerf's quality targets on how many images, and how many queries do its "
    "scenarios need",
    "MLPerf Inference (Reddi et al., ISCA 2020, arXiv 1911.02549; inference_rules.adoc) asks for "
    "99 % of float32's accuracy, and for numbers of queries that give tail latencies with 99 % "
    "confidence.",
    {{"eight bits",
      "Shipped recipes of 8 bits and more keep 99 % of float32's top-1 (a contrast)."},
     {"images",
      "The images that decide a paired gate are z^2 variance / margin^2 within 10 %, from 1,000 "
      "images on (derived here)."},
     {"scenarios",
      "Latencies in SingleStream and MultiStream and the rate of Offline are those of the law of "
      "the service times (derived here)."},
     {"server",
      "Latencies in Server and its largest rate are those of M/M/c and M/D/1, means those of M/G/1 "
      "(derived here)."},
     {"speed",
      "A machine twice as fast serves more than twice the queries within the bound, by the ratio "
      "of the closed forms (derived here)."},
     {"independent",
      "24,576 independent queries give the 90 % tail within its margin as often as the binomial "
      "law says, 99 % (derived here)."},
     {"few",
      "1,024 queries, the rules' least number in SingleStream, do so in the 40 % that the same law "
      "says (derived here)."},
     {"queue",
      "The queue of M/M/1 multiplies the variance of the share of late queries as its Poisson "
      "equation says (derived here)."},
     {"dependent",
      "270,336 queries of Server give the 99 % tail within its margin at 99 % (published)."}},
    {{"services", "exponential(1000),constant(0.001)",
      "exponential(1000),constant(0.001),lognormal(0.001,0.0005)",
      "exponential(1000),constant(0.001),normal(0.001,0.0002),lognormal(0.001,0.0005),"
      "lognormal(0.001,0.002)",
      "laws of the seconds that a sample takes", list_of(mlperf::check_service)},
     {"servers", "1", "1,4", "1,2,4,16", "servers of the machines whose law is exponential",
      wholes(1, 1000)},
     {"bound", "0.015", "0.015", "0.015", "seconds within which 99 % of the queries must end",
      real(1e-9, 1e6)},
     {"seconds", "0", "600", "600", "least duration of a run", real(0, 1e6)},
     {"runs", "8", "40", "400", "simulated runs of every machine", whole(2, 100'000)},
     {"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks with shipped weights, or files; -: none",
      takes_networks_or_none()},
     {"trained", "-", "mlp-bn", "mobilenet-small", "networks that are trained here; -: none",
      takes_networks_or_none()},
     {"data", "glyphs", "glyphs", "glyphs", "data set", takes_data_set()},
     {"recipes", "int8-static,mxfp4", "shipped", "shipped",
      "names or files; shipped: all shipped ones of inference", list_of()},
     {"gates", "mlperf.resnet,0.999", "mlperf.resnet,mlperf.mobilenet,0.999",
      "mlperf.resnet,mlperf.mobilenet,0.999", "targets", list_of(mlperf::check_gate)},
     {"epochs", "1", "2", "8", "of their training", whole(1, 10'000)},
     {"batch", "64", "64", "64", "images of a step", whole(1, 100'000)},
     {"train_samples", "512", "8192", "16384", "training images; 0: all", whole(0, 1'000'000'000)},
     {"eval_samples", "500", "4000", "0", "test images; 0: all", whole(0, 1'000'000'000)}},
    run_mlperf,
    mlperf::check_scenarios};

}  // namespace numemu::experiments
