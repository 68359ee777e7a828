// A step that one can reckon: each command takes 0.2 us and moves 20,000 bytes a us, the sum over ranks on a stream of its own.
module attributes {plan.slots = 1 : i64, plan.target = #plan.target<host, "x86-64-v3">} {
  plan.arena 1024000 bytes, variables at 0x0, workspace at 0x0, inputs at 0xFA000, slots 1, lower_bound 1024000
  plan.program @train_step peak 1024000 {
    %a = plan.buffer "a" : tensor<128000xf32> gradient at 0x0
    %b = plan.buffer "b" : tensor<128000xf32> gradient at 0x7D000
    %ready = plan.event "ready"
    %summed = plan.event "summed"
    plan.stream "compute" {
      plan.fill %a with 1.0 : f32
      plan.record %ready
      plan.repeat 3 {
        plan.fill %b with 2.0 : f32
      }
      plan.wait %summed
    }
    plan.stream "collective" {
      plan.wait %ready
      plan.all_reduce %a -> %a : f32
      plan.record %summed
    }
  } loc("step")
}
