// From the name on the command line to the loader.
#include "emu/net/data/sources.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {

Dataset load_dataset(std::string_view name, const std::string& cache_folder) {
  const std::size_t colon = name.find(':');
  const std::string kind(name.substr(0, colon));
  const std::string folder(colon == std::string_view::npos ? "" : name.substr(colon + 1));
  const auto need_folder = [&] {
    if (folder.empty())
      throw Error("data set '" + std::string(name) + "': expected " + kind +
                  ":DIR with the folder of its files");
  };
  if (kind == "glyphs") {
    if (colon != std::string_view::npos)
      throw Error("data set '" + std::string(name) +
                  "': expected glyphs alone, it needs no folder");
    return load_glyphs(cache_folder);
  }
  if (kind == "mnist") {
    need_folder();
    return load_mnist(folder);
  }
  if (kind == "cifar10") {
    need_folder();
    return load_cifar10(folder);
  }
  if (kind == "text")
    throw Error("data set '" + std::string(name) +
                "': expected images (glyphs, mnist:DIR or cifar10:DIR), found text");
  throw Error(unknown_name("data set", kind, {"glyphs", "mnist", "cifar10"}));
}

}  // namespace numemu::net
