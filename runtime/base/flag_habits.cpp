// What flags are called in PyTorch's scripts, by torchrun, Hugging Face's Trainer, Lightning and compilers.
#include "runtime/base/flags_elsewhere.h"

namespace gpuc {

namespace {

constexpr std::string_view kSeveralGpus =
    "several GPUs are not there yet; --device=cuda:N of gpuc-run and gpuc-train picks one";
constexpr std::string_view kLauncher =
    "machines are a launcher's: mpirun --hostfile or srun --nodes, in front of gpuc-train";
constexpr std::string_view kNotYet = "that is not there yet";
constexpr std::string_view kNothingToSay = "there is nothing to choose: gpuc does that by itself";

}  // namespace

const std::vector<Habit>& habits() {
  static const std::vector<Habit> table = {
      // How it is trained: a part of the plan.
      {"lr learning-rate base-lr max-lr", {"--optimizer=adam:lr=…"}},
      {"momentum nesterov", {"--optimizer=sgd:lr=…,momentum=…"}},
      {"wd weight-decay", {"--optimizer=adamw:weight_decay=…"}},
      {"beta1 beta2 betas adam-beta1 adam-beta2", {"--optimizer=adam:beta1=…,beta2=…"}},
      {"eps epsilon adam-epsilon", {"--optimizer=adam:eps=…"}},
      {"optim opt", {"--optimizer=SPEC"}},
      {"scheduler sched lr-scheduler lr-schedule lr-scheduler-type lr-decay gamma", {"--schedule=SPEC"}},
      {"warmup warmup-steps warmup-epochs warmup-ratio num-warmup-steps lr-warmup",
       {"--schedule=linear:total_iters=…,steps=…"}},
      {"param-groups layer-lr", {"--group=match=…,lr=…"}},
      {"bs bsz batchsize batch-size train-batch-size per-device-train-batch-size per-gpu-batch-size "
       "micro-batch-size microbatch eval-batch-size",
       {"--batch=N"}},
      {"gradient-accumulation-steps grad-accum accum accum-steps accumulation-steps accumulate-grad-batches "
       "gradient-accumulation microbatches",
       {"--accumulate=K"}},
      {"fp16 half float16", {"--precision=fp16"}},
      {"amp bf16 bfloat16 autocast mixed-precision native-amp", {"--precision=bf16"}},
      {"tf32 allow-tf32", {"--precision=tf32"}},
      {"fp32 f32 float32 dtype", {"--precision=f32"}},
      {"clip clip-grad clip-grad-norm grad-clip grad-clip-norm gradient-clip-val max-grad-norm",
       {"--clip-norm=X"}},
      {"clip-grad-value grad-clip-value", {"--clip-value=X"}},
      {"grad-scaler loss-scaling loss-scaler init-scale", {"--loss-scale=SPEC"}},
      {"ema-decay swa model-ema averaged-model", {"--ema=ema:decay=…"}},
      {"detect-anomaly check-nan debug-nans nan-check", {"--check-numerics"}},
      {"gpu-arch arch march mcpu cpu-type sm", {"--target=TARGET"}},
      {"optimize optimization-level", {"--opt-level=N"}},
      {"emit-mlir emit-llvm print-ir dump-ir", {"--emit=STAGE"}},
      // How long, on what.
      {"epoch num-epochs n-epochs max-epochs num-train-epochs", {"--epochs=N"}},
      {"max-steps num-steps n-steps iters max-iters num-iters iterations num-iterations train-steps updates",
       {"--steps=N", "--repeat=N"}},
      {"dataset data-dir data-path data-root train train-data train-file train-dir root", {"--data=SPEC"}},
      {"val valid validation eval test val-data valid-data validation-data test-data validation-file "
       "eval-file",
       {"--eval-data=SPEC"}},
      {"drop-last pad-last", {"--last-batch=drop"}},
      {"shuffle", {"--no-shuffle"}},
      {"num-workers n-workers dataloader-num-workers loader-workers", {"--workers=N"}},
      {"jobs num-threads nthreads n-threads cores", {"--threads=N"}},
      {"prefetch-factor", {"--prefetch=N"}},
      {"manual-seed random-seed rng-seed random-state", {"--seed=N"}},
      {"pin-memory persistent-workers deterministic cudnn-deterministic cudnn-benchmark compile "
       "torch-compile jit "
       "channels-last memory-format",
       {},
       kNothingToSay},
      // Weights, checkpoints, what is written.
      {"weights load load-weights pretrained init-from model-path state-dict ckpt-path",
       {"--variables=FILE"}},
      {"out outfile output-file output-path", {"--output=FILE", "--save-variables=FILE", "--output-dir=DIR"}},
      {"save save-path save-weights save-model export", {"--save-variables=FILE", "--output=FILE"}},
      {"checkpoint ckpt ckpt-dir checkpoints checkpoint-path save-dir output-directory default-root-dir",
       {"--checkpoint-dir=DIR"}},
      {"save-every save-steps save-freq save-interval checkpoint-interval checkpoint-freq",
       {"--checkpoint-every=N"}},
      {"save-total-limit max-checkpoints keep-last", {"--keep=N"}},
      {"resume-from resume-from-checkpoint continue restart auto-resume", {"--resume"}},
      {"log-interval log-freq logging-steps print-freq print-every verbose quiet silent progress",
       {"--log-every=N"}},
      {"logdir logging-dir tensorboard tb wandb report-to", {"--log-dir=DIR", "--metrics=FILE"}},
      {"trace profiler timeline", {"--profile=FILE"}},
      {"bench benchmark loops", {"--repeat=N"}},
      {"program function fn", {"--entry=NAME"}},
      {"inputs", {"--input=NAME=FILE.npy"}},
      // Devices.
      {"gpu gpu-id cuda use-cuda accelerator", {"--device=cuda:0", "--target=cuda:sm_90"}},
      {"cpu no-cuda use-cpu no-gpu", {"--device=host", "--target=host"}},
      {"nproc nproc-per-node num-processes rank world-size standalone ddp distributed",
       {"--ranks=N", "--data-parallel"}},
      {"sync-bn syncbn convert-sync-batchnorm", {"--sync-batch-norm"}},
      {"nnodes num-nodes node-rank local-rank master-addr master-port rdzv-backend rdzv-endpoint rdzv-id "
       "dist-url "
       "hostfile hosts",
       {},
       kLauncher},
      {"fsdp zero zero-stage deepspeed shard", {"--shard=optimizer", "--ranks=N"}},
      {"gpus n-gpu n-gpus num-gpus dist-backend strategy tensor-parallel pipeline-parallel "
       "bucket-size multi-gpu",
       {},
       kSeveralGpus},
      {"memory-budget gradient-checkpointing activation-checkpointing checkpoint-activations recompute remat",
       {},
       kNotYet},
      // Text.
      {"max-new-tokens num-tokens n-tokens max-tokens max-length length", {"--tokens=N"}},
      {"temp", {"--temperature=X"}},
      {"topk", {"--top-k=N"}},
      {"top-p nucleus", {"--top-k=N"}},
      {"text start", {"--prompt=TEXT"}},
      // Models from elsewhere.
      {"input-shape input-shapes shape dynamic-axes override-input-shapes", {"--dim=NAME=N"}},
      {"frozen freeze-layers", {"--freeze=NAME"}},
      {"criterion objective loss-fn", {"--loss=NAME"}},
  };
  return table;
}

}  // namespace gpuc
