// numemu for testbenches: expected results, bit for bit, and the reason where a design differs.
//
// A numemu_operation is an operation on formats or a matrix unit, with one transaction; a numemu_scoreboard holds a design against
// it. Packed vectors have element 0 in their lowest bits. Each function that can fail returns a status; the methods of classes also
// report it by $error with numemu's message. docs/bindings-sv.md shows all of it in use.

// verilator lint_off DECLFILENAME
// verilator lint_off UNUSED
package numemu_pkg;
`ifdef NUMEMU_UVM
  import uvm_pkg::*;
`endif

  // Bits of the longest field of a transaction: K codes side by side.
`ifndef NUMEMU_VECTOR_BITS
`define NUMEMU_VECTOR_BITS 2048
`endif
  localparam int VECTOR_BITS = `NUMEMU_VECTOR_BITS;
  typedef bit [VECTOR_BITS-1:0] vector_t;
  typedef longint unsigned code_t;
  // A transaction has at most so many fields.
  localparam int MOST_FIELDS = 16;
  // Exception flags of RISC-V: NX 1, UF 2, OF 4, DZ 8, NV 16.
  typedef byte unsigned flags_t;

  // The same numbers as in numemu.h.
  typedef enum int {
    StatusOk       = 0,
    StatusUsage    = 1,
    StatusFile     = 2,
    StatusValue    = 3,
    StatusMemory   = 4,
    StatusInternal = 5
  } status_e;

  // Which NaN equals the expected one.
  typedef enum int {
    NanAny       = 0,
    NanCanonical = 1,
    NanPayload   = 2
  } nan_e;

  typedef enum int {
    VerdictMatch     = 0,
    VerdictTolerated = 1,
    VerdictMismatch  = 2
  } verdict_e;

  // -------------------------------------------------------------------------------------------------------------------------------
  // DPI-C: numemu_dpi.c. Chandles come from an _open function and go to the _close function of their kind.
  // -------------------------------------------------------------------------------------------------------------------------------

  // What went wrong in the last call that failed.
  import "DPI-C" function string numemu_sv_message();
  import "DPI-C" function string numemu_sv_version();
  // Most threads that a call computes with: batches only. 0: as many as there are processors.
  import "DPI-C" function int numemu_sv_set_threads(input int most);

  // Formats, one number a call.
  import "DPI-C" function int numemu_sv_format_open(input string name, input string rounding, input string overflow,
                                                    output chandle format);
  import "DPI-C" function void numemu_sv_format_close(input chandle format);
  import "DPI-C" function string numemu_sv_format_name(input chandle format);
  import "DPI-C" function int numemu_sv_format_bits(input chandle format);
  import "DPI-C" function int numemu_sv_encode(input chandle format, input real x, input int unsigned random, output code_t code,
                                               output flags_t flags);
  import "DPI-C" function int numemu_sv_decode(input chandle format, input code_t code, output real x);

  // Operations and units: `bits` is VECTOR_BITS.
  import "DPI-C" function int numemu_sv_open(input string name, input string from, input string to, input string rounding,
                                             input string overflow, input int k, input int bits, output chandle operation);
  import "DPI-C" function int numemu_sv_open_unit(input string unit, input string a, input string b, input int k, input int bits,
                                                  output chandle operation);
  import "DPI-C" function int numemu_sv_open_line(input string line, input int bits, output chandle operation);
  import "DPI-C" function void numemu_sv_close(input chandle operation);
  import "DPI-C" function string numemu_sv_line(input chandle operation);
  import "DPI-C" function int numemu_sv_fields(input chandle operation);
  import "DPI-C" function int numemu_sv_field(input chandle operation, input string name);
  import "DPI-C" function string numemu_sv_field_name(input chandle operation, input int field);
  import "DPI-C" function int numemu_sv_field_bits(input chandle operation, input int field);
  import "DPI-C" function int numemu_sv_field_count(input chandle operation, input int field);
  import "DPI-C" function int numemu_sv_field_is_result(input chandle operation, input int field);

  // Single codes: in; a, b; a, b, c.
  import "DPI-C" function int numemu_sv_scalar(input chandle operation, input code_t x, input code_t y, input code_t z,
                                               output code_t out, output flags_t flags);
  // Packed vectors.
  import "DPI-C" function int numemu_sv_dot(input chandle operation, input vector_t a, input vector_t b, input code_t c,
                                            output code_t d, output flags_t flags);
  // The same without flags, several times as fast.
  import "DPI-C" function int numemu_sv_dot_code(input chandle operation, input vector_t a, input vector_t b, input code_t c,
                                                 output code_t d);
  import "DPI-C" function int numemu_sv_set(input chandle operation, input int field, input vector_t value);
  import "DPI-C" function int numemu_sv_get(input chandle operation, input int field, output vector_t value);
  import "DPI-C" function int numemu_sv_compute(input chandle operation);
  // Open arrays of one dimension, one code an element: as many dots as d has elements. Verilator 5.006 passes arrays of a fixed
  // size only, no dynamic arrays and no queues.
  import "DPI-C" function int numemu_sv_dots(input chandle operation, input code_t a[], input code_t b[], input code_t c[],
                                             output code_t d[]);

  import "DPI-C" function int numemu_sv_check(input chandle operation, input vector_t got, input flags_t flags, input int nan,
                                              input int ignore_zero_sign, input int compare_flags, input code_t ulps,
                                              output int verdict);
  import "DPI-C" function string numemu_sv_explain(input chandle operation);
  import "DPI-C" function string numemu_sv_account(input chandle operation, input int nan, input int ignore_zero_sign,
                                                   input int compare_flags, input code_t ulps);

  import "DPI-C" function int numemu_sv_vectors_open(input chandle operation, input string style, input int level,
                                                     input code_t seed, input longint n, output chandle vectors);
  import "DPI-C" function void numemu_sv_vectors_close(input chandle vectors);
  import "DPI-C" function longint numemu_sv_vectors_size(input chandle vectors);
  import "DPI-C" function int numemu_sv_vectors_next(input chandle vectors, input chandle operation, output int there);

  // -------------------------------------------------------------------------------------------------------------------------------
  // Classes
  // -------------------------------------------------------------------------------------------------------------------------------

  // Whether a call went well, after an $error where it did not.
  function automatic bit succeeded(int status);
    if (status != int'(StatusOk)) $error("numemu: %s", numemu_sv_message());
    return status == int'(StatusOk);
  endfunction

  // A scalar format with a rounding.
  class numemu_format;
    local chandle handle;
    local bit     opened;

    function new(string name, string rounding = "rne", string overflow = "saturate");
      opened = succeeded(numemu_sv_format_open(name, rounding, overflow, handle));
    endfunction

    function bit ok();
      return opened;
    endfunction

    function int bits();
      return numemu_sv_format_bits(handle);
    endfunction

    // random: the bits of a stochastic rounding.
    function code_t encode(real x, int unsigned random = 0);
      flags_t flags;
      void'(succeeded(numemu_sv_encode(handle, x, random, encode, flags)));
    endfunction

    function real decode(code_t code);
      void'(succeeded(numemu_sv_decode(handle, code, decode)));
    endfunction

    function void close();
      if (opened) numemu_sv_format_close(handle);
      opened = 1'b0;
      handle = null;
    endfunction
  endclass

  // An operation or a unit, and one transaction of it: inputs are set, results computed, fields read by name or number.
  class numemu_operation;
    chandle   handle;
    local bit opened;

    // `line` is the first line of a file of vectors, such as VECTORS of a package of numemu vectors --file-format sv. A line of ""
    // opens nothing.
    function new(string line = "");
      if (line != "") opened = succeeded(numemu_sv_open_line(line, VECTOR_BITS, handle));
    endfunction

    // A unit by name, or the path of its description; k of 0: the products of one instruction. Formats where it takes any.
    static function numemu_operation of_unit(string name, int k = 0, string a = "", string b = "");
      numemu_operation operation = new();
      operation.opened = succeeded(numemu_sv_open_unit(name, a, b, k, VECTOR_BITS, operation.handle));
      return operation;
    endfunction

    // convert, mul, div, sqrt, lt and the others of docs/oracle.md: exact, rounded once. Without `to` the result has the format `from`,
    // that of a comparison uint1.
    static function numemu_operation of_formats(string name, string from, string to = "", string rounding = "rne",
                                                string overflow = "ieee", int k = 1);
      numemu_operation operation = new();
      operation.opened = succeeded(numemu_sv_open(name, from, to, rounding, overflow, k, VECTOR_BITS, operation.handle));
      return operation;
    endfunction

    function bit ok();
      return opened;
    endfunction

    // Number of the field a, b, c, in, random, sa, sb, e, r, d, out or flags; -1: there is none.
    function int field(string name);
      return numemu_sv_field(handle, name);
    endfunction

    function int fields();
      return numemu_sv_fields(handle);
    endfunction

    function bit is_result(int field_number);
      return numemu_sv_field_is_result(handle, field_number) != 0;
    endfunction

    // Bits of a field, its elements side by side.
    function int width(int field_number);
      return numemu_sv_field_bits(handle, field_number) * numemu_sv_field_count(handle, field_number);
    endfunction

    function void set(int field_number, vector_t value);
      void'(succeeded(numemu_sv_set(handle, field_number, value)));
    endfunction

    // An input as it was set, a result as it was computed last.
    function void get(int field_number, output vector_t value);
      if (!succeeded(numemu_sv_get(handle, field_number, value))) value = '0;
    endfunction

    // The same of fields of at most 64 bits.
    function code_t code(int field_number);
      vector_t value;
      get(field_number, value);
      return value[63:0];
    endfunction

    function bit compute();
      return succeeded(numemu_sv_compute(handle));
    endfunction

    // Of operations on single codes: convert takes x, mul and add x and y.
    function code_t scalar(code_t x, code_t y = 0, code_t z = 0);
      flags_t flags;
      void'(succeeded(numemu_sv_scalar(handle, x, y, z, scalar, flags)));
    endfunction

    // c plus the products of a and b.
    function code_t dot(vector_t a, vector_t b, code_t c = 0);
      void'(succeeded(numemu_sv_dot_code(handle, a, b, c, dot)));
    endfunction

    // How the transaction's result comes about, step by step.
    function string explain();
      return numemu_sv_explain(handle);
    endfunction

    function void close();
      if (opened) numemu_sv_close(handle);
      opened = 1'b0;
      handle = null;
    endfunction
  endclass

  // Test vectors of an operation, as numemu vectors makes them.
  class numemu_vectors;
    local chandle          handle;
    local bit              opened;
    local numemu_operation operation;

    // n of 0: as many as the style has at that level.
    function new(numemu_operation of, string style = "mixed", longint n = 0, code_t seed = 0, int level = 1);
      operation = of;
      opened = succeeded(numemu_sv_vectors_open(operation.handle, style, level, seed, n, handle));
    endfunction

    function longint size();
      return opened ? numemu_sv_vectors_size(handle) : 0;
    endfunction

    // Makes the next vector the transaction of the operation; 0 where none is left.
    function bit next();
      int there = 0;
      if (opened) void'(succeeded(numemu_sv_vectors_next(handle, operation.handle, there)));
      return there != 0;
    endfunction

    function void close();
      if (opened) numemu_sv_vectors_close(handle);
      opened = 1'b0;
      handle = null;
    endfunction
  endclass

  // Holds what a design gave against the operation, counts, and explains the first mismatches.
  class numemu_scoreboard;
    numemu_operation operation;
    string           name;
    // What counts as equal.
    nan_e            nan = NanAny;
    code_t           ulps = 0;
    bit              ignore_zero_sign = 1'b0;
    bit              compare_flags = 1'b0;
    // Mismatches that are told with $error and their explanation; all are counted.
    int unsigned     most_told = 3;

    longint unsigned matched;     // those tolerated included
    longint unsigned tolerated;
    longint unsigned mismatched;  // those with unknown bits included
    longint unsigned unknown;
    local int        result;

    function new(numemu_operation of, string called = "numemu_scoreboard");
      operation = of;
      name = called;
      result = operation.field("d") >= 0 ? operation.field("d") : operation.field("out");
    endfunction

    // The transaction of the operation has the inputs of the design, and `got` is its result.
    function verdict_e check(logic [VECTOR_BITS-1:0] got, flags_t flags = 0);
      int verdict;
      if ($isunknown(got)) begin
        unknown++;
        mismatched++;
        if (mismatched <= longint'(most_told)) $error("%s: result has unknown bits: %b", name, got);
        return VerdictMismatch;
      end
      if (!succeeded(numemu_sv_check(operation.handle, got, flags, int'(nan), int'(ignore_zero_sign), int'(compare_flags), ulps,
                                     verdict))) begin
        mismatched++;
        return VerdictMismatch;
      end
      if (verdict_e'(verdict) == VerdictMismatch) begin
        mismatched++;
        if (mismatched <= longint'(most_told)) tell(got);
      end else begin
        matched++;
        if (verdict_e'(verdict) == VerdictTolerated) tolerated++;
      end
      return verdict_e'(verdict);
    endfunction

    local function void tell(vector_t got);
      string want, found;
      int    digits;
      digits = (operation.width(result) + 3) / 4;
      want = $sformatf("%h", operation.code(result));
      found = $sformatf("%h", got[63:0]);
      $error("%s: transaction %0d: expected %s, got %s\n%s", name, matched + mismatched - 1, want.substr(16 - digits, 15),
             found.substr(16 - digits, 15), operation.explain());
    endfunction

    // Kinds of mismatches, and the rule that explains them, of the first transactions.
    function string account();
      return numemu_sv_account(operation.handle, int'(nan), int'(ignore_zero_sign), int'(compare_flags), ulps);
    endfunction

    // At the end of the test: 1 where all transactions match, and there is one.
    function bit report();
      $display("%s: %0d transactions, %0d matches, %0d mismatches", name, matched + mismatched, matched, mismatched);
      if (tolerated != 0) $display("%s: %0d of the matches within the tolerance", name, tolerated);
      if (unknown != 0) $display("%s: %0d of the mismatches with unknown bits", name, unknown);
      if (mismatched > unknown) $display("%s", account());
      return mismatched == 0 && matched != 0;
    endfunction
  endclass

`ifdef NUMEMU_UVM
  `include "numemu_uvm.svh"
`endif

endpackage
// verilator lint_on UNUSED
// verilator lint_on DECLFILENAME
