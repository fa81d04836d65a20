#include "experiments/published/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "formats/joined.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

constexpr std::string_view kNeedsImageNet =
    "ImageNet takes more than two cores; the nearest runs are those above";
constexpr std::string_view kNeedsHardware =
    "a time on hardware, which is not emulated; the nearest are the operations and bytes above";

}  // namespace

std::span<const System> published_systems() {
  static const std::vector<System> kSystems = {
      {"MVUE N:M pruning of gradients",
       "Chmiel et al., ICLR 2023, arXiv 2203.10991",
       {{"Pruning of least squared error biases neural gradients, unbiased pruning of least "
         "variance averages out",
         "abstract", "mvue", "averaging"},
        {"Training with 1:2, or where that is not enough 2:4, without bias ends as accurate as "
         "dense training",
         "abstract", "mvue", "training"},
        {"Least squared error fails for pruning neural gradients: they train worse", "abstract",
         "mvue", "bias"},
        {"Least squared error works for pruning activations", "abstract", "mvue", "activations"},
        {"With sparse weights all three products of a layer are sparse at no loss", "paper", "mvue",
         "all products"},
        {"ResNets on ImageNet, a Transformer on WMT, and BERT and ViT fine-tuned keep their "
         "accuracy with 1:2 or 2:4",
         "paper", "", "", kNeedsImageNet}}},
      {"Transposable N:M masks",
       "Hubara et al., NeurIPS 2021, arXiv 2102.08124",
       {{"At equal density accuracy rises with mask diversity", "abstract", "mask-diversity",
         "accuracy"},
        {"Networks train under transposable masks from scratch without loss", "abstract", "mvue",
         "weights"},
        {"The greedy search is a 2-approximation", "abstract", "transposable", "greedy"},
        {"AdaPrune converts a trained network to N:M masks with a few samples and little or no "
         "training (an unstructured sparse one; here a dense one)",
         "abstract", "transposable", "accuracy"},
        {"Products of training are up to twice as fast without loss of accuracy, in vision and "
         "language",
         "abstract", "", "", kNeedsHardware}}},
      {"Stochastic pruning of activation gradients",
       "Ye et al., Accelerating CNN training by pruning activation gradients",
       {{"Pruned without bias below a threshold, gradients cost negligible accuracy", "abstract",
         "stochastic-pruning", "accuracy"},
        {"Backpropagation is up to 5.92 times as fast on CIFAR and ImageNet", "abstract", "", "",
         "a time on an accelerator, which is not emulated; the nearest are the multiply-adds that "
         "the claim `operations` counts"}}},
      {"ZAP: predicted zeros of activations",
       "Shomron et al., ECCV 2020, arXiv 1909.07636",
       {{"Predicted zeros save a large part of a convolution's multiply-adds at little accuracy "
         "(VGG-16 on ImageNet: 23.5 % without fine-tuning)",
         "abstract", "zap", "saving", "", "23.5 % (VGG-16 on ImageNet)"}}},
      {"Lognormal gradients",
       "Chmiel et al., ICLR 2021, arXiv 2006.08173",
       {{"Neural gradients are near-lognormal", "abstract", "lognormal-gradients", "lognormal"},
        {"The error of floats of few bits under the law has a closed form", "paper",
         "lognormal-gradients", "idealised"},
        {"The split of exponent and mantissa that the law chooses is the best, or near it", "paper",
         "lognormal-gradients", "split"},
        {"It trains more accurately than another split", "paper", "lognormal-gradients", "choice"},
        {"Gradients of 6-bit floats, split by the law, cost no accuracy (ResNet-18 on ImageNet)",
         "abstract", "lognormal-gradients", "accuracy", "", "no loss (ResNet-18 on ImageNet)"},
        {"Layers share zeros unequally by their laws (up to 85 % zeros without loss on ImageNet)",
         "abstract", "stochastic-pruning", "sharing", "", "85 % zeros (ImageNet)"}}},
      {"KURE: robust quantization",
       "Shkolnik et al., NeurIPS 2020, arXiv 2002.07686",
       {{"Uniform weights are less sensitive to the step than normal ones", "theorem", "kure",
         "theorem, published step"},
        {"Beyond the end of a uniform law the error of rounding is D^2 / 12", "paper", "kure",
         "published curve"},
        {"A penalty on the kurtosis makes weights near uniform", "abstract", "kure", "kurtosis"},
        {"Networks trained with it keep more accuracy in few bits (ResNet-50, 4-bit weights: 75.6 "
         "instead of 71.8 %)",
         "supplement", "kure", "accuracy", "", "75.6 instead of 71.8 % (ResNet-50, 4-bit weights)"},
        {"Steps that are powers of two cost them less (1.4 instead of 8.2 points)", "supplement",
         "kure", "power of two", "", "1.4 instead of 8.2 points"}}},
      {"AdaQuant and CalibTIP",
       "Hubara et al., ICML 2021, arXiv 2006.10518",
       {{"Steps after training, on a small set without labels, regain accuracy", "abstract",
         "post-training", "gain"},
        {"The loss of a mixture of widths is the sum of its layers' losses", "paper", "allocation",
         "additive"},
        {"ResNet-50 loses less than 1 % at 13 % of its size", "abstract", "post-training", "size",
         "", "less than 1 % at 13 % of the size (ResNet-50)"}}},
      {"4-bit embedding tables",
       "Guan et al., arXiv 1911.02079",
       {{"A model shrinks to 13.89 % of its size at neutral quality", "abstract", "embeddings",
         "auc", "", "13.89 % of the size"},
        {"A row of d elements takes 1/8 + 1/d of its bytes, with codebooks 1/8 + 8/d", "paper",
         "embeddings", "size"},
        {"The greedy search never loses to the range of the row, k-means wins on short rows and "
         "meets it on long ones",
         "paper", "embeddings", "order"}}},
      {"The Knowledge Within: data-free calibration",
       "Haroush et al., CVPR 2020, arXiv 1912.01274",
       {{"Samples that match stored batch-norm statistics calibrate nearly as well as real data, "
         "noise does not",
         "abstract", "data-free", "ranges"},
        {"Networks are fine-tuned to few bits on them without real data", "abstract", "data-free",
         "fine-tuning"}}},
      {"ActNN: activations kept in 2 bits",
       "Chen et al., ICML 2021, arXiv 2104.14129",
       {{"Compressed contexts leave gradients without bias", "theorem", "actnn", "unbiased"},
        {"Their variances add up by layer", "theorem", "actnn", "layers add"},
        {"Activations take 12 times less memory", "abstract", "actnn", "memory", "", "12 x"},
        {"At 2 bits accuracy falls by less than 0.5 %", "paper", "actnn", "accuracy", "",
         "less than 0.5 %"},
        {"Batches may be 6.6 to 14 times larger", "abstract", "actnn", "batch", "",
         "6.6 to 14 x"}}},
      {"Scalable 8-bit training and Range BN",
       "Banner et al., NeurIPS 2018, arXiv 1805.11046",
       {{"The range of a batch times 1 / sqrt(2 ln n) serves as its deviation (a constant factor "
         "is left to the scale that follows)",
         "paper", "range-bn", "published"},
        {"The mean range lies between two bounds", "paper", "range-bn", "bounds"},
        {"The constant of the published code estimates the deviation", "repository", "range-bn",
         "repository"},
        {"Range normalisation trains as accurately as batch normalisation", "paper", "range-bn",
         "accuracy"},
        {"No angle between a tensor and its codes exceeds the bound", "paper", "range-bn",
         "angle, bound"},
        {"Signs of normal numbers are 37 degrees away", "paper", "range-bn", "angle, signs"},
        {"Networks train with everything in 8 bits but the gradient of the update", "abstract",
         "range-bn", "8 bits"},
        {"That gradient needs 16 bits", "abstract", "range-bn", "bifurcation", "", "16 bits"}}},
      {"Binarized and quantized networks",
       "Hubara et al., NeurIPS 2016, arXiv 1602.02830; JMLR 2018, arXiv 1609.07061",
       {{"Dot products of signs are XNOR and popcount", "abstract", "binarized", "xnor"},
        {"A first layer of 8-bit inputs is a sum of 8 products of signs", "paper", "binarized",
         "bit planes"},
        {"Networks of signs are nearly as accurate as in float32 (0.96 % error on MNIST)",
         "abstract", "binarized", "signs", "", "0.96 % error (MNIST)"},
        {"Normalisation by shifts costs them nothing", "paper", "binarized", "shift"},
        {"AdaMax by shifts costs them nothing", "paper", "binarized", "adamax"},
        {"4-bit networks train with gradients of 6 bits", "abstract", "binarized", "few bits"},
        {"A kernel of XNOR is 7 times as fast on a GPU", "abstract", "", "", kNeedsHardware}}},
      {"HFP8",
       "Sun et al., NeurIPS 2019",
       {{"1-4-3 forward and 1-5-2 backward train as accurately as float32", "abstract", "hfp8",
         "accuracy"},
        {"A residual keeps the updates that 1-4-3 weights would lose", "paper", "hfp8", "residual"},
        {"1-4-3 forward is more accurate than 1-5-2", "abstract", "hfp8", "forward"},
        {"Sums in chunks of 64 train more accurately (Wang et al. 2018)", "paper", "hfp8",
         "chunks"},
        {"Errors need the range of 1-5-2", "paper", "hfp8", "errors"},
        {"Where 8 bits of one kind degrade (MobileNet, Transformer), HFP8 does not", "abstract",
         "hfp8", "networks"},
        {"1-5-2 alone trains MobileNet and Transformers less accurately", "paper", "hfp8",
         "one kind"},
        {"Workers may exchange gradients in 8 bits", "paper", "hfp8", "exchange"},
        {"Re-estimated statistics repair networks quantized after training (to FP8; here to "
         "integers, too)",
         "paper", "hfp8", "network"},
        {"ImageNet, detection, translation and speech keep the accuracy of float32", "abstract", "",
         "", kNeedsImageNet}}},
      {"FracTrain",
       "Fu et al., NeurIPS 2020, arXiv 2012.13113",
       {{"Progressive precision keeps the accuracy of 8/8 (-0.12 to +0.05 points at 59 to 78 % "
         "fewer multiply-adds on CIFAR)",
         "repository", "fractrain", "progressive", "", "-0.12 to +0.05 points (CIFAR)"},
        {"Gates that choose the precision of each sample keep it too (here of two layers)",
         "repository", "fractrain", "gates"},
        {"They reach the cost that they are given", "repository", "fractrain", "target"},
        {"Energy falls by 16 to 56 %, latency by 12 to 54 %", "repository", "", "",
         kNeedsHardware}}},
      {"Fix your classifier",
       "Hoffer et al., ICLR 2018, arXiv 1801.04540",
       {{"A fixed last layer of Hadamard rows loses little or no accuracy", "abstract",
         "hadamard-classifier", "accuracy"},
        {"It needs neither memory nor multiplications of its own", "abstract",
         "hadamard-classifier", "cost"}}},
      {"NovoGrad",
       "Ginsburg et al., 2019, arXiv 1905.11286",
       {{"It keeps half of Adam's state", "abstract", "novograd", "state", "", "half"},
        {"It trains as well as or better than SGD and Adam", "abstract", "novograd", "accuracy"}}},
      {"Train longer: ghost batches",
       "Hoffer et al., NeurIPS 2017, arXiv 1705.08741",
       {{"The distance from the first weights grows with the logarithm of the updates", "abstract",
         "ghost-bn", "logarithm"},
        {"Large batches lose accuracy at as many epochs", "abstract", "ghost-bn", "gap"},
        {"Ghost batches regain some", "abstract", "ghost-bn", "ghosts"},
        {"As many updates as of small batches regain accuracy", "abstract", "ghost-bn", "updates"},
        {"All three close the gap", "abstract", "ghost-bn", "adaptation"}}},
      {"Batch augmentation",
       "Hoffer et al., CVPR 2020, arXiv 1901.09335",
       {{"Copies of each sample need fewer updates to the same accuracy", "abstract",
         "batch-augmentation", "updates"},
        {"They generalise better", "abstract", "batch-augmentation", "accuracy"}}},
      {"Mix & Match: image sizes",
       "Hoffer et al., arXiv 1908.08986",
       {{"Steps cost as much at every size", "paper", "image-sizes", "area"},
        {"Mixed sizes gain accuracy at the usual size", "abstract", "image-sizes", "accuracy"},
        {"They lose less at other sizes", "abstract", "image-sizes", "resilience"},
        {"Smoothed gradients gain accuracy", "paper", "image-sizes", "smoothing"},
        {"Re-estimated statistics gain accuracy at other sizes", "paper", "image-sizes",
         "statistics"},
        {"ResNet-50 reaches 76.43 % at 160 pixels and 79.27 % at 288", "abstract", "", "",
         kNeedsImageNet}}},
      {"Complement objective",
       "Chen et al., ICLR 2019, arXiv 1903.01182",
       {{"Alternating steps gain accuracy", "abstract", "complement", "accuracy"},
        {"Networks are more robust to single-step attacks", "abstract", "complement", "robust"}}},
      {"OPT: orthogonal over-parameterized training",
       "Liu et al., CVPR 2021, arXiv 2004.04690",
       {{"Exact ways of turning neurons keep the hyperspherical energy", "paper", "orthogonal",
         "exact"},
        {"Turning neurons generalises better than training them", "abstract", "orthogonal",
         "accuracy"}}},
      {"TracIn",
       "Pruthi et al., NeurIPS 2020, arXiv 2002.08484",
       {{"Influence is the change of a loss by a step, to first order", "paper", "tracin",
         "first order"},
        {"Samples with wrong labels stand out by their influence on themselves", "paper", "tracin",
         "mislabelled"}}},
      {"MLPerf Inference",
       "Reddi et al., ISCA 2020, arXiv 1911.02549",
       {{"24,576 queries give the 90 % tail within its margin at 99 % confidence", "paper",
         "mlperf", "independent", "", "99 % of runs"},
        {"270,336 queries give the 99 % tail of Server within its margin at 99 % confidence (by "
         "the binomial law; here of a busy queue, whose latencies depend on one another)",
         "paper", "mlperf", "dependent", "", "99 % of runs"}}},
      {"Birder",
       "Peng et al., NeurIPS 2023",
       {{"Workers send one bit for each element", "abstract", "birder", "bits", "", "1 bit"},
        {"It trains as accurately as Adam", "abstract", "birder", "accuracy"},
        {"Training is up to 2.5 (ResNet-50) and 6.3 times (BERT-Base) as fast on 8 to 64 GPUs",
         "abstract", "", "", kNeedsHardware}}},
      {"AdaComp",
       "Chen et al., AAAI 2018, arXiv 1712.02679",
       {{"Convolutions are compressed about 40 times, fully connected and recurrent layers about "
         "200 times",
         "abstract", "adacomp", "published", "", "about 40 x and 200 x"},
        {"AdaComp does so without noticeable loss of accuracy", "abstract", "adacomp",
         "accuracy"}}},
      {"DropCompute",
       "Giladi et al., NeurIPS 2023, arXiv 2306.10598",
       {{"The effective speed-up follows its formula under normal latencies", "paper",
         "dropcompute", "normal"},
        {"The threshold chosen from the first steps is close to the best", "paper", "dropcompute",
         "automatic"},
        {"Dropping a tenth of the micro-batches costs no accuracy", "paper", "dropcompute",
         "accuracy"},
        {"DropCompute is faster on 200 accelerators", "abstract", "", "",
         "needs the accelerators; the nearest are simulated steps of up to 1,024 workers"}}},
      {"ScaleCom",
       "Chen et al., NeurIPS 2020, arXiv 2104.11125",
       {{"Gradients are compressed 65 to 400 times", "abstract", "scalecom", "published", "",
         "65 to 400 x"},
        {"ScaleCom does so at little loss of accuracy, with up to 64 workers", "abstract",
         "scalecom", "accuracy"}}},
      {"Learned gradient compression",
       "Abrahamyan et al., IEEE TNNLS 2021, arXiv 2103.08870",
       {{"Encoded gradients train at little loss of accuracy (ResNet-101 on CIFAR-10: 93.57 %, "
         "0.18 points lower)",
         "abstract", "learned-compression", "accuracy", "",
         "-0.18 points (ResNet-101 on CIFAR-10)"}}},
      {"Layer-parallel training",
       "Practical layer-parallel training of residual networks, arXiv 2009.01462",
       {{"Stages with variables of their own train to comparable accuracy", "abstract",
         "layer-parallel", "training"},
        {"They train faster than backpropagation", "abstract", "", "",
         "a time on several devices; the nearest are speed-ups predicted and simulated from costs "
         "of stages"}}},
      {"PipeDream-2BW",
       "Narayanan et al., ICML 2021, arXiv 2006.09503",
       {{"Weights one update old train as accurately", "abstract", "delayed-weights", "training"},
        {"Without flushes the pipeline is idle only while it fills and empties", "paper",
         "delayed-weights", "idle"},
        {"PipeDream-2BW holds two versions of the weights (GPipe one, PipeDream one per stage)",
         "abstract", "delayed-weights", "held", "", "2 versions"},
        {"Training is up to 20 times as fast", "abstract", "", "", kNeedsHardware}}},
  };
  return kSystems;
}

