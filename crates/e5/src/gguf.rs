//! Reads a GGUF file (version 3, little endian) that is already in memory: names of tensors and of metadata come
//! out with the bytes that they stand for, borrowed. Weights stay where they are until they are multiplied.

use std::collections::HashMap;

use super::ModelError;

const MAGIC: &[u8] = b"GGUF";
const VERSION: u32 = 3;
const DEFAULT_ALIGNMENT: usize = 32;
const TYPE_F32: u32 = 0;
const TYPE_Q4_0: u32 = 2;
const VALUE_U32: u32 = 4;
const VALUE_STRING: u32 = 8;
const VALUE_ARRAY: u32 = 9;
/// Values to a Q4_0 block, and the bytes of one: a half-precision scale and two values to a byte.
pub(super) const BLOCK: usize = 32;
pub(super) const BLOCK_BYTES: usize = 18;

/// A file's tensors and metadata by name.
pub(super) struct Gguf<'a> {
    tensors: HashMap<&'a str, Tensor<'a>>,
    metadata: HashMap<&'a str, &'a [u8]>,
}

/// A tensor as stored: the fastest dimension first.
struct Tensor<'a> {
    kind: u32,
    shape: Vec<usize>,
    bytes: &'a [u8],
}

/// A matrix in Q4_0: `rows` times `columns` values, row after row.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    pub rows: usize,
    pub columns: usize,
    pub bytes: &'a [u8],
}

impl<'a> Gguf<'a> {
    pub(super) fn parse(file: &'a [u8]) -> Result<Self, ModelError> {
        let mut reader = Reader { file, at: 0 };
        if reader.take(MAGIC.len())? != MAGIC || reader.u32()? != VERSION {
            return Err(ModelError(format!("the model is no GGUF file of version {VERSION}")));
        }
        let (tensor_count, value_count) = (reader.size()?, reader.size()?);
        let mut metadata = HashMap::new();
        for _ in 0..value_count {
            let name = reader.text()?;
            let kind = reader.u32()?;
            let start = reader.at;
            reader.skip_value(kind)?;
            metadata.insert(name, &file[start..reader.at]);
        }
        let mut headers = Vec::new();
        for _ in 0..tensor_count {
            let name = reader.text()?;
            let shape = (0..reader.u32()?).map(|_| reader.size()).collect::<Result<Vec<_>, _>>()?;
            headers.push((name, reader.u32()?, shape, reader.size()?));
        }
        let alignment = metadata
            .get("general.alignment")
            .and_then(|bytes| Reader { file: bytes, at: 0 }.u32().ok())
            .map_or(DEFAULT_ALIGNMENT, |value| value.max(1) as usize);
        let data = file.get(reader.at.next_multiple_of(alignment)..).unwrap_or_default();
        let mut tensors = HashMap::new();
        for (name, kind, shape, offset) in headers {
            let bytes = stored_size(kind, &shape)
                .and_then(|size| data.get(offset..offset.checked_add(size)?))
                .ok_or_else(|| ModelError(format!("the model's tensor {name} is cut off or of an unknown type")))?;
            tensors.insert(name, Tensor { kind, shape, bytes });
        }
        Ok(Self { tensors, metadata })
    }

    /// The values of an f32 tensor of the expected size.
    pub(super) fn floats(&self, name: &str, size: usize) -> Result<Vec<f32>, ModelError> {
        let tensor = self.tensor(name, TYPE_F32)?;
        let values: Vec<f32> = tensor.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if values.len() != size {
            return Err(ModelError(format!("the model's tensor {name} has {} values, expected {size}", values.len())));
        }
        Ok(values)
    }

