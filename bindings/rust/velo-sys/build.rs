// SPDX-License-Identifier: Apache-2.0
//! Makes the declarations from the C headers by the program `bindgen`, which is a package of the
//! distribution: so nothing is downloaded.
//!
//! The headers and the library are those that pkg-config knows; or, in a build folder that is not
//! installed, those of `VELO_INCLUDE` (folders, with `:` between) and `VELO_LIB` (a folder).

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// What a program prints, or the end of the build with what is missing.
fn output_of(command: &mut Command, missing: &str) -> String {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{missing} ({command:?}: {error})"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{missing} ({command:?}: {errors})");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

fn pkg_config(what: &str) -> Vec<String> {
    let missing = "velo is not installed, or pkg-config does not find it: set PKG_CONFIG_PATH, or \
                   VELO_INCLUDE and VELO_LIB";
    let output = output_of(Command::new("pkg-config").args([what, "velo"]), missing);
    output.split_whitespace().map(String::from).collect()
}

fn main() {
    for name in ["VELO_INCLUDE", "VELO_LIB", "PKG_CONFIG_PATH", "BINDGEN"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let include = match env::var("VELO_INCLUDE") {
        Ok(folders) => folders.split(':').map(|folder| format!("-I{folder}")).collect(),
        Err(_) => pkg_config("--cflags-only-I"),
    };
    match env::var("VELO_LIB") {
        Ok(folder) => println!("cargo:rustc-link-search=native={folder}"),
        Err(_) => {
            for flag in pkg_config("--libs-only-L") {
                println!("cargo:rustc-link-search=native={}", &flag[2..]);
            }
        }
    }
    println!("cargo:rustc-link-lib=dylib=velo");

    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let header = out.join("all.h");
    let all = ["velo", "rma", "mq", "bcast"].map(|name| format!("#include <velo/{name}.h>\n"));
    std::fs::write(&header, all.concat()).expect("OUT_DIR is writable");
    for flag in include.iter().filter(|flag| flag.starts_with("-I")) {
        println!("cargo:rerun-if-changed={}/velo", &flag[2..]);
    }
    let bindgen = env::var("BINDGEN").unwrap_or_else(|_| "bindgen".into());
    let mut command = Command::new(bindgen);
    // Comments are in the headers; code in them would be taken for tests of Rust.
    command.args(["--no-doc-comments", "--no-layout-tests"]);
    for kind in ["function", "type"] {
        command.args([format!("--allowlist-{kind}"), "velo_.*".into()]);
    }
    command.args(["--allowlist-var", "VELO_.*", "--output"]);
    command.arg(out.join("velo.rs")).arg(&header).arg("--").args(include);
    output_of(&mut command, "bindgen is missing (apt-get install bindgen libclang-dev), or failed");
}