std::string published_figure(std::string_view experiment, std::string_view key) {
  std::string out;
  for (const System& system : published_systems()) {
    for (const PublishedClaim& claim : system.claims) {
      if (claim.figure.empty() || claim.experiment != experiment || claim.key != key) continue;
      out += fmt::format("{}{} ({})", out.empty() ? "" : "; ", claim.figure, claim.place);
    }
  }
  return out;
}
namespace {

/// The value of a setting; "" where a run has none.
std::string setting_of(const ExperimentFile& file, const char* key) {
  const auto found = file.settings.is_object() ? file.settings.find(key) : file.settings.end();
  return found != file.settings.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Above 0, and small enough to be multiplied.
std::optional<std::int64_t> count_of(const ExperimentFile& file, const char* key) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const std::string text = setting_of(file, key);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMost)
    return std::nullopt;
  return count;
}

/// "tuned_" where a run trains files alone: its other settings of training then say nothing.
std::string training_prefix(const ExperimentFile& file) {
  const std::string tuned = setting_of(file, "tuned_nets");
  return setting_of(file, "nets") == "-" && !tuned.empty() && tuned != "-" ? "tuned_" : "";
}

bool is_published(const ClaimRow& claim) {
  return claim.claim.find("(published") != claim.claim.npos;
}

}  // namespace