    /// A Q4_0 matrix of the expected number of columns.
    pub(super) fn blocks(&self, name: &str, columns: usize) -> Result<Blocks<'a>, ModelError> {
        let tensor = self.tensor(name, TYPE_Q4_0)?;
        match tensor.shape[..] {
            [found, rows] if found == columns => Ok(Blocks { rows, columns, bytes: tensor.bytes }),
            _ => {
                Err(ModelError(format!("the model's tensor {name} is {:?}, expected {columns} columns", tensor.shape)))
            }
        }
    }

    fn tensor(&self, name: &str, kind: u32) -> Result<&Tensor<'a>, ModelError> {
        self.tensors
            .get(name)
            .filter(|tensor| tensor.kind == kind)
            .ok_or_else(|| ModelError(format!("the model has no tensor {name} of GGUF type {kind}")))
    }

    /// The elements of a metadata array, and how many they are.
    pub(super) fn array(&self, name: &str) -> Result<(Reader<'a>, usize), ModelError> {
        let file = self.metadata.get(name).ok_or_else(|| ModelError(format!("the model has no metadata {name}")))?;
        let mut reader = Reader { file, at: 0 };
        reader.u32()?;
        let count = reader.size()?;
        Ok((reader, count))
    }
}

impl Blocks<'_> {
    pub(super) fn row_bytes(&self) -> usize {
        self.columns / BLOCK * BLOCK_BYTES
    }
}

fn stored_size(kind: u32, shape: &[usize]) -> Option<usize> {
    let values = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size))?;
    match kind {
        TYPE_F32 => values.checked_mul(4),
        TYPE_Q4_0 if shape.first()?.is_multiple_of(BLOCK) => (values / BLOCK).checked_mul(BLOCK_BYTES),
        _ => None,
    }
}

/// A place in the file.
pub(super) struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, size: usize) -> Result<&'a [u8], ModelError> {
        let bytes = self.at.checked_add(size).and_then(|end| self.file.get(self.at..end));
        self.at = self.at.saturating_add(size);
        bytes.ok_or_else(|| ModelError("the model file is cut off".into()))
    }

    pub(super) fn u32(&mut self) -> Result<u32, ModelError> {
        let bytes = self.take(4)?.try_into().map_err(|_| ModelError("the model file is cut off".into()))?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// A 64-bit size that fits the address space.
    pub(super) fn size(&mut self) -> Result<usize, ModelError> {
        let bytes = self.take(8)?.try_into().map_err(|_| ModelError("the model file is cut off".into()))?;
        usize::try_from(u64::from_le_bytes(bytes))
            .map_err(|_| ModelError("the model file names a size too large".into()))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, ModelError> {
        let size = self.size()?;
        std::str::from_utf8(self.take(size)?).map_err(|_| ModelError("a name in the model file is not UTF-8".into()))
    }

    fn skip_value(&mut self, kind: u32) -> Result<(), ModelError> {
        match kind {
            VALUE_STRING => {
                let size = self.size()?;
                self.take(size)?;
            }
            VALUE_ARRAY => {
                let element = self.u32()?;
                let count = self.size()?;
                match scalar_size(element) {
                    Some(size) => {
                        self.take(count.saturating_mul(size))?;
                    }
                    None if element == VALUE_STRING => {
                        for _ in 0..count {
                            self.skip_value(element)?;
                        }
                    }
                    None => return Err(ModelError(format!("the model file has an array of unknown type {element}"))),
                }
            }
            _ => {
                let size = scalar_size(kind)
                    .ok_or_else(|| ModelError(format!("the model file has a value of unknown type {kind}")))?;
                self.take(size)?;
            }
        }
        Ok(())
    }
}

/// Bytes of the fixed-size value types: 8, 16, 32 and 64 bits, and truth values.
fn scalar_size(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        VALUE_U32..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_off_or_foreign_is_an_error() {
        let whole = include_bytes!("../../../assets/embedding/multilingual-e5-small-en-zh-q4_0.gguf");
        for size in [0, 3, 4, 8, 24, 1000, 500_000, 1_500_000, whole.len() - 1] {
            assert!(Gguf::parse(&whole[..size]).is_err(), "cut at {size}");
        }
        assert!(Gguf::parse(b"PK\x03\x04 something else entirely").is_err());
    }
}
