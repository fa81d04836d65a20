// From the name on the command line to the loader.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/data/load_dataset.hpp"

#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

const std::vector<std::string> kDataKinds = {"glyphs", "mnist", "cifar10", "cifar100", "text",
                                             "clicks", "chain", "npy",     "images",   "tokens"};

std::string data_kind_of(std::string_view name) {
  return std::string(name.substr(0, name.find(':')));
}

}  // namespace

void check_dataset_name(std::string_view name) {
  find_named("data set", data_kind_of(name), kDataKinds);
}

Dataset load_dataset(std::string_view name, const std::string& cache_folder) {
  const std::size_t colon = name.find(':');
  const std::string kind = data_kind_of(name);
  const std::string place(colon == std::string_view::npos ? "" : name.substr(colon + 1));
  const auto need = [&](const char* what) {
    if (place.empty())
      throw Error("data set '" + std::string(name) + "': expected " + kind + ":" + what);
  };
  const auto need_nothing = [&] {
    if (colon != std::string_view::npos)
      throw Error("data set '" + std::string(name) + "': expected " + kind +
                  " alone, it needs no folder");
  };
  if (kind == "glyphs") {
    need_nothing();
    return load_glyphs(cache_folder);
  }
  if (kind == "mnist") {
    need("DIR with the folder of its files");
    return load_mnist(place);
  }
  if (kind == "cifar10") {
    need("DIR with the folder of its files");
    return load_cifar10(place);
  }
  if (kind == "cifar100") {
    need("DIR with the folder of its files");
    return load_cifar100(place);
  }
  if (kind == "npy") {
    need("DIR, FILE.npz or x=FILE,y=FILE");
    return load_arrays(place);
  }
  if (kind == "images") {
    need("DIR with a folder for each class");
    return load_image_folder(place, cache_folder);
  }
  if (kind == "tokens") {
    need("FILE with the tokens");
    return load_tokens(place);
  }
  if (kind == "text") {
    need("FILE with the text");
    return load_text(place);
  }
  if (kind == "clicks") {
    need_nothing();
    return load_clicks();
  }
  if (kind == "chain") {
    need_nothing();
    return load_chain();
  }
  throw Error(unknown_name("data set", kind, kDataKinds));
}

}  // namespace numemu::net
