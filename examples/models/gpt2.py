"""GPT-2 from the transformers library, made from a configuration: nothing is downloaded."""

from __future__ import annotations

from torch import Tensor

from .task import Task

SIZES = {
    "cpu": {"vocabulary": 1000, "width": 96, "heads": 4, "layers": 3, "batch": 8, "length": 48},
    "gpu": {"vocabulary": 8000, "width": 512, "heads": 8, "layers": 6, "batch": 16, "length": 256},
}


class GPT2Task(Task):
    """Predicts the next token of random text; dropout as the library sets it."""

    def __init__(
        self,
        seed: int,
        vocabulary: int,
        width: int,
        heads: int,
        layers: int,
        batch: int,
        length: int,
    ) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        super().__init__(seed)
        config = GPT2Config(
            vocab_size=vocabulary,
            n_embd=width,
            n_head=heads,
            n_layer=layers,
            n_positions=length,
            bos_token_id=0,
            eos_token_id=0,
            use_cache=False,
            attn_implementation="eager",
        )
        self.net = GPT2LMHeadModel(config)
        self.net.train()
        self.vocabulary, self.batch, self.length = vocabulary, batch, length

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        tokens = self.randint(self.vocabulary, self.batch, self.length, generator=generator)
        return self.net(input_ids=tokens, labels=tokens).loss
