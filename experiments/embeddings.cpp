// 4-bit embedding tables: losses of the ways to quantize a row, and what they cost a network that
// predicts clicks (Guan et al., arXiv 1911.02079).
#include "experiments/embeddings/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_embeddings(const ExperimentRun& run) {
  Conclusion conclusion;
  embeddings::add_rows(run, conclusion);
  embeddings::add_clicks(run, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_embeddings;
const Experiment experiment_embeddings = {
    "embeddings",
    "what do 4-bit embedding tables lose, by the way a row is quantized and by its length",
    "Guan et al. (arXiv 1911.02079) claim that 4-bit tables with a greedy search for the range of "
    "each row, or with codebooks, shrink a model to 13.89 % of its size in float32 at neutral "
    "quality, and that k-means wins on short rows and meets the greedy search on long ones.",
    {{"table", "Losses on normal rows are those of the reference measurements, by dimension."},
     {"range", "Losses of uniform codes follow from the expected range of normal rows, to 4 %."},
     {"order",
      "GREEDY is never worse than ASYM, ASYM loses less than SYM, KMEANS less than GREEDY up to "
      "d = 64, and both meet at large d."},
     {"fallback",
      "At d = 1024 the published search meets no local optimum and returns [min, max]; the best "
      "range seen loses less."},
     {"size", "Stored bytes are 1/8 + 1/d of float32's, with codebooks 1/8 + 8/d."},
     {"auc", "A network with 4-bit tables loses at most 0.001 of AUC."}},
    {{"dimensions", "8,64,1024", "8,16,32,64,128,256,512,1024", "8,16,32,64,128,256,512,1024",
      "elements of a row"},
     {"tables", "8", "100", "300", "tables of normal rows at each dimension"},
     {"widths", "16", "16,64", "8,16,32,64,128", "of a DLRM-like network's rows"},
     {"epochs", "1", "3", "6", "of its training"},
     {"batch", "128", "128", "128", "records of a step"},
     {"train_samples", "8192", "0", "0", "training records; 0: all"},
     {"eval_samples", "2000", "0", "0", "test records; 0: all"},
     {"seeds", "1", "5", "8", "networks of each width"}},
    run_embeddings};

}  // namespace numemu::experiments
