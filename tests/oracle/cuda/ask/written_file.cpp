#include "tests/oracle/cuda/ask/written_file.hpp"

#include <filesystem>
#include <fstream>

#include "formats/error.hpp"

namespace numemu::oracle::recording {

void write_whole_file(const std::string& path, const std::string& bytes) {
  const std::filesystem::path target(path);
  const std::string temporary = path + ".part";
  std::error_code error;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
  if (error) throw file_error(path + ": cannot make its folder: " + error.message());
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw file_error(temporary + ": cannot write");
  }
  std::filesystem::rename(temporary, target, error);
  if (error) throw file_error(path + ": cannot rename from .part: " + error.message());
}

std::string table_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (cell.find_first_of("\t\n\r") != std::string::npos)
      throw Error("a cell of a table holds a tab or a line end: '" + cell + "'");
    if (&cell != &cells.front()) line += '\t';
    line += cell;
  }
  return line + '\n';
}

}  // namespace numemu::oracle::recording
