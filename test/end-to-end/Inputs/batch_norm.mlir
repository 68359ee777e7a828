// A batch norm before a linear layer, as PyTorch names its variables. batch_norm_test.py trains it.
gpuc.variable @bn.weight : tensor<3xf64> init ones
gpuc.variable @bn.bias : tensor<3xf64> init zeros
gpuc.variable @bn.running_mean kind statistic : tensor<3xf64> init zeros
gpuc.variable @bn.running_var kind statistic : tensor<3xf64> init ones
gpuc.variable @bn.num_batches_tracked kind statistic : tensor<i64> init zeros
gpuc.variable @fc.weight : tensor<5x12xf64> init kaiming_uniform(fan_in = 12)

func.func @predict(%x: tensor<?x3x4xf64> {gpuc.name = "x"}) -> (tensor<?x5xf64> {gpuc.name = "logits"}) {
  %w = gpuc.read @bn.weight : tensor<3xf64>
  %b = gpuc.read @bn.bias : tensor<3xf64>
  %mean = gpuc.read @bn.running_mean : tensor<3xf64>
  %variance = gpuc.read @bn.running_var : tensor<3xf64>
  %batches = gpuc.read @bn.num_batches_tracked : tensor<i64>
  %y, %new_mean, %new_variance, %m, %r = gpuc.batch_norm %x running %mean, %variance weight %w bias %b : (tensor<?x3x4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<?x3x4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
  %one = gpuc.constant 1 : tensor<i64>
  %next = gpuc.add %batches, %one : tensor<i64>
  gpuc.assign @bn.running_mean, %new_mean : tensor<3xf64>
  gpuc.assign @bn.running_var, %new_variance : tensor<3xf64>
  gpuc.assign @bn.num_batches_tracked, %next : tensor<i64>
  %flat = gpuc.reshape %y : tensor<?x3x4xf64> to tensor<?x12xf64>
  %fc = gpuc.read @fc.weight : tensor<5x12xf64>
  %logits = gpuc.matmul %flat, transpose %fc : (tensor<?x12xf64>, tensor<5x12xf64>) -> tensor<?x5xf64>
  return %logits : tensor<?x5xf64>
}

func.func @loss(%x: tensor<?x3x4xf64> {gpuc.name = "x"}, %labels: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 5 : i64}) -> (tensor<f64>, tensor<f64>) {
  %logits = call @predict(%x) : (tensor<?x3x4xf64>) -> tensor<?x5xf64>
  %sum, %count = gpuc.cross_entropy %logits, %labels : (tensor<?x5xf64>, tensor<?xi32>) -> (tensor<f64>, tensor<f64>)
  return %sum, %count : tensor<f64>, tensor<f64>
}

func.func @accuracy(%x: tensor<?x3x4xf64> {gpuc.name = "x"}, %labels: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 5 : i64}) -> (tensor<f64>, tensor<f64>) {
  %logits = call @predict(%x) : (tensor<?x3x4xf64>) -> tensor<?x5xf64>
  %sum, %count = gpuc.accuracy %logits, %labels : (tensor<?x5xf64>, tensor<?xi32>) -> (tensor<f64>, tensor<f64>)
  return %sum, %count : tensor<f64>, tensor<f64>
}

gpuc.recipe {
  loss = @loss,
  accuracy = @accuracy,
  batch = 8,
  optimizer = sgd(lr = 0.1, momentum = 0.9)
}
