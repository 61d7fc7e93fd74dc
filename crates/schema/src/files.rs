//! Schemas from `.proto` files.

use std::path::{Path, PathBuf};

use crate::{Method, MethodName, SchemaError};

/// The method by the schema in these files, as of [`read_files`].
///
/// # Errors
/// When a file cannot be read or is wrong, or there is no such method.
pub fn from_files(
    name: &MethodName,
    files: &[PathBuf],
    folders: &[PathBuf],
) -> Result<Method, SchemaError> {
    Method::find(&compiled(files, folders)?.descriptor_pool(), name)
}

/// The schema in these files and what they import, as an encoded `FileDescriptorSet`. Imports are
/// looked for in `folders`; without any, in the folder of each file.
///
/// # Errors
/// When a file cannot be read or is wrong.
pub fn read_files(files: &[PathBuf], folders: &[PathBuf]) -> Result<Vec<u8>, SchemaError> {
    Ok(compiled(files, folders)?.encode_file_descriptor_set())
}

fn compiled(files: &[PathBuf], folders: &[PathBuf]) -> Result<protox::Compiler, SchemaError> {
    let own = files.iter().filter_map(|file| file.parent());
    // The folder of a file without one.
    let own = own.map(|folder| match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    });
    let folders: Vec<&Path> = match folders {
        [] => own.collect(),
        given => given.iter().map(PathBuf::as_path).collect(),
    };
    // With the line and column, where there is one.
    let wrong = |error: protox::Error| SchemaError::File(format!("{error:?}"));
    let mut compiler = protox::Compiler::new(folders).map_err(wrong)?;
    compiler.include_imports(true).include_source_info(false);
    for file in files {
        compiler.open_file(file).map_err(wrong)?;
    }
    Ok(compiler)
}
