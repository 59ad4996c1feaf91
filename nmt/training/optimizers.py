"""The optimizers, all from torch."""

from collections.abc import Callable, Iterable

from torch.nn import Parameter
from torch.optim import SGD, Adafactor, Adam, AdamW, Optimizer

from nmt.config.schema import OptimizerName, TrainingConfig
from nmt.model.seq2seq import Seq2Seq

OPTIMIZERS: dict[OptimizerName, Callable[[Iterable[Parameter], TrainingConfig], Optimizer]] = {
    # Decoupled weight decay (Loshchilov & Hutter 2019); plain Adam (Kingma & Ba 2015) where it is 0.
    "adamw": lambda parameters, config: AdamW(parameters, config.learning_rate.peak, weight_decay=config.weight_decay, fused=True),
    # Weight decay in the gradient.
    "adam": lambda parameters, config: Adam(parameters, config.learning_rate.peak, weight_decay=config.weight_decay, fused=True),
    "sgd": lambda parameters, config: SGD(
        parameters, config.learning_rate.peak, momentum=config.momentum, weight_decay=config.weight_decay, fused=True
    ),
    # Second moments by row and column only, to save memory (Shazeer & Stern 2018).
    "adafactor": lambda parameters, config: Adafactor(parameters, config.learning_rate.peak, weight_decay=config.weight_decay),
}


def build_optimizer(model: Seq2Seq, config: TrainingConfig) -> Optimizer:
    """The optimizer that the configuration names; the loop sets its learning rate at each update."""
    return OPTIMIZERS[config.optimizer](model.parameters(), config)
