"""PyTorch as a candidate: torch_worker.py FOLDER THREADS eager|compiled. See worker.py."""

import sys

import torch

import torch_models
import worker

CHANNELS_LAST = ", channels_last"


class Modules:
    """The step of a training script: modules, backward(), an optimizer of torch.optim."""

    def __init__(self, case, weights, inputs, optimizer, compile_model=False, compile_update=False, channels_last=False):
        self.weights, self.inputs = weights, inputs
        self.model = torch_models.build(case["model"], weights)
        if channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.inputs = {name: value.contiguous(memory_format=torch.channels_last) if value.dim() == 4 else value
                           for name, value in inputs.items()}
        self.make_optimizer = lambda: make_optimizer(case["optimizer"], self.model.parameters(), **optimizer)
        self.loss = lambda labels, **inputs: torch_models.loss(self.model(**inputs), labels, case["model"])
        if compile_model:
            self.loss = torch.compile(self.loss)
        self.compile_update = compile_update
        self.reset()

    def reset(self):
        state = self.model.state_dict()  # batch norms' counters, which are integers, are not among the weights
        self.model.load_state_dict({**{name: value for name, value in state.items() if value.dtype == torch.long}, **self.weights})
        self.optimizer = self.make_optimizer()
        self.update = torch.compile(self.optimizer.step) if self.compile_update else self.optimizer.step

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(**self.inputs)
        loss.backward()
        self.update()
        return loss.detach()

    def finish(self):
        pass


def make_optimizer(settings, parameters, **how):
    if settings["name"] == "sgd":
        return torch.optim.SGD(parameters, lr=settings["lr"], momentum=settings.get("momentum", 0), **how)
    parameters = list(parameters)
    groups = [{"params": [p for p in parameters if p.dim() >= 2]},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]  # biases and norms, as nanoGPT has it
    return torch.optim.AdamW(groups, lr=settings["lr"], betas=(settings["beta1"], settings["beta2"]), eps=settings["eps"],
                             weight_decay=settings["weight_decay"], **how)


class WholeStep:
    """Forward, backward and update as one function, compiled as one graph, that changes the parameters in place."""

    def __init__(self, case, weights, inputs):
        self.weights, self.inputs, self.settings = weights, inputs, case["optimizer"]
        self.model = torch_models.build(case["model"], weights, one_graph=True)
        update = sgd if self.settings["name"] == "sgd" else adamw

        def step(parameters, state, labels, **inputs):
            def loss(parameters):
                return torch_models.loss(torch.func.functional_call(self.model, parameters, kwargs=inputs), labels, case["model"])
            gradients, value = torch.func.grad_and_value(loss)(parameters)
            update(self.settings, parameters, gradients, state)
            return value

        self.compiled = torch.compile(step, fullgraph=True)
        self.reset()

    def reset(self):
        self.parameters = {name: value.clone() for name, value in self.weights.items()}
        self.state = {"step": torch.zeros(())}
        if self.settings["name"] != "sgd":
            for slot in ("exp_avg", "exp_avg_sq"):
                self.state[slot] = {name: torch.zeros_like(value) for name, value in self.weights.items()}

    def step(self):
        return self.compiled(self.parameters, self.state, **self.inputs)

    def finish(self):
        pass


def sgd(settings, parameters, gradients, state):
    for name, value in parameters.items():
        value.sub_(gradients[name], alpha=settings["lr"])


def adamw(settings, parameters, gradients, state):
    """torch.optim.AdamW's arithmetic, which decays matrices alone, the count of steps being a tensor, so that nothing is compiled anew."""
    step = state["step"].add_(1)
    size = settings["lr"] / (1 - settings["beta1"] ** step)
    scale = (1 - settings["beta2"] ** step).sqrt()
    for name, value in parameters.items():
        mean, square, gradient = state["exp_avg"][name], state["exp_avg_sq"][name], gradients[name]
        if value.dim() >= 2:
            value.mul_(1 - settings["lr"] * settings["weight_decay"])
        mean.lerp_(gradient, 1 - settings["beta1"])
        square.mul_(settings["beta2"]).addcmul_(gradient, gradient, value=1 - settings["beta2"])
        value.sub_(size * mean / (square.sqrt() / scale + settings["eps"]))


def forms(case, folder, how):
    weights = {name: torch.tensor(value) for name, value in worker.read_safetensors(folder + "/weights.safetensors").items()}
    inputs = {name: torch.tensor(value) for name, value in worker.read_inputs(case, folder).items()}
    inputs["labels"] = inputs["labels"].long()
    if case["real"]:
        return real_forms(case, weights, inputs, compile_model=how == "compiled")
    if how == "eager":
        return {"torch.optim as it comes": lambda: Modules(case, weights, inputs, {}),
                "torch.optim fused": lambda: Modules(case, weights, inputs, {"fused": True})}
    return {"whole step in one graph": lambda: WholeStep(case, weights, inputs),
            "model compiled, torch.optim fused": lambda: Modules(case, weights, inputs, {"fused": True}, True),
            "model and torch.optim compiled": lambda: Modules(case, weights, inputs, {}, True, True)}


def real_forms(case, weights, inputs, compile_model):
    """Of long steps, in which an optimizer's calls take no time: few, since to compile one takes a minute."""
    name = "model compiled, torch.optim fused" if compile_model else "torch.optim fused"
    make = lambda last: lambda: Modules(case, weights, inputs, {"fused": True}, compile_model, channels_last=last)
    convolves = any(value.dim() == 4 for value in weights.values())
    return {name: make(False), **({name + CHANNELS_LAST: make(True)} if convolves else {})}


def main():
    case, folder, threads = worker.arguments()
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    worker.serve(f"PyTorch {torch.__version__}", forms(case, folder, sys.argv[3]))


if __name__ == "__main__":
    main()
