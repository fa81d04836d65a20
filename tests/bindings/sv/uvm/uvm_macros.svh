`define uvm_object_utils(T)
`define uvm_component_utils(T)
`define uvm_error(ID, MESSAGE) $error("%s: %s", ID, MESSAGE);
