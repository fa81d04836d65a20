// Prints words of the first and the last records, as the test finds them in the files, and counts the classes.
module vectors_package_tb;
  import tb_pkg::*;

  conversion_words u_conversion();

  a_t a;
  c_t c;
`ifndef __ICARUS__
  class_coverage half, all;
`endif

  initial begin
    load("tb");
    a = a_mem[0];
    c = c_mem[N-1];
    // Element 0 is in the lowest bits.
    $display("a %h%h%h%h", a[3], a[2], a[1], a[0]);
    $display("c %h", c);
    $display("class %h", class_mem[7]);
`ifndef __ICARUS__
    half = new;
    all = new;
    for (int i = 0; i < N; i++) begin
      if (i < N / 2) half.sample(class_e'(class_mem[i]));
      all.sample(class_e'(class_mem[i]));
    end
    $display("half %0d", half.covered());
    $display("all %0d, %0d percent", all.covered(), int'(all.percent()));
`endif
    #1 $finish;
  end
endmodule

module conversion_words;
  import cv_pkg::*;

  initial begin
    load("cv");
    $display("in %h", in_mem[N-1]);
  end
endmodule
