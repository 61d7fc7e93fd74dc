//! The schema of the built-in back end, which `net` has compiled.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use net::grpc::echo;

#[test]
fn the_compiled_schema_is_that_of_the_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../net/src/http/grpc");
    let mut compiler = protox::Compiler::with_file_resolver(OneFile);
    compiler.include_source_info(false);
    compiler.open_file(echo::FILE_NAME).unwrap();
    let files = compiler.file_descriptor_set();
    let bytes = prost_reflect::prost::Message::encode_to_vec(&files.file[0]);
    if std::env::var_os("WEIGH_WRITE_SHOWN").is_some() {
        std::fs::write(folder.join("echo.bin"), &bytes).unwrap();
    }
    assert!(
        bytes == echo::FILE_DESCRIPTOR,
        "echo.bin is not echo.proto compiled: run this test with WEIGH_WRITE_SHOWN=1"
    );
}

struct OneFile;

impl protox::file::FileResolver for OneFile {
    fn open_file(&self, name: &str) -> Result<protox::file::File, protox::Error> {
        protox::file::File::from_source(name, echo::PROTO)
    }
}
