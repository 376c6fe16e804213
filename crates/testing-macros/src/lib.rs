//! The attribute of tests that need files or programs which a fresh clone does not have: [`macro@needs`].
//!
//! Whether a test is ignored is decided when it is compiled, because only then does the test runner count it as ignored. The crate
//! `testing` compiles the environment variables in that decide it, so that all tests are compiled again when one of them changes.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use proc_macro::{Delimiter, TokenStream, TokenTree};

/// Above `#[test]`: the test is ignored, with the reason, where something it needs is not there, and fails there if `CI` is set.
///
/// `goldens = "kudu"` is that folder of the golden files, `program = "python3"` a program in `PATH`.
///
/// ```ignore
/// #[needs(goldens = "kudu", program = "python3")]
/// #[test]
/// fn every_golden_is_read_by_another_reader() {}
/// ```
#[proc_macro_attribute]
pub fn needs(arguments: TokenStream, test: TokenStream) -> TokenStream {
    if !is_test(&test) {
        // Below `#[test]` the runner would not see that the test is ignored.
        return error("`#[needs(…)]` stands right above `#[test]`");
    }
    let reason = match missing(arguments) {
        Ok(None) => return test,
        Ok(Some(reason)) => reason,
        Err(message) => return error(message),
    };
    if is_ci() {
        return test;
    }
    let mut ignored = tokens(&format!("#[ignore = {reason:?}]"));
    ignored.extend(test);
    ignored
}

/// The folder of the golden files: `PILASTER_GOLDENS`, or `shared/goldens` beside the checkout.
#[proc_macro]
pub fn goldens_folder(_: TokenStream) -> TokenStream {
    tokens(&format!("{:?}", goldens()))
}

/// Which folders of the golden files are there, as an array of strings.
#[proc_macro]
pub fn goldens_present(_: TokenStream) -> TokenStream {
    let mut systems: Vec<_> = std::fs::read_dir(goldens())
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    systems.sort();
    tokens(&format!("&{systems:?}"))
}

fn goldens() -> PathBuf {
    std::env::var_os("PILASTER_GOLDENS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/goldens"), PathBuf::from)
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| !ci.is_empty() && ci != "false")
}

/// The first thing of `goldens = "…", program = "…"` that is not there, as a reason to ignore a test.
fn missing(arguments: TokenStream) -> Result<Option<String>, &'static str> {
    const FORM: &str = "expected `goldens = \"…\"` or `program = \"…\"`";
    let arguments: Vec<TokenTree> = arguments.into_iter().collect();
    let mut reason = None;
    for argument in arguments.split(|token| token.to_string() == ",") {
        let [name, equals, value] = argument else { return Err(FORM) };
        let value = value.to_string();
        let value = value.trim_matches('"');
        if equals.to_string() != "=" || value.is_empty() {
            return Err(FORM);
        }
        let (is_there, needed) = match name.to_string().as_str() {
            "goldens" => (
                goldens().join(value).is_dir(),
                format!("needs the golden files of {value}: set PILASTER_GOLDENS"),
            ),
            "program" => (is_in_path(value), format!("needs {value}")),
            _ => return Err(FORM),
        };
        if !is_there && reason.is_none() {
            reason = Some(needed);
        }
    }
    Ok(reason)
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether `#[test]` is among the attributes that are left.
fn is_test(item: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = item.clone().into_iter().collect();
    tokens.windows(2).any(|pair| match pair {
        [TokenTree::Punct(sign), TokenTree::Group(group)] => {
            sign.as_char() == '#'
                && group.delimiter() == Delimiter::Bracket
                && group.stream().to_string() == "test"
        }
        _ => false,
    })
}

fn error(message: &str) -> TokenStream {
    tokens(&format!("compile_error!({message:?});"))
}

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}
