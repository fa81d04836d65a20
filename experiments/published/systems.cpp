#include "experiments/published/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
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
// What papers test their claims on, where several do on the same.
constexpr std::string_view kResNets = "ResNets on CIFAR and ImageNet";
constexpr std::string_view kVisionAndText =
    "ResNets on ImageNet, a Transformer on WMT, BERT and ViT";
constexpr std::string_view kImageNet = "ResNets on ImageNet";
constexpr std::string_view kMobileNet = "MobileNetV2 on ImageNet, a Transformer";
constexpr std::string_view kFewBitNets = "networks on MNIST, SVHN and CIFAR-10, hundreds of epochs";
constexpr std::string_view kResNet50 = "ResNet-50 on ImageNet, 4-bit weights";
constexpr std::string_view kCifarResNets = "ResNet-38 and ResNet-74 on CIFAR";
constexpr std::string_view kToTheEnd =
    "networks trained to the end on CIFAR-10, ImageNet, speech and text";
constexpr std::string_view kSharesChosen =
    "ResNets on ImageNet, a Transformer, speech, a share chosen for each";
constexpr std::string_view kLongTrainings =
    "networks trained to the end on MNIST, CIFAR and ImageNet";
constexpr std::string_view kManyNetworks = "ResNets, BERT, a recommender and a speech network";
constexpr std::string_view kLanguageModels = "language models of billions of parameters";