std::string verdict_words(const VerdictCounts& counts) {
  std::string out;
  const auto add = [&out](std::size_t n, const char* one, const char* more) {
    if (n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, n == 1 ? one : more);
  };
  add(counts.holds, "holds", "hold");
  add(counts.undecided, "is undecided", "are undecided");
  add(counts.fails, "fails", "fail");
  return out;
}

std::string run_words(const ExperimentFile& file) {
  constexpr std::pair<const char*, const char*> kNetsOnData[] = {
      {"net", "data"}, {"nets", "data"}, {"tuned_nets", "tuned_data"}, {"text_net", "text_data"}};
  std::vector<std::string> words;
  for (const auto& [net, data] : kNetsOnData) {
    const std::string nets = setting_of(file, net), on = setting_of(file, data);
    if (nets.empty() || nets == "-") continue;
    const std::string here = on.empty() ? nets : nets + " on " + on;
    if (std::ranges::find(words, here) == words.end()) words.push_back(here);
  }
  if (const std::string seeds = setting_of(file, "seeds"); !seeds.empty())
    words.push_back("seeds: " + seeds);
  const std::string prefix = training_prefix(file);
  const auto count = [&](const char* key) { return count_of(file, (prefix + key).c_str()); };
  const auto samples = count("train_samples"), batch = count("batch"), epochs = count("epochs");
  if (samples && batch && epochs)
    words.push_back(fmt::format("steps: {}", (*samples + *batch - 1) / *batch * *epochs));
  else if (epochs && setting_of(file, "trained").empty())  // else of further networks
    words.push_back(fmt::format("epochs: {}", *epochs));
  return joined(words, "; ");
}

