//! The guides do what they say: every command line in them is run, in the order of the page.
//!
//! A line `$ command` in a `console` block must succeed; with `# exit code N` behind it, it must end with that code.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const EXIT_CODE: &str = "# exit code ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The command lines of a page.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            commands.push(command.to_string());
        }
    }
    commands
}

/// Runs the commands of a page in an empty folder with `testdata` in it and `pilaster` on the path.
fn follow(name: &str) {
    let page = fs::read_to_string(root().join("docs/guides").join(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    symlink(root().join("testdata"), folder.path().join("testdata")).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_pilaster")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let commands = commands(&page);
    assert!(commands.len() > 3, "{name} has {} commands", commands.len());
    for command in commands {
        let expected = command.split_once(EXIT_CODE).map_or(0, |(_, code)| code.trim().parse().unwrap());
        let output = Command::new("bash")
            .args(["-c", &command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{name}: `{command}` says: {said}");
    }
}

#[test]
fn recover_a_kudu_server() {
    follow("recover-a-kudu-server.md");
}

#[test]
fn open_a_doris_backup() {
    follow("open-a-doris-backup.md");
}

#[test]
fn leave_carbondata() {
    follow("leave-carbondata.md");
}
