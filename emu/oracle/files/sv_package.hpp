// A SystemVerilog package beside the $readmemh files of its ports: sizes, a loader, coverage.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"

namespace numemu::oracle {

/// What stands before .a.hex in the name of a file PREFIX.a.hex, without folders. Throws Error
/// naming --out where it is no identifier: the package is NAME_pkg.
std::string package_name(std::string_view prefix);

/// Classes are numbered in the order in which records have them first.
class SvPackage {
 public:
  /// The port `class`: 8 bits a record, the class behind //.
  void append_classes(const Records&, std::string& text);
  /// NAME_pkg.sv of the records appended. Verilog-2005 tools that know packages (Icarus 11) read
  /// all of it but the classes and the covergroup.
  std::string text(std::string_view name, const Subject&, const Layout&) const;

 private:
  std::vector<std::string> classes_;
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::int64_t n_ = 0;
};

}  // namespace numemu::oracle
