// The loaders behind load_dataset, one for each kind of set.
#pragma once
#include <string>
#include <string_view>

#include "emu/net/data/dataset.hpp"

namespace numemu::net {

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
