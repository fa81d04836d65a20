#include "cli/subject_options.hpp"

#include <utility>

#include "cli/format_names.hpp"
#include "emu/oracle/subject.hpp"

namespace numemu::cli {

void add_subject(Command& command, api::VectorOptions& of) {
  command.option("--unit U", of.unit, "A matrix unit, or a .json file that describes one");
  command.option("--op OP", of.op, oracle::joined_operation_names() + ": exact, rounded once");
  command.option("--format F", of.format, "Format of the operands of --op");
  command.option("--from F", of.from, "The same: what is converted");
  command.option("--to F", of.to, "Format of the result and of c (default: --format)");
  command.option("--format-a F", of.format_a, "Format of A where the unit takes any");
  command.option("--format-b F", of.format_b, "Format of B (default: --format-a)");
  command.option("--k K", of.k, "Products of a dot, or of a unit (default: one instruction, or 32)")
      .whole(1, oracle::kMostProducts);
  command.option("--rounding R", of.rounding,
                 "Of --op: rne, rna, rtz, rup, rdn, rodd, sr(N) or sr(N,a|b|c|odd) (default: rne)");
  command.option("--overflow O", of.overflow,
                 "Of --op: saturate, propagate or ieee (default: saturate for convert, else ieee)");
}

void note_subject_names(const api::VectorOptions& of) {
  for (const auto& [option, name] :
       {std::pair("--format", &of.format), {"--from", &of.from}, {"--to", &of.to}})
    note_short_names(option, *name);
}

}  // namespace numemu::cli