std::string answer_of(const ExperimentFile& file) {
  if (!file.answer.empty()) return file.answer;
  const bool any = std::ranges::any_of(file.claims, is_published);
  VerdictCounts counts;
  std::size_t claims = 0;
  for (const ClaimRow& claim : file.claims) {
    if (any && !is_published(claim)) continue;
    counts.add(claim.judged());
    ++claims;
  }
  if (claims == 0) return "";
  const std::string words = run_words(file), verdicts = verdict_words(counts);
  const std::size_t untested = claims - counts.compared();
  std::string out = fmt::format("Of {} {}claim{} {}", claims, any ? "published " : "",
                                claims == 1 ? "" : "s", verdicts);
  if (untested > 0)
    out += fmt::format("{}{} not tested", verdicts.empty() ? "" : ", ",
                       fmt::format("{} {}", untested, untested == 1 ? "is" : "are"));
  return out + (words.empty() ? "" : " (" + words + ")") + ".";
}

std::vector<std::string> published_figures(const ExperimentFile& file) {
  std::vector<std::string> figures;
  for (const ClaimRow& claim : file.claims)
    figures.push_back(published_figure(file.name, claim.key));
  if (std::ranges::all_of(figures, &std::string::empty)) figures.clear();
  return figures;
}

}  // namespace numemu::experiments
