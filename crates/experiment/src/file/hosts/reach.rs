//! What opens the pipe to a host: `ssh`, `exec`, and presets of engines that start programs
//! elsewhere. A preset of several nodes declares as many hosts.

use crate::file::names::MOST_NAMES;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::units::shown;
use readings::{ContainerSource, HostSpec, Kubernetes, Member, Nomad, Podman, Reach, Slurm};

/// The keys that open a pipe; a host has at most one.
pub(crate) const KEYS: [&str; 6] = ["ssh", "exec", "podman", "slurm", "kubernetes", "nomad"];

/// Whether a host's address comes from its engine, unless the file gives one.
pub(crate) fn asks_engine(host: &HostSpec) -> bool {
    !matches!(host.reach, None | Some(Reach::Ssh(_) | Reach::Exec(_)))
}

/// The hosts that a table declares: itself, or `NAME1`, `NAME2` and so on.
pub(crate) fn hosts(reader: &mut Reader, table: &Section<'_>, host: HostSpec) -> Vec<HostSpec> {
    let given: Vec<_> = KEYS.iter().filter_map(|key| table.entry(key)).collect();
    if let [_, (second, path), ..] = given.as_slice() {
        reader.advise(
            second.node.place,
            format!("`{path}`: the host is reached in two ways"),
            "the second",
            format!("keep one of {}", KEYS.join(", ")),
        );
    }
    let name = host.name.clone();
    let (reaches, is_numbered) = match given.first() {
        None => return vec![host],
        Some((first, _)) => match first.name.as_str() {
            "ssh" => (one(ssh(reader, table).map(Reach::Ssh)), false),
            "exec" => (one(exec(reader, table).map(Reach::Exec)), false),
            "podman" => (one(podman(reader, table).map(Reach::Podman)), false),
            "slurm" => members(slurm(reader, table), &name, Reach::Slurm),
            "kubernetes" => members(kubernetes(reader, table), &name, Reach::Kubernetes),
            _ => members(nomad(reader, table), &name, Reach::Nomad),
        },
    };
    if reaches.is_empty() {
        // Already reported.
        return vec![host];
    }
    let numbered = reaches.into_iter().zip(1..);
    let hosts = numbered.map(|(reach, number)| HostSpec {
        name: match is_numbered {
            true => format!("{name}{number}"),
            false => name.clone(),
        },
        reach: Some(reach),
        ..host.clone()
    });
    hosts.collect()
}

/// `ssh`: the destination for the system's `ssh`.
fn ssh(reader: &mut Reader, host: &Section<'_>) -> Option<String> {
    let ssh = host.text(reader, "ssh")?;
    // A leading dash would make it an option; a destination has no space.
    let good = |c: char| c.is_ascii_graphic() && !matches!(c, '\'' | '"' | '`' | '\\');
    if !ssh.is_empty() && !ssh.starts_with('-') && ssh.chars().all(good) {
        return Some(ssh);
    }
    let (entry, path) = host.entry("ssh")?;
    reader.advise(
        entry.node.place,
        format!("`{path}` is not an ssh destination: {}", shown(&ssh)),
        "expected \"user@machine\", or a name of ~/.ssh/config",
        "set port, keys and jump hosts in ~/.ssh/config, under a name for the host",
    );
    None
}

/// Reports hosts of a preset that have the names of others.
pub(crate) fn check_names(reader: &mut Reader, top: &Section<'_>, hosts: &[HostSpec]) {
    for (at, host) in hosts.iter().enumerate() {
        let Some(other) = hosts[..at].iter().find(|other| other.name == host.name) else {
            continue;
        };
        let place = top.place_of(&["hosts", host.declared_name()]);
        reader.report(Problem::at(
            place.unwrap_or_default(),
            format!("two hosts are called `{}`", host.name),
            format!(
                "`{}` has several hosts, and this is the name of one",
                other.declared_name()
            ),
        ));
    }
}

fn one(reach: Option<Reach>) -> Vec<Reach> {
    reach.into_iter().collect()
}

/// A preset, and of how many hosts.
type Preset<T> = Option<(T, Option<u32>)>;

fn members<T: Clone>(
    preset: Preset<T>,
    name: &str,
    reach: impl Fn(Member<T>) -> Reach,
) -> (Vec<Reach>, bool) {
    let Some((spec, count)) = preset else {
        return (Vec::new(), false);
    };
    let all = (1..=count.unwrap_or(1)).map(|number| {
        reach(Member {
            preset: name.to_owned(),
            number,
            count,
            spec: spec.clone(),
        })
    });
    (all.collect(), count.is_some())
}

