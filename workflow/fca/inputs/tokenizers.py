"""In: text. Out: token ids. Bytes by default, or a Hugging Face tokenizer."""

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fca.errors import FcaError


class Tokenizer(Protocol):
    """What the inputs stage needs of a tokenizer."""

    vocabulary: int
    separator: int  # the token put between documents of the training stream

    def encode(self, text: str) -> NDArray[np.int32]: ...


class Bytes:
    """UTF-8 bytes; 0, which text does not hold, separates documents."""

    vocabulary = 256
    separator = 0

    def encode(self, text: str) -> NDArray[np.int32]:
        return np.frombuffer(text.encode("utf-8"), dtype=np.uint8).astype(np.int32)


class HuggingFace:
    """A fast tokenizer by name or folder; documents are encoded without special tokens."""

    def __init__(self, name: str):
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise FcaError(f"inputs.tokenizer {name!r} needs the package transformers (extra `hf`)") from None
        try:
            # a GGUF file holds its tokenizer
            folder, file = (
                (str(Path(name).parent), Path(name).name) if name.endswith(".gguf") else (name, None)
            )
            self.tokenizer = AutoTokenizer.from_pretrained(folder, **({"gguf_file": file} if file else {}))
        except Exception as error:  # the library raises many kinds; the message is what helps
            raise FcaError(f"inputs.tokenizer: cannot load {name!r}: {error}") from None
        self.vocabulary = len(self.tokenizer)
        end = self.tokenizer.eos_token_id
        if end is None:
            raise FcaError(f"inputs.tokenizer: {name!r} has no end-of-sequence token")
        self.separator = end

    def encode(self, text: str) -> NDArray[np.int32]:
        ids = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return np.asarray(ids, dtype=np.int32)


def tokenizer(name: str) -> Tokenizer:
    return Bytes() if name == "bytes" else HuggingFace(name)
