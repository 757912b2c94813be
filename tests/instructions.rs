//! The instructions of a run: what is read, in which order, and what is left out with a warning.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use etch::config::{self, Overrides, keys};
use etch::context::instructions::{self, Instructions};
use etch::host::Host;
use etch::model::Role;

use crate::support::command::TempDir;

/// A home with the project `p` (a repository) in it; the work happens in `p/sub`.
struct Tree {
    home: TempDir,
}

impl Tree {
    fn new() -> Tree {
        let home = TempDir::new();
        fs::create_dir_all(home.path().join("p/sub")).unwrap();
        fs::create_dir_all(home.path().join("p/.git")).unwrap();
        Tree { home }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Tree {
        self.home.write(name, text);
        self
    }

    fn host(&self) -> Host {
        Host::fixed().with_home(self.home.path()).with_cwd(self.home.path().join("p/sub"))
    }

    fn read(&self, overrides: &Overrides) -> Instructions {
        let host = self.host();
        let loaded = config::load(&host, keys::KEYS, overrides).unwrap();
        instructions::load(&host, &loaded, Some("bash"))
    }

    fn load(&self) -> Instructions {
        self.read(&Overrides::default())
    }

    fn short(&self, text: &str) -> String {
        text.replace(&*self.home.path().to_string_lossy(), "~")
    }

    /// Everything after the base prompt.
    fn text(&self, read: &Instructions) -> String {
        let base = &read.layers[0];
        assert_eq!(base.name, "base prompt");
        let text = read.text();
        self.short(text.strip_prefix(&format!("{}\n\n", base.text)).unwrap())
    }

    #[track_caller]
    fn check_warnings(&self, read: &Instructions, want: &[&str]) {
        let got: Vec<String> = read.warnings.iter().map(|line| self.short(line)).collect();
        assert_eq!(got, want);
    }
}

fn facts() -> String {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("Working directory: ~/p/sub; project root: ~/p; platform: {os} {arch}; shell: bash")
}

#[test]
fn every_layer_comes_in_its_order_under_its_path() {
    let tree = Tree::new();
    tree.write(".etch/config.toml", "[prompt]\nsystem_prompt = ' From the config. '\n")
        .write("AGENTS.md", "home\n")
        .write("SYSTEM.md", "home system")
        .write(".etch/AGENTS.md", "\u{feff}user\r\nrules\n\n")
        .write("p/AGENTS.md", "project")
        .write("p/SYSTEM.md", "project system")
        .write("p/sub/AGENTS.md", "sub")
        .write("p/sub/SYSTEM.md", " \n")
        .write("p/.etch/skills/lint/SKILL.md", "---\nname: lint\ndescription: Lints.\n---\n")
        .write("p/other/AGENTS.md", "not on the way");
    let read = tree.load();
    let want = format!(
        "{}\n\n\
         From the config.\n\n\
         Contents of ~/SYSTEM.md:\n\nhome system\n\n\
         Contents of ~/p/SYSTEM.md:\n\nproject system\n\n\
         Contents of ~/.etch/AGENTS.md:\n\nuser\r\nrules\n\n\
         Contents of ~/AGENTS.md:\n\nhome\n\n\
         Contents of ~/p/AGENTS.md:\n\nproject\n\n\
         Contents of ~/p/sub/AGENTS.md:\n\nsub\n\n\
         Skills: instructions for special tasks. When one fits, read its file first and follow it.\n\
         - lint: Lints. (~/p/.etch/skills/lint/SKILL.md)",
        facts()
    );
    assert_eq!(tree.text(&read), want);
    tree.check_warnings(&read, &[]);
    let messages = read.to_messages();
    assert_eq!((messages.len(), messages[0].role), (1, Role::System));
    assert_eq!(messages[0].joined_text(), tree.load().text(), "the same bytes every time");
}

#[test]
fn a_bare_directory_has_the_base_prompt_and_its_place() {
    let tree = Tree::new();
    let read = tree.load();
    assert_eq!(tree.text(&read), facts());
    assert_eq!((read.skills.len(), read.warnings.len()), (0, 0));
}

#[test]
fn a_prompt_file_of_the_configuration_is_headed_by_its_path() {
    let tree = Tree::new();
    tree.write("p/house.md", "House rules.\n");
    tree.write("p/.etch/config.toml", "[prompt]\nsystem_prompt_file = 'house.md'\n");
    let want = format!("{}\n\nContents of ~/p/house.md:\n\nHouse rules.", facts());
    assert_eq!(tree.text(&tree.load()), want);
}

#[test]
fn what_cannot_be_instructions_is_left_out_with_a_warning() {
    let tree = Tree::new();
    tree.write("p/SYSTEM.md", b"\xff\xfe").write("p/AGENTS.md", "nul\0");
    tree.write("p/sub/AGENTS.md", vec![b'a'; 1024 * 1024 + 1]);
    let made =
        std::process::Command::new("mkfifo").arg(tree.home.path().join("SYSTEM.md")).status();
    assert!(made.unwrap().success());
    fs::create_dir(tree.home.path().join("AGENTS.md")).unwrap();
    symlink("nowhere", tree.home.path().join("p/sub/SYSTEM.md")).unwrap();
    let read = tree.load();
    assert_eq!(tree.text(&read), facts());
    tree.check_warnings(
        &read,
        &[
            "~/SYSTEM.md: not a regular file (pipe); it is left out",
            "~/p/SYSTEM.md: not UTF-8 text; it is left out",
            "~/p/sub/SYSTEM.md: no such file or directory; it is left out",
            "~/AGENTS.md: is a directory; it is left out",
            "~/p/AGENTS.md: not UTF-8 text; it is left out",
            "~/p/sub/AGENTS.md: larger than 1024 KiB; it is left out",
        ],
    );
    // Up to the limit a file is loaded whole.
    tree.write("p/sub/AGENTS.md", vec![b'a'; 1024 * 1024]);
    assert!(tree.load().text().len() > 1024 * 1024);
}

#[test]
fn a_link_out_of_the_project_is_not_followed_unless_reading_outside_is_allowed() {
    let tree = Tree::new();
    tree.write("key.txt", "SECRET").write("p/docs/rules.md", "rules");
    symlink("../key.txt", tree.home.path().join("p/AGENTS.md")).unwrap();
    symlink("docs/rules.md", tree.home.path().join("p/SYSTEM.md")).unwrap();
    let read = tree.load();
    let inside = format!("{}\n\nContents of ~/p/SYSTEM.md:\n\nrules", facts());
    assert_eq!(tree.text(&read), inside);
    let warning = "~/p/AGENTS.md: leads out of the project to ~/key.txt (--read-outside allows it); it is left out";
    tree.check_warnings(&read, &[warning]);
    let mut overrides = Overrides::default();
    overrides.add_flag("--read-outside", "paths.read_outside", "true");
    let read = tree.read(&overrides);
    assert_eq!(tree.text(&read), format!("{inside}\n\nContents of ~/p/AGENTS.md:\n\nSECRET"));
}

#[test]
fn one_file_under_two_names_is_said_once() {
    let tree = Tree::new();
    tree.write("p/AGENTS.md", "rules");
    symlink("../AGENTS.md", tree.home.path().join("p/sub/AGENTS.md")).unwrap();
    let want = format!("{}\n\nContents of ~/p/AGENTS.md:\n\nrules", facts());
    assert_eq!(tree.text(&tree.load()), want);
}

#[test]
fn an_outer_folder_that_everyone_may_write_to_gives_no_orders() {
    let tree = Tree::new();
    tree.write("shared/AGENTS.md", "planted").write("shared/mine/AGENTS.md", "mine");
    let shared = tree.home.path().join("shared");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let host = Host::fixed().with_home(tree.home.path().join("p")).with_cwd(shared.join("mine"));
    let loaded = config::load(&host, keys::KEYS, &Overrides::default()).unwrap();
    let read = instructions::load(&host, &loaded, None);
    let text = read.text();
    assert!(text.contains("mine") && !text.contains("planted"), "{text}");
    let warning = "~/shared/AGENTS.md: everyone may write to its folder; it is left out";
    let got: Vec<String> = read.warnings.iter().map(|line| tree.short(line)).collect();
    assert!(got.contains(&warning.to_owned()), "{got:?}");
}

#[test]
fn skills_are_found_up_the_tree_and_a_bad_one_harms_no_other() {
    let tree = Tree::new();
    let skill = |folder: &str, name: &str, description: &str| {
        let text = format!("---\nname: {name}\ndescription: {description}\n---\nBody.\n");
        tree.write(&format!("{folder}/{name}/SKILL.md"), text);
    };
    skill(".agents/skills", "zeta", "of home");
    skill(".agents/skills", "lint", "of home");
    skill("p/.agents/skills", "lint", "of the project, the second root");
    skill("p/.etch/skills", "lint", "of the project");
    skill("p/sub/.agents/skills", "build", "of the folder");
    skill("p/.etch/skills", "Upper", "x");
    tree.write("p/.etch/skills/empty/notes.txt", "no skill");
    tree.write("p/.etch/skills/stray.md", "no folder");
    tree.write("p/.etch/skills/.hidden/SKILL.md", "---\n");
    tree.write("p/.etch/skills/plain/SKILL.md", "# Title\n");
    let long = format!("---\nname: long\ndescription: d\n---\n{}", "é".repeat(20_000));
    tree.write("p/.etch/skills/long/SKILL.md", long);
    tree.write("p/.etch/skills/binary/SKILL.md", b"---\nname: \xff");
    fs::create_dir_all(tree.home.path().join("p/.etch/skills/folder/SKILL.md")).unwrap();
    let read = tree.load();
    let lines: Vec<String> =
        tree.text(&read).lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect();
    let want = [
        "- build: of the folder (~/p/sub/.agents/skills/build/SKILL.md)",
        "- lint: of the project (~/p/.etch/skills/lint/SKILL.md)",
        "- long: d (~/p/.etch/skills/long/SKILL.md)",
        "- zeta: of home (~/.agents/skills/zeta/SKILL.md)",
    ];
    assert_eq!(lines, want);
    let readable: Vec<_> =
        read.readable().iter().map(|dir| tree.short(&dir.to_string_lossy())).collect();
    let want = ["~/p/sub/.agents/skills/build", "~/p/.etch/skills/lint", "~/p/.etch/skills/long"];
    assert_eq!(readable[..3], want);
    tree.check_warnings(
        &read,
        &[
            "~/p/.etch/skills/Upper/SKILL.md: its name 'Upper' has other characters than a-z, 0-9 and '-'; it is left out",
            "~/p/.etch/skills/binary/SKILL.md: not UTF-8 text; it is left out",
            "~/p/.etch/skills/folder/SKILL.md: is a directory; it is left out",
            "~/p/.etch/skills/plain/SKILL.md: it has no front matter: start it with '---', name, description, '---'; it is left out",
        ],
    );
    // Of home also when the work is elsewhere.
    let host = Host::fixed().with_home(tree.home.path()).with_cwd("/");
    let loaded = config::load(&host, keys::KEYS, &Overrides::default()).unwrap();
    let names: Vec<_> =
        instructions::load(&host, &loaded, None).skills.into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["lint", "zeta"]);
}
