#include "bindings/python/folders.hpp"

#include <cstdlib>
#include <filesystem>

#include "bindings/python/python.hpp"

namespace numemu::python {

std::string data_folder() {
  const char* told = std::getenv("NUMEMU_DATA");
  if (told != nullptr && *told != '\0') return told;
  const std::filesystem::path module =
      py::module_::import("numemu._core").attr("__file__").cast<std::string>();
  const std::filesystem::path beside = module.parent_path() / "data";
  std::error_code error;
  return std::filesystem::is_directory(beside, error) ? beside.string() : NUMEMU_DATA_DIR;
}

}  // namespace numemu::python