fn exec(reader: &mut Reader, table: &Section<'_>) -> Option<Vec<String>> {
    let (entry, path) = table.entry("exec")?;
    let words: Vec<String> = table
        .texts(reader, "exec")?
        .into_iter()
        .map(|(word, _)| word)
        .collect();
    if words.first().is_some_and(|word| !word.is_empty()) {
        return Some(words);
    }
    reader.advise(
        entry.node.place,
        format!("`{path}` names no program"),
        "expected a command, such as [\"kubectl\", \"exec\", \"-i\", \"pod-1\", \"--\", \
             \"weigh\", \"agent\"]",
        "its standard input and output have to be those of a `weigh agent`",
    );
    None
}

fn options(reader: &mut Reader, preset: &Section<'_>) -> Vec<String> {
    let words = preset.texts(reader, "options").unwrap_or_default();
    words.into_iter().map(|(word, _)| word).collect()
}

fn count(reader: &mut Reader, preset: &Section<'_>, key: &str) -> Option<u32> {
    let count = preset.integer(reader, key, 1..=MOST_NAMES as i64)?;
    u32::try_from(count).ok()
}

/// A name that an engine takes as an argument, which must not be an option.
fn argument(reader: &mut Reader, preset: &Section<'_>, key: &str) -> Option<String> {
    let text = preset.text(reader, key)?;
    if !text.is_empty() && !text.starts_with('-') && !text.contains(char::is_whitespace) {
        return Some(text);
    }
    reader.report(Problem::at(
        preset.value_place(key),
        format!("`{}` is not a name", preset.name_of(key)),
        "expected a name without spaces that does not begin with a dash",
    ));
    None
}

fn missing(reader: &mut Reader, preset: &Section<'_>, message: &str, expected: &str) {
    let message = format!("`{}` {message}", preset.path);
    reader.report(Problem::at(preset.place, message, expected.to_owned()));
}

fn podman(reader: &mut Reader, table: &Section<'_>) -> Option<Podman> {
    let preset = table.section(reader, "podman")?;
    preset.only(reader, &["container", "image", "options"]);
    let container = argument(reader, &preset, "container");
    let image = argument(reader, &preset, "image");
    let options = options(reader, &preset);
    let source = match (container, image) {
        (Some(container), None) => ContainerSource::Container(container),
        (None, Some(image)) => ContainerSource::Image(image),
        _ => {
            let expected = "expected container = \"…\" for one that runs, or image = \"…\"";
            missing(
                reader,
                &preset,
                "needs either a container or an image",
                expected,
            );
            return None;
        }
    };
    Some(Podman { source, options })
}

fn slurm(reader: &mut Reader, table: &Section<'_>) -> Preset<Slurm> {
    let preset = table.section(reader, "slurm")?;
    preset.only(reader, &["nodes", "partition", "options"]);
    let spec = Slurm {
        partition: argument(reader, &preset, "partition"),
        options: options(reader, &preset),
    };
    Some((spec, count(reader, &preset, "nodes")))
}

fn kubernetes(reader: &mut Reader, table: &Section<'_>) -> Preset<Kubernetes> {
    let preset = table.section(reader, "kubernetes")?;
    preset.only(reader, &["image", "namespace", "replicas", "options"]);
    let Some(image) = argument(reader, &preset, "image") else {
        missing(reader, &preset, "needs an image", "expected image = \"…\"");
        return None;
    };
    let spec = Kubernetes {
        image,
        namespace: argument(reader, &preset, "namespace"),
        options: options(reader, &preset),
    };
    Some((spec, count(reader, &preset, "replicas")))
}

fn nomad(reader: &mut Reader, table: &Section<'_>) -> Preset<Nomad> {
    let preset = table.section(reader, "nomad")?;
    preset.only(reader, &["job", "task", "namespace", "allocations"]);
    let Some(job) = argument(reader, &preset, "job") else {
        missing(
            reader,
            &preset,
            "needs a job",
            "expected job = \"…\", one that runs",
        );
        return None;
    };
    let spec = Nomad {
        job,
        task: argument(reader, &preset, "task"),
        namespace: argument(reader, &preset, "namespace"),
    };
    Some((spec, count(reader, &preset, "allocations")))
}