/// A claim that any correct program meets.
PublishedClaim identity(PublishedClaim claim) {
  claim.identity = true;
  return claim;
}

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
         "abstract", "mvue", "training", "", "", kVisionAndText},
        {"Least squared error fails for pruning neural gradients: they train worse", "abstract",
         "mvue", "bias", "", "", kVisionAndText},
        {"Least squared error works for pruning activations", "abstract", "mvue", "activations", "",
         "", kVisionAndText},
        {"With sparse weights all three products of a layer are sparse at no loss", "paper", "mvue",
         "all products", "", "", kVisionAndText},
        {"ResNets on ImageNet, a Transformer on WMT, and BERT and ViT fine-tuned keep their "
         "accuracy with 1:2 or 2:4",
         "paper", "", "", kNeedsImageNet}}},
      {"Transposable N:M masks",
       "Hubara et al., NeurIPS 2021, arXiv 2102.08124",
       {{"At equal density accuracy rises with mask diversity", "abstract", "mask-diversity",
         "accuracy", "", "", "networks trained under their masks on ImageNet"},
        {"Networks train under transposable masks from scratch without loss", "abstract", "mvue",
         "weights", "", "", "ResNets on ImageNet, BERT"},
        identity(
            {"The greedy search is a 2-approximation: it prunes at most twice the least magnitude",
             "abstract", "transposable", "greedy"}),
        {"AdaPrune converts a trained network to N:M masks with a few samples and little or no "
         "training (an unstructured sparse one; here a dense one, on thousands of samples)",
         "abstract", "transposable", "accuracy", "", "",
         "an unstructured sparse ResNet-50 on ImageNet"},
        {"Products of training are up to twice as fast without loss of accuracy, in vision and "
         "language",
         "abstract", "", "", kNeedsHardware}}},
      {"Stochastic pruning of activation gradients",
       "Ye et al., Accelerating CNN training by pruning activation gradients",
       {{"Pruned without bias below a threshold, gradients cost negligible accuracy", "abstract",
         "stochastic-pruning", "accuracy", "", "", "AlexNet and ResNets on CIFAR and ImageNet"},
        {"Backpropagation is up to 5.92 times as fast on CIFAR and ImageNet", "abstract", "", "",
         "a time on an accelerator, which is not emulated; the nearest are the multiply-adds that "
         "the claim `operations` counts"}}},
      {"ZAP: predicted zeros of activations",
       "Shomron et al., ECCV 2020, arXiv 1909.07636",
       {{"Predicted zeros save a large part of a convolution's multiply-adds at little accuracy "
         "without fine-tuning (VGG-16 on ImageNet: 23.5 %; here 25 %, a bound of ours)",
         "abstract", "zap", "saving", "", "23.5 %", "VGG-16 on ImageNet"}}},
      {"Lognormal gradients",
       "Chmiel et al., ICLR 2021, arXiv 2006.08173",
       {{"Neural gradients are near-lognormal", "abstract", "lognormal-gradients", "lognormal"},
        {"The relative error of a float format under the law has a closed form", "paper", "", "",
         "the printed formula is not at hand; `idealised` of lognormal-gradients compares one that "
         "is derived here"},
        {"The split of exponent and mantissa that the law chooses (by our formula) is the best, or "
         "near it",
         "paper", "lognormal-gradients", "split"},
        {"It trains more accurately than another split (here the mean of all, many of which fail)",
         "paper", "lognormal-gradients", "choice", "", "", kImageNet},
        {"Gradients of 6-bit floats, split by the law, cost no accuracy (ResNet-18 on ImageNet)",
         "abstract", "lognormal-gradients", "accuracy", "", "no loss", "ResNet-18 on ImageNet"},
        {"Layers share zeros unequally by their laws (up to 85 % zeros without loss on ImageNet)",
         "abstract", "stochastic-pruning", "sharing", "", "85 % zeros", "ResNet-18 on ImageNet"}}},
      {"KURE: robust quantization",
       "Shkolnik et al., NeurIPS 2020, arXiv 2002.07686",
       {identity({"Uniform weights are less sensitive to the step than normal ones", "theorem",
                  "kure", "theorem, published step"}),
        identity({"Beyond the end of a uniform law the error of rounding is D^2 / 12 (here at high "
                  "resolution, of 6 and 8 bits; of 2 to 5, a contrast, it is up to 15 % off)",
                  "paper", "kure", "published curve"}),
        {"A penalty on the kurtosis makes weights near uniform", "abstract", "kure", "kurtosis", "",
         "", kResNet50},
        {"Networks trained with it keep more accuracy in few bits (ResNet-50, 4-bit weights: 75.6 "
         "instead of 71.8 %)",
         "supplement", "kure", "accuracy", "", "75.6 instead of 71.8 %", kResNet50},
        {"Steps that are powers of two cost them less (1.4 instead of 8.2 points)", "supplement",
         "kure", "power of two", "", "1.4 instead of 8.2 points", kResNet50}}},
      {"AdaQuant and CalibTIP",
       "Hubara et al., ICML 2021, arXiv 2006.10518",
       {{"Steps after training, on a small set without labels, regain accuracy", "abstract",
         "post-training", "gain", "", "", kImageNet},
        {"The loss of a mixture of widths is the sum of its layers' losses (here the loss is the "
         "noise of the outputs, shown in dB)",
         "paper", "allocation", "additive"},
        {"ResNet-50 loses less than 1 % at 13 % of its size", "abstract", "post-training", "size",
         "", "less than 1 % at 13 % of the size", "ResNet-50 on ImageNet"}}},
      {"4-bit embedding tables",
       "Guan et al., arXiv 1911.02079",
       {{"A model shrinks to 13.89 % of its size at neutral quality (here the quality)", "abstract",
         "embeddings", "auc", "", "13.89 % of the size", "a production recommendation model"},
        identity({"A row of d elements takes 1/8 + 1/d of its bytes, with codebooks 1/8 + 8/d",
                  "paper", "embeddings", "size"}),
        {"The greedy search never loses to the range of the row, k-means wins on short rows and "
         "meets it on long ones",
         "paper", "embeddings", "order"},
        {"The range of the row loses less than one that is symmetric about 0", "paper",
         "embeddings", "ranges"}}},
      {"The Knowledge Within: data-free calibration",
       "Haroush et al., CVPR 2020, arXiv 1912.01274",
       {{"Samples that match stored batch-norm statistics calibrate nearly as well as real data, "
         "noise does not (here ranges and batch-norm statistics; ranges alone, a contrast, do not)",
         "abstract", "data-free", "statistics", "", "", "networks on ImageNet"},
        {"Networks are fine-tuned to few bits on them without real data", "abstract", "data-free",
         "fine-tuning", "", "", "networks on ImageNet"}}},
      {"ActNN: activations kept in 2 bits",
       "Chen et al., ICML 2021, arXiv 2104.14129",
       {{"Compressed contexts leave gradients without bias", "theorem", "actnn", "unbiased"},
        {"Their variances add up by layer", "theorem", "actnn", "layers add"},
        {"Activations take 12 times less memory", "abstract", "actnn", "memory", "", "12 x",
         "ResNets, detectors and segmentation networks"},
        {"At 2 bits accuracy falls by less than 0.5 % (here by SGD; by Adam greedy 2 bits lose "
         "more)",
         "paper", "actnn", "accuracy", "", "less than 0.5 %", "ResNet-50 on ImageNet"},
        {"Batches may be 6.6 to 14 times larger", "abstract", "actnn", "batch", "", "6.6 to 14 x",
         "ResNets, detectors and segmentation networks on a GPU"}}},
      {"Scalable 8-bit training and Range BN",
       "Banner et al., NeurIPS 2018, arXiv 1805.11046",
       {{"The range of a batch times 1 / sqrt(2 ln n) is its deviation up to a factor between two "
         "bounds, which the scale that follows absorbs",
         "paper", "range-bn", "bounds", "", "0.65 to 2"},
        {"Range normalisation trains as accurately as batch normalisation", "paper", "range-bn",
         "accuracy", "", "", kImageNet},
        identity({"No angle between a tensor and its codes exceeds the bound", "paper", "range-bn",
                  "angle, bound"}),
        identity(
            {"Signs of normal numbers are 37 degrees away", "paper", "range-bn", "angle, signs"}),
        {"Networks train with everything in 8 bits but the gradient of the update", "abstract",
         "range-bn", "8 bits", "", "", kImageNet},
        {"That gradient needs 16 bits", "abstract", "range-bn", "bifurcation", "", "16 bits",
         kImageNet}}},
      {"Binarized and quantized networks",
       "Hubara et al., NeurIPS 2016, arXiv 1602.02830; JMLR 2018, arXiv 1609.07061",
       {identity({"Dot products of signs are XNOR and popcount", "abstract", "binarized", "xnor"}),
        identity({"A first layer of 8-bit inputs is a sum of 8 products of signs", "paper",
                  "binarized", "bit planes"}),
        {"Networks of signs are nearly as accurate as in float32 (0.96 % error on MNIST)",
         "abstract", "binarized", "signs", "", "0.96 % error",
         "three wide layers on MNIST, hundreds of epochs"},
        {"Normalisation by shifts costs them nothing", "paper", "binarized", "shift", "", "",
         kFewBitNets},
        {"AdaMax by shifts costs them nothing", "paper", "binarized", "adamax", "", "",
         kFewBitNets},
        {"4-bit networks train with gradients of 6 bits", "abstract", "binarized", "few bits", "",
         "", "networks on ImageNet, an LSTM on Penn Treebank"},
        {"A kernel of XNOR is 7 times as fast on a GPU", "abstract", "", "", kNeedsHardware}}},
      {"HFP8",
       "Sun et al., NeurIPS 2019",
       {{"1-4-3 forward and 1-5-2 backward train as accurately as float32", "abstract", "hfp8",
         "accuracy", "", "", kImageNet},
        {"A residual keeps the updates that 1-4-3 weights would lose", "paper", "hfp8", "residual",
         "", "", kImageNet},
        {"1-4-3 forward is more accurate than 1-5-2", "abstract", "hfp8", "forward", "", "",
         kMobileNet},
        {"Sums in chunks of 64 train more accurately (a claim of Wang et al. 2018)", "paper",
         "hfp8", "chunks", "", "", "networks on ImageNet, whose sums are longer"},
        {"Errors need the range of 1-5-2 (here of losses times 2^-k, which are ours)", "paper",
         "hfp8", "errors", "", "", "networks on ImageNet"},
        {"Where 8 bits of one kind degrade (MobileNet, Transformer), HFP8 does not", "abstract",
         "hfp8", "networks", "", "", kMobileNet},
        {"1-5-2 alone trains MobileNet and Transformers less accurately", "paper", "hfp8",
         "one kind", "", "", kMobileNet},
        {"Workers may exchange gradients in 8 bits", "paper", "hfp8", "exchange", "", "",
         "networks on ImageNet"},
        {"Re-estimated statistics repair networks quantized to FP8 after training", "paper", "hfp8",
         "network", "", "", "MobileNetV2 on ImageNet in 1-4-3"},
        {"ImageNet, detection, translation and speech keep the accuracy of float32", "abstract", "",
         "", kNeedsImageNet}}},
      {"8-bit optimizer states",
       "Dettmers et al., ICLR 2022, arXiv 2110.02861",
       {{"Moments in blocks of 8 bits, in dynamic codes rounded to nearest, train as accurately as "
         "in 32",
         "abstract", "", "",
         "no format here has dynamic codes; the nearest is the contrast `moments` of "
         "optimizer-state: floating second moments of 8 bits, rounded stochastically"}}},
      {"bfloat16 weights with stochastic rounding",
       "Zamirai et al., 2020, arXiv 2010.06192",
       {{"Rounded to nearest, weights in bfloat16 lose updates and train less accurately",
         "abstract", "optimizer-state", "nearest", "", "", kManyNetworks},
        {"With stochastic rounding they train as accurately as in float32", "abstract",
         "optimizer-state", "masters", "", "", kManyNetworks}}},
      {"FP8, MXFP8, MXFP4 and NVFP4 training",
       "Micikevicius et al., 2022, arXiv 2209.05433; DeepSeek-AI, 2024, arXiv 2412.19437; Mishra "
       "et al., 2025, arXiv 2506.08027; Tseng et al., 2025, arXiv 2502.20586; NVIDIA, 2025, arXiv "
       "2509.25149",
       {{"The loss ends close to that of 16 or 32 bits", "paper", "training-recipes", "loss", "",
         "", kLanguageModels},
        {"It neither rises on the way nor diverges", "paper", "training-recipes", "stable", "", "",
         kLanguageModels}}},
      {"FracTrain",
       "Fu et al., NeurIPS 2020, arXiv 2012.13113",
       {{"Progressive precision alone keeps the accuracy of its last stage (up to 73.2 % fewer "
         "multiply-adds at +0.28 points, ResNet-74 on CIFAR-100; here with first and last layers "
         "in 8 bits)",
         "repository", "fractrain", "progressive", "", "+0.28 points", kCifarResNets},
        {"Gates that choose the precision of each sample, with targets that rise in stages, keep "
         "that of 8/8 (-0.12 to +0.05 points at 59 to 78 % fewer multiply-adds; here that of the "
         "largest choice, of two gated dense blocks, whatever the network of the run)",
         "repository", "fractrain", "gates", "", "-0.12 to +0.05 points", kCifarResNets},
        {"They reach the cost that they are given (here two gated dense blocks, whatever the "
         "network of the run)",
         "repository", "fractrain", "target", "", "", kCifarResNets},
        {"Energy falls by 16 to 56 %, latency by 12 to 54 %", "repository", "", "",
         kNeedsHardware}}},
      {"Fix your classifier",
       "Hoffer et al., ICLR 2018, arXiv 1801.04540",
       {{"A last layer fixed up to one learned scale, here of Hadamard rows, loses little or no "
         "accuracy",
         "abstract", "hadamard-classifier", "accuracy", "", "", kResNets},
        identity({"Hadamard rows need neither memory nor multiplications of their own", "paper",
                  "hadamard-classifier", "cost"})}},
      {"NovoGrad",
       "Ginsburg et al., 2019, arXiv 1905.11286",
       {identity({"It keeps half of Adam's state", "abstract", "novograd", "state", "", "half"}),
        {"It trains as well as or better than SGD and Adam", "abstract", "novograd", "accuracy", "",
         "", "ResNet-50 on ImageNet, translation, speech"}}},
      {"Train longer: ghost batches",
       "Hoffer et al., NeurIPS 2017, arXiv 1705.08741",
       {{"The distance from the first weights grows with the logarithm of the updates (here R^2 of "
         "at least 0.9, a bound of ours that powers up to about t^0.35 meet, too; a power fits "
         "better)",
         "abstract", "ghost-bn", "logarithm", "", "", kLongTrainings},
        {"Large batches lose accuracy at as many epochs (a gap in generalisation, at "
         "equal training losses)",
         "abstract", "ghost-bn", "gap", "", "", kLongTrainings},
        {"Ghost batches regain some", "abstract", "ghost-bn", "ghosts", "", "", kLongTrainings},
        {"As many updates as of small batches regain accuracy", "abstract", "ghost-bn", "updates",
         "", "", kLongTrainings},
        {"All three close the gap", "abstract", "ghost-bn", "adaptation", "", "", kLongTrainings}}},
      {"Batch augmentation",
       "Hoffer et al., CVPR 2020, arXiv 1901.09335",
       {{"Copies of each sample need fewer updates to the same accuracy", "abstract",
         "batch-augmentation", "updates", "", "", kResNets},
        {"They generalise better", "abstract", "batch-augmentation", "accuracy", "", "",
         kResNets}}},
      {"Mix & Match: image sizes",
       "Hoffer et al., arXiv 1908.08986",
       {{"Steps cost as much at every size", "paper", "image-sizes", "area", "", "",
         "images of CIFAR and ImageNet, whose sides the strides divide"},
        {"Mixed sizes gain accuracy at the usual size", "abstract", "image-sizes", "accuracy", "",
         "", kResNets},
        {"They lose less at other sizes", "abstract", "image-sizes", "resilience", "", "",
         kResNets},
        {"Smoothed gradients gain accuracy", "paper", "image-sizes", "smoothing", "", "", kResNets},
        {"Re-estimated statistics gain accuracy at other sizes", "paper", "image-sizes",
         "statistics", "", "", kResNets},
        {"ResNet-50 reaches 76.43 % at 160 pixels and 79.27 % at 288", "abstract", "", "",
         kNeedsImageNet}}},
      {"Complement objective",
       "Chen et al., ICLR 2019, arXiv 1903.01182",
       {{"Alternating steps gain accuracy", "abstract", "complement", "accuracy", "", "",
         "ResNets on CIFAR and ImageNet, translation"},
        {"Networks are more robust to single-step attacks", "abstract", "complement", "robust", "",
         "", "ResNets on CIFAR"}}},
      {"OPT: orthogonal over-parameterized training",
       "Liu et al., CVPR 2021, arXiv 2004.04690",
       {identity({"Exact ways of turning neurons keep the hyperspherical energy", "paper",
                  "orthogonal", "exact"}),
        {"Turning neurons generalises better than training them", "abstract", "orthogonal",
         "accuracy", "", "", "convolutional networks on CIFAR and ImageNet"}}},
      {"TracIn",
       "Pruthi et al., NeurIPS 2020, arXiv 2002.08484",
       {{"Influence is the change of a loss by a step, to first order", "paper", "tracin",
         "first order"},
        {"Samples with wrong labels stand out by their influence on themselves", "paper", "tracin",
         "mislabelled", "", "", "networks on CIFAR-10 and MNIST"}}},
      {"MLPerf Inference",
       "Reddi et al., ISCA 2020, arXiv 1911.02549",
       {{"24,576 independent queries give the 90 % tail within its margin at 99 % confidence",
         "paper", "mlperf", "independent", "", "99 % of runs"},
        {"270,336 queries give the 99 % tail of Server within its margin at 99 % confidence (by "
         "the binomial law; here of a busy queue of ours, whose latencies depend on one another)",
         "paper", "mlperf", "dependent", "", "99 % of runs",
         "latencies that do not depend on one another"}}},
      {"Birder",
       "Peng et al., NeurIPS 2023",
       {identity(
            {"Workers send one bit for each element", "abstract", "birder", "bits", "", "1 bit"}),
        {"It trains as accurately as Adam (here at a step chosen on other seeds, Adam at its "
         "recommended rate)",
         "abstract", "birder", "accuracy", "", "", "ResNet-50 and BERT-Base on 8 to 64 GPUs"},
        {"Training is up to 2.5 (ResNet-50) and 6.3 times (BERT-Base) as fast on 8 to 64 GPUs",
         "abstract", "", "", kNeedsHardware}}},
      {"AdaComp",
       "Chen et al., AAAI 2018, arXiv 1712.02679",
       {{"Convolutions are compressed about 40 times, fully connected and recurrent layers about "
         "200 times (here at least four fifths of it)",
         "abstract", "adacomp", "published", "", "about 40 x and 200 x", kToTheEnd},
        {"AdaComp does so without noticeable loss of accuracy", "abstract", "adacomp", "accuracy",
         "", "", kToTheEnd}}},
      {"DropCompute",
       "Giladi et al., NeurIPS 2023, arXiv 2306.10598",
       {{"The effective speed-up follows its formula under normal latencies", "paper",
         "dropcompute", "normal"},
        {"The threshold chosen from the first steps is close to the best", "paper", "dropcompute",
         "automatic"},
        {"Dropping a tenth of the micro-batches costs no accuracy", "paper", "dropcompute",
         "accuracy", "", "", "BERT, trained and fine-tuned"},
        {"DropCompute is faster on 200 accelerators", "abstract", "", "",
         "needs the accelerators; the nearest are simulated steps of up to 100,000 workers"}}},
      {"ScaleCom",
       "Chen et al., NeurIPS 2020, arXiv 2104.11125",
       {{"Gradients are compressed 65 to 400 times", "abstract", "", "",
         "the share of places fixes the compression: a setting here, 1 %, while the paper chooses "
         "it for each network; the nearest are the bytes of that share, which the claim `bytes` "
         "counts"},
        {"ScaleCom does so at little loss of accuracy, with up to 64 workers (here 4 workers and a "
         "share of 1 %)",
         "abstract", "scalecom", "accuracy", "", "", kSharesChosen}}},
      {"Learned gradient compression",
       "Abrahamyan et al., IEEE TNNLS 2021, arXiv 2103.08870",
       {{"Encoded gradients train at little loss of accuracy (ResNet-101 on CIFAR-10: 93.57 %, "
         "0.18 points lower; here an autoencoder of ours, trained for 48 steps, on ResNet-20 for "
         "8)",
         "abstract", "learned-compression", "accuracy", "", "-0.18 points",
         "ResNet-101 on CIFAR-10"}}},
      {"Layer-parallel training",
       "Practical layer-parallel training of residual networks, arXiv 2009.01462",
       {{"Stages with variables of their own train to comparable accuracy", "abstract",
         "layer-parallel", "training", "", "", "ResNets on MNIST and CIFAR, trained to the end"},
        {"They train faster than backpropagation", "abstract", "", "",
         "a time on several devices; the nearest are speed-ups predicted and simulated from costs "
         "of stages"}}},
      {"PipeDream-2BW",
       "Narayanan et al., ICML 2021, arXiv 2006.09503",
       {{"Weights one update old train as accurately (here at the rate that is recommended without "
         "a delay)",
         "abstract", "delayed-weights", "training", "", "", "BERT and GPT models, trained by Adam"},
        identity({"Without flushes the pipeline is idle only while it fills and empties", "paper",
                  "delayed-weights", "idle"}),
        identity(
            {"PipeDream-2BW holds two versions of the weights (GPipe one, PipeDream one per stage)",
             "abstract", "delayed-weights", "held", "", "2 versions"}),
        {"Training is up to 20 times as fast", "abstract", "", "", kNeedsHardware}}},
  };
  return kSystems;
}

