#include "emu/oracle/files/sv_package.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "emu/oracle/files/foreign.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

bool in_identifier(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// "alignment_F+1" as an enumerator: "ClassAlignmentFPlus1".
std::string enumerator_of(std::string_view name) {
  std::string text = "Class";
  bool begins = true;
  for (const char c : name) {
    if (c == '+') text += "Plus";
    if (!in_identifier(c) || c == '_') {
      begins = true;
      continue;
    }
    text += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = false;
  }
  return text;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string quoted(std::string_view text) {
  std::string q = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') q += '\\';
    q += c;
  }
  return q + '"';
}

std::string meaning_of(const Field& f) {
  if (f.format != nullptr) return f.format->name;
  if (f.name == "flags") return "exception flags NX 1, UF 2, OF 4, DZ 8, NV 16";
  if (f.name == "e") return "place of each kept element in its group";
  const bool random = f.name == "r" || f.name == "random";
  return random ? "random bits" : "two's complement";
}

/// What counts the classes of a package: every package has this text.
constexpr std::string_view kCoverage = R"(
  // Records of each class that a testbench has used.
  class class_coverage;
    int unsigned hits[CLASSES];

    function void sample(class_e value);
      hits[int'(value)]++;
    endfunction

    // Classes with a record.
    function int unsigned covered();
      covered = 0;
      foreach (hits[i]) begin
        if (hits[i] != 0) covered++;
      end
    endfunction

    function real percent();
      return 100.0 * real'(covered()) / real'(CLASSES);
    endfunction
  endclass

`ifdef NUMEMU_COVERGROUP
  // The same for simulators with functional coverage: a bin for each class.
  covergroup class_covergroup with function sample (class_e value);
    option.per_instance = 1;
    vector_class: coverpoint value;
  endgroup
`endif
`endif
)";

}  // namespace

std::string package_name(std::string_view prefix) {
  const std::string name(prefix.substr(prefix.rfind('/') + 1));
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ||
      !std::all_of(name.begin(), name.end(), in_identifier))
    throw Error(
        fmt::format("--out: expected a prefix whose name has letters, digits and _, the package "
                    "being NAME_pkg, found '{}'",
                    prefix));
  return name;
}

void SvPackage::append_classes(const Records& records, std::string& text) {
  for (std::int64_t i = 0; i < records.size; ++i) {
    const std::string_view name = records.class_name(i);
    auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      found = numbers_.emplace(name, classes_.size()).first;
      classes_.emplace_back(name);
    }
    text += fmt::format("{:02X} // {}\n", found->second, name);
  }
  n_ += records.size;
}

std::string SvPackage::text(std::string_view name, const Subject& s, const Layout& layout) const {
  const std::string line = header_line(s);
  std::string t = fmt::format(
      "//{}\n// Written by numemu vectors --file-format sv, beside the files that load() reads.\n"
      "// verilator lint_off DECLFILENAME\n// verilator lint_off UNUSED\n"
      "package {}_pkg;\n"
      "  localparam int N = {};  // records\n"
      "  localparam int K = {};  // products of a record\n",
      line.substr(1), name, n_, s.k);
  for (const Field& f : layout) {
    const std::string big = upper(f.name);
    t += fmt::format("\n  // {}\n  localparam int {}_BITS = {};\n", meaning_of(f), big, f.bits);
    if (f.count > 1) t += fmt::format("  localparam int {0}_COUNT = {1};\n", big, f.count);
    t += fmt::format("  typedef logic {}[{}_BITS-1:0] {}_t;\n",
                     f.count > 1 ? fmt::format("[{}_COUNT-1:0]", big) : "", big, f.name);
  }
  t += fmt::format("\n  localparam int CLASSES = {};\n  typedef enum logic [7:0] {{\n",
                   classes_.size());
  for (std::size_t i = 0; i < classes_.size(); ++i)
    t += fmt::format("    {} = 8'd{}{}\n", enumerator_of(classes_[i]), i,
                     i + 1 < classes_.size() ? "," : "");
  t += "  } class_e;\n\n  // Record i is element i of each.\n";
  for (const Field& f : layout) t += fmt::format("  {0}_t {0}_mem[N];\n", f.name);
  t += "  logic [7:0] class_mem[N];\n\n";
  t += fmt::format("  // prefix: {} and its folder.\n  task automatic load(input string prefix);\n",
                   port_file(name, "*"));
  for (const Field& f : layout)
    t += fmt::format("    $readmemh({{prefix, \"{0}\"}}, {1}_mem, 0, N - 1);\n",
                     port_file("", f.name), f.name);
  t += fmt::format(
      "    $readmemh({{prefix, \"{}\"}}, class_mem, 0, N - 1);\n  endtask\n\n"
      "`ifndef __ICARUS__\n"
      "  // What the records are about, as numemu_pkg::numemu_operation takes it.\n"
      "  localparam string VECTORS = {};\n"
      "{}endpackage\n// verilator lint_on UNUSED\n// verilator lint_on DECLFILENAME\n",
      port_file("", "class"), quoted(line), kCoverage);
  return t;
}

}  // namespace numemu::oracle
