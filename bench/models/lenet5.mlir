// LeNet-5 (LeCun et al., 1998) as it is written today: relu and max pooling, 28×28 grey pictures of floats in [0, 1].
// 61,706 parameters; a sample's forward pass is 833,000 FLOPs. Variables are named as in bench/peers.
module @lenet5 {
  gpuc.variable @conv1.weight : tensor<6x1x5x5xf32> init kaiming_uniform(fan_in = 25) loc("conv1")
  gpuc.variable @conv1.bias : tensor<6xf32> init uniform(bound = 0.2) loc("conv1")
  gpuc.variable @conv2.weight : tensor<16x6x5x5xf32> init kaiming_uniform(fan_in = 150) loc("conv2")
  gpuc.variable @conv2.bias : tensor<16xf32> init uniform(bound = 0.0816496580927726) loc("conv2")
  gpuc.variable @fc1.weight : tensor<120x400xf32> init kaiming_uniform(fan_in = 400) loc("fc1")
  gpuc.variable @fc1.bias : tensor<120xf32> init uniform(bound = 0.05) loc("fc1")
  gpuc.variable @fc2.weight : tensor<84x120xf32> init kaiming_uniform(fan_in = 120) loc("fc2")
  gpuc.variable @fc2.bias : tensor<84xf32> init uniform(bound = 0.0912870929175277) loc("fc2")
  gpuc.variable @fc3.weight : tensor<10x84xf32> init kaiming_uniform(fan_in = 84) loc("fc3")
  gpuc.variable @fc3.bias : tensor<10xf32> init uniform(bound = 0.109108945117996) loc("fc3")

  func.func @predict(%x: tensor<?x1x28x28xf32> {gpuc.name = "x"}) -> (tensor<?x10xf32> {gpuc.name = "logits"}) {
    %w1 = gpuc.read @conv1.weight : tensor<6x1x5x5xf32> loc("conv1")
    %b1 = gpuc.read @conv1.bias : tensor<6xf32> loc("conv1")
    %c1 = gpuc.conv2d %x, %w1 padding [2, 2, 2, 2] : (tensor<?x1x28x28xf32>, tensor<6x1x5x5xf32>) -> tensor<?x6x28x28xf32> loc("conv1")
    %s1 = gpuc.broadcast %b1 dims [1] : tensor<6xf32> to tensor<?x6x28x28xf32> loc("conv1")
    %a1 = gpuc.add %c1, %s1 : tensor<?x6x28x28xf32> loc("conv1")
    %r1 = gpuc.relu %a1 : tensor<?x6x28x28xf32> loc("conv1")
    %p1, %i1 = gpuc.max_pool2d %r1 window [2, 2] strides [2, 2] : (tensor<?x6x28x28xf32>) -> (tensor<?x6x14x14xf32>, tensor<?x6x14x14xi64>) loc("pool1")

    %w2 = gpuc.read @conv2.weight : tensor<16x6x5x5xf32> loc("conv2")
    %b2 = gpuc.read @conv2.bias : tensor<16xf32> loc("conv2")
    %c2 = gpuc.conv2d %p1, %w2 : (tensor<?x6x14x14xf32>, tensor<16x6x5x5xf32>) -> tensor<?x16x10x10xf32> loc("conv2")
    %s2 = gpuc.broadcast %b2 dims [1] : tensor<16xf32> to tensor<?x16x10x10xf32> loc("conv2")
    %a2 = gpuc.add %c2, %s2 : tensor<?x16x10x10xf32> loc("conv2")
    %r2 = gpuc.relu %a2 : tensor<?x16x10x10xf32> loc("conv2")
    %p2, %i2 = gpuc.max_pool2d %r2 window [2, 2] strides [2, 2] : (tensor<?x16x10x10xf32>) -> (tensor<?x16x5x5xf32>, tensor<?x16x5x5xi64>) loc("pool2")
    %flat = gpuc.reshape %p2 : tensor<?x16x5x5xf32> to tensor<?x400xf32> loc("flatten")

    %w3 = gpuc.read @fc1.weight : tensor<120x400xf32> loc("fc1")
    %b3 = gpuc.read @fc1.bias : tensor<120xf32> loc("fc1")
    %m3 = gpuc.matmul %flat, transpose %w3 : (tensor<?x400xf32>, tensor<120x400xf32>) -> tensor<?x120xf32> loc("fc1")
    %s3 = gpuc.broadcast %b3 dims [1] : tensor<120xf32> to tensor<?x120xf32> loc("fc1")
    %a3 = gpuc.add %m3, %s3 : tensor<?x120xf32> loc("fc1")
    %r3 = gpuc.relu %a3 : tensor<?x120xf32> loc("fc1")

    %w4 = gpuc.read @fc2.weight : tensor<84x120xf32> loc("fc2")
    %b4 = gpuc.read @fc2.bias : tensor<84xf32> loc("fc2")
    %m4 = gpuc.matmul %r3, transpose %w4 : (tensor<?x120xf32>, tensor<84x120xf32>) -> tensor<?x84xf32> loc("fc2")
    %s4 = gpuc.broadcast %b4 dims [1] : tensor<84xf32> to tensor<?x84xf32> loc("fc2")
    %a4 = gpuc.add %m4, %s4 : tensor<?x84xf32> loc("fc2")
    %r4 = gpuc.relu %a4 : tensor<?x84xf32> loc("fc2")

    %w5 = gpuc.read @fc3.weight : tensor<10x84xf32> loc("fc3")
    %b5 = gpuc.read @fc3.bias : tensor<10xf32> loc("fc3")
    %m5 = gpuc.matmul %r4, transpose %w5 : (tensor<?x84xf32>, tensor<10x84xf32>) -> tensor<?x10xf32> loc("fc3")
    %s5 = gpuc.broadcast %b5 dims [1] : tensor<10xf32> to tensor<?x10xf32> loc("fc3")
    %logits = gpuc.add %m5, %s5 : tensor<?x10xf32> loc("fc3")
    return %logits : tensor<?x10xf32>
  }

  func.func @loss(%x: tensor<?x1x28x28xf32> {gpuc.name = "x"}, %labels: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 10 : i64})
      -> (tensor<f32> {gpuc.name = "loss_sum"}, tensor<f32> {gpuc.name = "count"}) {
    %logits = call @predict(%x) : (tensor<?x1x28x28xf32>) -> tensor<?x10xf32>
    %sum, %count = gpuc.cross_entropy %logits, %labels : (tensor<?x10xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>) loc("loss")
    return %sum, %count : tensor<f32>, tensor<f32>
  }

  gpuc.recipe {
    loss = @loss,
    batch = 32,
    optimizer = sgd(lr = 0.01)
  }
}