const PublishedClaim* published_claim(std::string_view experiment, std::string_view key) {
  for (const System& system : published_systems()) {
    for (const PublishedClaim& claim : system.claims)
      if (!key.empty() && claim.experiment == experiment && claim.key == key) return &claim;
  }
  return nullptr;
}

std::string published_figure(std::string_view experiment, std::string_view key) {
  const PublishedClaim* const claim = published_claim(experiment, key);
  if (claim == nullptr || (claim->figure.empty() && claim->setup.empty())) return "";
  return fmt::format("{}{}{} ({})", claim->figure,
                     claim->figure.empty() || claim->setup.empty() ? "" : ", ", claim->setup,
                     claim->place);
}

std::string verdict_text(Verdict verdict, bool other_setup) {
  const bool says = verdict == Verdict::holds || verdict == Verdict::fails;
  return std::string(to_string(verdict)) + (other_setup && says ? " in this set-up" : "");
}

std::string verdict_text(const ExperimentFile& file, const ClaimRow& claim) {
  if (!is_judged(claim.verdict)) return "not tested";
  const PublishedClaim* const published = published_claim(file.name, claim.key);
  return verdict_text(claim.verdict, published != nullptr && !published->setup.empty());
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
  constexpr std::pair<const char*, const char*> kNetsOnData[] = {{"net", "data"},
                                                                 {"nets", "data"},
                                                                 {"tuned_nets", "tuned_data"},
                                                                 {"text_net", "text_data"},
                                                                 {"text_nets", "text_data"}};
  std::vector<std::string> words;
  for (const auto& [net, data] : kNetsOnData) {
    const std::string nets = setting_of(file, net), on = setting_of(file, data);
    if (nets.empty() || nets == "-") continue;
    const std::string here = on.empty() ? nets : nets + " on " + on;
    if (std::ranges::find(words, here) == words.end()) words.push_back(here);
  }
  if (const std::string seeds = setting_of(file, "seeds"); !seeds.empty())
    words.push_back("seeds: " + seeds);
  const auto steps = [&](const std::string& prefix) -> std::optional<std::int64_t> {
    const auto count = [&](const char* key) { return count_of(file, (prefix + key).c_str()); };
    const auto samples = count("train_samples"), batch = count("batch"), epochs = count("epochs");
    if (!samples || !batch || !epochs) return std::nullopt;
    return (*samples + *batch - 1) / *batch * *epochs;
  };
  const auto trains = [&](std::initializer_list<const char*> nets) {
    return std::ranges::any_of(nets, [&](const char* key) {
      const std::string net = setting_of(file, key);
      return !net.empty() && net != "-";
    });
  };
  const bool text = trains({"text_net", "text_nets"});
  if (!text || trains({"net", "nets", "tuned_nets"})) {  // else of networks that the run lacks
    const std::string prefix = training_prefix(file);
    const auto epochs = count_of(file, (prefix + "epochs").c_str());
    if (const auto all = steps(prefix))
      words.push_back(fmt::format("steps: {}", *all));
    else if (epochs && setting_of(file, "trained").empty())  // else of further networks
      words.push_back(fmt::format("epochs: {}", *epochs));
  }
  if (const auto of_text = steps("text_"); of_text && text)
    words.push_back(fmt::format("steps on text: {}", *of_text));
  return joined(words, "; ");
}

