// What Verilator 5.006 refuses.
module dynamic_tb;
  import numemu_pkg::*;
  code_t a[], b[], c[], d[];
  initial void'(numemu_sv_dots(null, a, b, c, d));
endmodule
