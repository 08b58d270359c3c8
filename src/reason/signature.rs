//! What is known of each kind of root cause: signature files, compiled in, parsed and checked once.
//!
//! The files in `signatures/` are written for people on call; their README explains every key.

use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::domain::lang::is_han;
use crate::domain::{Category, ChangeKind, Lang, Symptom};

// A changed file is noticed by the build; one that was added or removed only once this file is touched.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/reason/signatures");

/// A text in both languages.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bilingual {
    pub en: String,
    pub zh: String,
}

impl Bilingual {
    pub fn get(&self, lang: Lang) -> &str {
        lang.pick(&self.en, &self.zh)
    }
}

/// Who holds the cause that a clue shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// Whoever logged it, whose series moved, whose pod is in that state.
    #[default]
    Here,
    /// The service that the text names, else the only callee.
    Callee,
    /// The service that the text names, else as `here`.
    Named,
    /// As `callee`, among databases.
    Database,
    /// As `callee`, among caches.
    Cache,
}

/// Where a cause lies when several services show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the deepest service; what a host shows belongs to the service on it.
    #[default]
    Callee,
    /// In the one that calls: it holds the credential or sends too much.
    Caller,
    /// In the host or the shared infrastructure, when one shows it.
    Host,
}

/// How a series has to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    Up,
    Down,
    /// Grows steadily.
    Ramp,
    /// Holds at a ceiling.
    Saturated,
    /// Ends.
    Absent,
    /// Falls to nothing.
    Zero,
    /// Stays as it was.
    Flat,
    /// Whatever its course: `above` or `below` decide.
    Any,
}

/// Regular expressions, of which one has to match a text in lower case.
///
/// One expression each, rather than one of all alternatives: so each has literals that rule most texts out at once.
/// Bytes instead of characters keep bounded repetitions small.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct Patterns(Vec<Regex>);

/// Bytes of a Han character in UTF-8.
const HAN_BYTES: usize = 3;

impl TryFrom<Vec<String>> for Patterns {
    type Error = regex::Error;

    fn try_from(list: Vec<String>) -> Result<Self, regex::Error> {
        let compile = |pattern: &String| {
            RegexBuilder::new(&widened(&lower_cased(pattern))).unicode(false).multi_line(true).build()
        };
        list.iter().map(compile).collect::<Result<Vec<Regex>, _>>().map(Self)
    }
}

impl Patterns {
    /// Whether one of them matches; the text has to be in lower case.
    pub fn is_match(&self, lower: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(lower.as_bytes()))
    }
}

/// A pattern for lower-case texts: its letters in lower case, but for those that follow a backslash (`\S`).
fn lower_cased(pattern: &str) -> String {
    let mut escaped = false;
    let lower = |c: char| {
        let kept = if escaped { c } else { c.to_ascii_lowercase() };
        escaped = c == '\\' && !escaped;
        kept
    };
    pattern.chars().map(lower).collect()
}

/// Distances in a Chinese pattern (`.{0,10}`) count characters, and the engine counts bytes.
fn widened(pattern: &str) -> String {
    static DISTANCE: LazyLock<regex::Regex> = LazyLock::new(|| {
        // A constant that the tests compile.
        regex::Regex::new(r"\{0,(\d{1,3})\}").expect("constant")
    });
    if !pattern.chars().any(is_han) {
        return pattern.to_string();
    }
    let wider = |found: &regex::Captures<'_>| {
        // At most three digits, which the expression above ensures.
        let most: usize = found[1].parse().unwrap_or_default();
        format!("{{0,{}}}", most * HAN_BYTES)
    };
    DISTANCE.replace_all(pattern, wider).into_owned()
}

/// Evidence in a text: what was logged, or the state of a workload as a line such as `pod ... waiting: CrashLoopBackOff`
/// or `event Warning FailedScheduling ...`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextClue {
    /// Clues of one group show the same thing; without a name it is the kind of evidence.
    pub group: Option<String>,
    /// Log odds that a burst of it adds.
    pub weight: f64,
    #[serde(default)]
    pub holder: Holder,
    pub patterns: Patterns,
    /// A text that matches these is about something else.
    pub except: Option<Patterns>,
}

impl TextClue {
    /// Whether a text in lower case shows it.
    pub fn is_shown_by(&self, lower: &str) -> bool {
        self.patterns.is_match(lower) && !self.except.as_ref().is_some_and(|except| except.is_match(lower))
    }
}

/// Evidence in metrics.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricClue {
    pub group: Option<String>,
    pub weight: f64,
    #[serde(default)]
    pub holder: Holder,
    /// Matched against the expression and labels.
    pub names: Patterns,
    pub except: Option<Patterns>,
    pub moves: Vec<Move>,
    /// The extreme value has to be at least (at most) this.
    pub above: Option<f64>,
    pub below: Option<f64>,
}

/// Evidence in what was changed before the symptom.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeClue {
    pub group: Option<String>,
    pub weight: f64,
    pub kinds: Vec<ChangeKind>,
    /// The summary has to match, where given.
    pub patterns: Option<Patterns>,
}

/// A finding that a cause would have left and that is not there, or a sign of health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// No container of the service restarted in the time looked at.
    NoRestart,
    /// All wanted instances are ready.
    AllReady,
    /// Every node that was seen is ready.
    NodesReady,
    /// Nothing of the service was changed shortly before the symptom.
    NoChange,
    /// The service's logs were read, and none of the clues is in them.
    NoLog,
    /// The service itself shows errors or restarts: it is not merely slow, or not merely watched badly.
    OtherTrouble,
}