std::string answer_of(const ExperimentFile& file) {
  if (!file.answer.empty()) return file.answer;
  const bool any = std::ranges::any_of(file.claims, [&](const ClaimRow& claim) {
    return published_claim(file.name, claim.key) != nullptr;
  });
  struct {
    VerdictCounts counts;
    std::size_t claims = 0;

    std::string verdicts() const {
      const std::size_t untested = claims - counts.compared();
      const std::string words = verdict_words(counts);
      return untested == 0 ? words
                           : fmt::format("{}{}{} {} not tested", words, words.empty() ? "" : ", ",
                                         untested, untested == 1 ? "is" : "are");
    }
  } anywhere, elsewhere;  // elsewhere: claims that the paper tests on another set-up
  for (const ClaimRow& claim : file.claims) {
    const PublishedClaim* const published = published_claim(file.name, claim.key);
    if (any && published == nullptr) continue;
    auto& of = published != nullptr && !published->setup.empty() ? elsewhere : anywhere;
    of.counts.add(claim.verdict);
    ++of.claims;
  }
  std::string out;
  if (anywhere.claims > 0)
    out = fmt::format("Of {} {}claim{} {}", anywhere.claims, any ? "published " : "",
                      anywhere.claims == 1 ? "" : "s", anywhere.verdicts());
  if (elsewhere.claims > 0)
    out += fmt::format("{} {} {}whose papers test {} {} in this set-up",
                       out.empty() ? "Of" : "; of", elsewhere.claims,
                       !out.empty()           ? ""
                       : elsewhere.claims > 1 ? "published claims "
                                              : "published claim ",
                       kElsewhere, elsewhere.verdicts());
  if (out.empty()) return "";
  const std::string words = run_words(file);
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
