// Links the static library of the artifact this crate lies in; with TEXPR_LIBRARY_DIR set, the shared one of that folder.
use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-env-changed=TEXPR_LIBRARY_DIR");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:on=@ON@"); // DEP_TEXPR_@UPPER@_ON for crates that use this one
    match env::var("TEXPR_LIBRARY_DIR") {
        Ok(folder) if !folder.is_empty() => {
            println!("cargo:rustc-link-search=native={folder}");
            println!("cargo:rustc-link-lib=dylib=texpr_@NAME@");
        }
        _ => {
            let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets this")).join("../lib");
            println!("cargo:rerun-if-changed={}", folder.join("libtexpr_@NAME@.a").display());
            println!("cargo:rustc-link-search=native={}", folder.display());
            println!("cargo:rustc-link-lib=static=texpr_@NAME@");
            for library in [@LIBRARIES@] {
                println!("cargo:rustc-link-lib=dylib={library}");
            }
        }
    }
}
