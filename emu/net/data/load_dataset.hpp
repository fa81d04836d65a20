// The loaders behind load_dataset, one for each kind of set.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/data/dataset.hpp"

namespace numemu::net {

// The options of a data set on the command line: KIND:PATH,KEY=VALUE,...

/// What follows the colon. An option begins at the start or after a comma with one of the known
/// keys and '='; all else, commas included, is part of the path or of the value before it. Where no
/// file has that name, a piece like an option is taken for a misspelt one.
class SourceOptions {
 public:
  /// `kind` names the set in errors. Throws Error where a key is unknown or given twice or a value
  /// is empty.
  SourceOptions(std::string kind, std::string_view text, std::vector<std::string> keys);

  const std::string& kind() const { return kind_; }
  const std::string& path() const { return path_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// The value, or `otherwise`.
  std::string text(const std::string& key, std::string otherwise = "") const;
  /// A whole number from `low` to `high`.
  std::int64_t whole(const std::string& key, std::int64_t otherwise, std::int64_t low,
                     std::int64_t high) const;
  /// Real numbers, separated by '/'; empty where the key is not given.
  std::vector<double> numbers(const std::string& key) const;
  /// One of the choices; the first where the key is not given.
  std::string choice(const std::string& key, const std::vector<std::string>& choices) const;
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const;

 private:
  std::string kind_, path_;
  std::map<std::string, std::string> values_;
};

/// How pixels become numbers: (p / 255 - mean) / deviation of each channel.
struct Normalisation {
  std::vector<double> mean, deviation;
};
/// From the keys normalize (imagenet, cifar, none) or mean and deviation, for that many channels;
/// nothing where none is given.
std::optional<Normalisation> normalisation_of(const SourceOptions&, std::int64_t channels);

/// Throws Error with the nearest known name unless load_dataset() knows the kind of the set.
void check_dataset_name(std::string_view name);
/// The generated set; its arrays are kept as IDX files in CACHE/glyphs and made again when missing
/// or damaged.
Dataset load_glyphs(const std::string& cache_folder);
/// MNIST's four IDX files.
Dataset load_mnist(const std::string& folder);
/// CIFAR-10's binary batches: test_batch.bin and any of data_batch_1.bin to data_batch_5.bin, at
/// least one.
Dataset load_cifar10(const std::string& folder);
/// CIFAR-100's train.bin and test.bin, the fine labels.
Dataset load_cifar100(const std::string& folder);
/// A text, plain or gzip: FILE and the options context, vocabulary, test.
Dataset load_text(const std::string& place);
/// Tokens as little-endian integers: FILE and the options width, context, vocabulary, test.
Dataset load_tokens(const std::string& place);
/// Arrays of numpy: a folder, a .npz or files by options.
Dataset load_arrays(const std::string& place);
/// Class folders of PNG and JPEG files; digests are kept in `cache_folder`.
Dataset load_image_folder(const std::string& place, const std::string& cache_folder);
/// The generated click data, made at every call.
Dataset load_clicks();
/// The generated text, made at every call.
Dataset load_chain();

}  // namespace numemu::net