/// Evidence against.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// Log odds that it takes away.
    pub weight: f64,
    pub when: Option<Absence>,
    /// Findings that speak for something else.
    pub logs: Option<Patterns>,
    pub status: Option<Patterns>,
    pub names: Option<Patterns>,
    #[serde(default)]
    pub moves: Vec<Move>,
    pub above: Option<f64>,
    pub below: Option<f64>,
    /// Why it speaks against.
    pub text: Bilingual,
}

/// A cause that is easily taken for this one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    pub category: Category,
    /// What tells them apart.
    pub text: Bilingual,
}

/// Something to ask when this cause is suspected.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub en: String,
    pub zh: String,
    /// Expressions; `{service}` stands for the name of the service.
    #[serde(default)]
    pub metrics: Vec<String>,
}

/// What a remedy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemedyKind {
    /// Stops the pain now.
    Mitigate,
    /// Only reads.
    Verify,
    /// Removes the cause.
    Fix,
}

/// Something to do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    pub kind: RemedyKind,
    pub en: String,
    pub zh: String,
    /// `{service}` and `{namespace}` are filled in, quoted for a shell.
    pub command: Option<String>,
}

/// All that is known of one kind of root cause.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    pub category: Category,
    /// Log odds before any evidence.
    pub prior: f64,
    /// Kinds of alerts that it usually raises.
    #[serde(default)]
    pub symptoms: Vec<Symptom>,
    #[serde(default)]
    pub lies: Place,
    /// Words in the alert itself that point to it.
    pub alert: Option<Patterns>,
    pub explanation: Bilingual,
    /// Causes that are merely consequences of this one when it is there.
    #[serde(default)]
    pub explains: Vec<Category>,
    #[serde(default)]
    pub logs: Vec<TextClue>,
    #[serde(default)]
    pub metrics: Vec<MetricClue>,
    #[serde(default)]
    pub status: Vec<TextClue>,
    #[serde(default)]
    pub changes: Vec<ChangeClue>,
    #[serde(default)]
    pub against: Vec<Against>,
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    #[serde(default)]
    pub questions: Vec<Question>,
    pub remedies: Vec<Remedy>,
}

/// A signature file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("signature file {file}: {message}")]
pub struct SignatureError {
    file: String,
    message: String,
}

/// All signatures, in the order of [`Category::ALL`].
pub fn all() -> &'static [Signature] {
    // The files are compiled in, and a test loads every one of them.
    static ALL: LazyLock<Vec<Signature>> =
        LazyLock::new(|| load().expect("the compiled-in signatures are checked by a test"));
    &ALL
}

/// The signature of a category; `unknown` has none.
pub fn of(category: Category) -> Option<&'static Signature> {
    all().iter().find(|signature| signature.category == category)
}

fn load() -> Result<Vec<Signature>, SignatureError> {
    let mut signatures = Vec::new();
    for file in FILES.files().filter(|file| file.path().extension().is_some_and(|ending| ending == "toml")) {
        let name = file.path().display().to_string();
        let fail = |message: String| SignatureError { file: name.clone(), message };
        let text = file.contents_utf8().ok_or_else(|| fail("is not UTF-8".into()))?;
        let signature: Signature = toml::from_str(text).map_err(|error| fail(error.to_string()))?;
        check(&signature, &name).map_err(fail)?;
        signatures.push(signature);
    }
    signatures.sort_by_key(|signature| signature.category);
    Ok(signatures)
}

fn check(signature: &Signature, file: &str) -> Result<(), String> {
    let id = signature.category.id();
    if file != format!("{id}.toml") {
        return Err(format!("is about `{id}`: expected the file name {id}.toml"));
    }
    if signature.logs.is_empty()
        && signature.metrics.is_empty()
        && signature.status.is_empty()
        && signature.changes.is_empty()
    {
        return Err("has no evidence: add [[logs]], [[metrics]], [[status]] or [[changes]]".into());
    }
    for kind in [RemedyKind::Verify, RemedyKind::Fix] {
        if !signature.remedies.iter().any(|remedy| remedy.kind == kind) {
            return Err(format!("has no remedy of the kind {kind:?}: add [[remedies]]"));
        }
    }
    let weights = signature.logs.iter().map(|clue| clue.weight);
    let weights = weights.chain(signature.metrics.iter().map(|clue| clue.weight));
    let weights = weights.chain(signature.status.iter().map(|clue| clue.weight));
    let mut weights = weights.chain(signature.against.iter().map(|against| against.weight));
    match weights.find(|weight| !(0.0..=6.0).contains(weight)) {
        Some(weight) => Err(format!("has the weight {weight}: expected log odds from 0 to 6")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_file_loads_and_every_category_has_one() {
        let loaded: Vec<Category> = load().unwrap().iter().map(|signature| signature.category).collect();
        let wanted: Vec<Category> = Category::ALL.iter().copied().filter(|one| *one != Category::Unknown).collect();
        assert_eq!(loaded, wanted);
    }

    #[test]
    fn patterns_ignore_case_and_count_han_characters() {
        let patterns = Patterns::try_from(vec![r"KeyError: \S+".to_string(), "内存.{0,2}泄漏".to_string()]).unwrap();
        assert!(patterns.is_match("keyerror: x"));
        assert!(patterns.is_match("内存持续泄漏"));
        assert!(!patterns.is_match("内存没有持续泄漏"));
    }

    #[test]
    fn a_signature_names_only_others_as_neighbours_and_consequences() {
        for signature in all() {
            let named = signature
                .neighbours
                .iter()
                .map(|neighbour| neighbour.category)
                .chain(signature.explains.iter().copied());
            assert!(named.into_iter().all(|category| category != signature.category), "{}", signature.category.id());
            assert!(!signature.neighbours.is_empty(), "{}", signature.category.id());
        }
    }
}
