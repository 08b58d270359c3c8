//! The knowledge base as a whole, with an embedder that knows nothing but which words a text has.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

use super::*;

/// Words hashed into a few dimensions: texts that share words are near to each other.
struct WordEmbedder {
    id: &'static str,
    is_broken: AtomicBool,
}

const DIMENSIONS: usize = 32;

#[async_trait]
impl Embedder for WordEmbedder {
    fn id(&self) -> &str {
        self.id
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn match_floor(&self) -> MatchFloor {
        MatchFloor { with_terms: 0.18, without_terms: 0.24 }
    }

    async fn embed(&self, _: TextRole, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(EmbedError::Model("out of order".to_string()));
        }
        Ok(texts.iter().map(|text| word_vector(text)).collect())
    }
}

fn word_vector(text: &str) -> Vec<f32> {
    let mut vector = [0.01; DIMENSIONS];
    for term in terms::terms(text) {
        let slot = term.bytes().fold(7usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte)) % DIMENSIONS;
        vector[slot] += 1.0;
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter().map(|value| value / length).collect()
}

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(name, text)| world.write(name, text));
        world
    }

    fn docs(&self) -> PathBuf {
        self.folder.path().join("docs")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.docs().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn settings(&self) -> KnowledgeSettings {
        KnowledgeSettings {
            paths: vec![self.docs()],
            store: self.folder.path().join("store").display().to_string(),
            top_k: 3,
            chunk: ChunkLimits::default(),
            index: VectorIndex::default(),
        }
    }

    async fn open_with(&self, id: &'static str, use_as: Use) -> Result<(Knowledge, Arc<WordEmbedder>), KnowledgeError> {
        let embedder = Arc::new(WordEmbedder { id, is_broken: AtomicBool::new(false) });
        Ok((Knowledge::open(self.settings(), embedder.clone(), use_as).await?, embedder))
    }

    async fn open(&self) -> Knowledge {
        self.open_with("words/1", Use::AsItIs).await.unwrap().0
    }

    async fn index(&self, knowledge: &Knowledge, mode: IndexMode) -> IndexReport {
        knowledge.index(&Origin::Paths(vec![self.docs()]), mode, &mut |_| {}).await.unwrap()
    }
}

/// Added, replaced, unchanged, pruned.
fn counts(report: &IndexReport) -> [usize; 4] {
    [report.added, report.replaced, report.unchanged, report.pruned]
}

async fn sources(knowledge: &Knowledge, query: &str) -> Vec<String> {
    knowledge.search(query, 10).await.unwrap().into_iter().map(|hit| hit.source).collect()
}

#[tokio::test]
async fn only_what_was_changed_is_indexed_again_and_nothing_is_there_twice() {
    let world =
        World::new(&[("don't.md", "# Disk\n\nalpha"), ("50%.md", "beta"), ("a\\b.md", "gamma"), ("c.txt", "delta")]);
    let knowledge = world.open().await;
    assert_eq!(counts(&world.index(&knowledge, IndexMode::Update).await), [4, 0, 0, 0]);
    assert_eq!(counts(&world.index(&knowledge, IndexMode::Update).await), [0, 0, 4, 0]);
    for name in ["don't.md", "50%.md", "a\\b.md"] {
        // Each with words of its own: passages that read alike are shown once.
        world.write(name, &format!("# New\n\nepsilon {name}\n\n## Second\n\nzeta"));
    }
    assert_eq!(counts(&world.index(&knowledge, IndexMode::Update).await), [0, 3, 1, 0]);
    assert_eq!(knowledge.passages().await.unwrap(), 7);
    assert_eq!(sources(&knowledge, "alpha").await, Vec::<String>::new());
    let mut found = sources(&knowledge, "epsilon").await;
    found.sort();
    assert_eq!(found, ["50%.md", "a\\b.md", "don't.md"]);
}

#[tokio::test]
async fn a_stopped_run_stores_what_is_embedded_and_the_next_one_continues() {
    let names: Vec<String> = (0..150).map(|n| format!("{n:03}.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "alpha")).collect();
    let world = World::new(&files);
    let knowledge = world.open().await;
    let stop = knowledge.stop().clone();
    let mut stop_at_the_second_part = |event: IndexEvent| {
        if matches!(event, IndexEvent::Embedded { chunks, .. } if chunks > 64) {
            stop.cancel();
        }
    };
    let origin = Origin::Paths(vec![world.docs()]);
    let report = knowledge.index(&origin, IndexMode::Update, &mut stop_at_the_second_part).await.unwrap();
    assert_eq!((counts(&report), report.interrupted), ([128, 0, 0, 0], true));
    assert_eq!((knowledge.documents().await.unwrap(), knowledge.passages().await.unwrap()), (128, 128));
    let knowledge = world.open().await;
    let report = world.index(&knowledge, IndexMode::Update).await;
    assert_eq!((counts(&report), report.interrupted), ([22, 0, 128, 0], false));
}

#[tokio::test]
async fn a_stopped_rebuild_leaves_the_old_store() {
    let world = World::new(&[("a.md", "alpha"), ("b.md", "beta")]);
    let knowledge = world.open().await;
    world.index(&knowledge, IndexMode::Update).await;
    fs::remove_file(world.docs().join("a.md")).unwrap();
    knowledge.stop().cancel();
    let report = world.index(&knowledge, IndexMode::Rebuild).await;
    assert_eq!((counts(&report), report.interrupted), ([0, 0, 0, 0], true));
    assert_eq!(world.open().await.documents().await.unwrap(), 2);
}

#[tokio::test]
async fn what_has_vanished_goes_on_request_only() {
    let world = World::new(&[("a.md", "alpha"), ("b.md", "beta")]);
    let knowledge = world.open().await;
    world.index(&knowledge, IndexMode::Update).await;
    fs::remove_file(world.docs().join("a.md")).unwrap();
    assert_eq!(counts(&world.index(&knowledge, IndexMode::Update).await), [0, 0, 1, 0]);
    assert_eq!(knowledge.passages().await.unwrap(), 2);
    assert_eq!(counts(&world.index(&knowledge, IndexMode::Prune).await), [0, 0, 1, 1]);
    assert_eq!(knowledge.passages().await.unwrap(), 1);
}

#[tokio::test]
async fn a_document_that_has_lost_its_text_has_no_passages_any_more() {
    let world = World::new(&[("a.md", "alpha"), ("b.md", "beta")]);
    let knowledge = world.open().await;
    world.index(&knowledge, IndexMode::Update).await;
    world.write("a.md", "  \n");
    let report = world.index(&knowledge, IndexMode::Update).await;
    assert_eq!(report.skipped, [Trouble { path: "a.md".into(), why: "no text in it".into() }]);
    assert_eq!(knowledge.passages().await.unwrap(), 1);
}

#[tokio::test]
async fn a_store_of_another_embedder_asks_for_a_rebuild() {
    let world = World::new(&[("a.md", "alpha")]);
    world.index(&world.open().await, IndexMode::Update).await;
    let error = world.open_with("words/2", Use::AsItIs).await.err().unwrap().to_string();
    assert!(error.ends_with("the present one is words/2: run `oncall index --rebuild`"), "{error}");
    let (knowledge, _) = world.open_with("words/2", Use::Rebuild).await.unwrap();
    assert_eq!(counts(&world.index(&knowledge, IndexMode::Rebuild).await), [1, 0, 0, 0]);
    let (knowledge, _) = world.open_with("words/2", Use::AsItIs).await.unwrap();
    assert_eq!(sources(&knowledge, "alpha").await, ["a.md"]);
}

#[tokio::test]
async fn a_rebuild_that_fails_leaves_the_old_store() {
    let world = World::new(&[("a.md", "alpha")]);
    let (knowledge, embedder) = world.open_with("words/1", Use::AsItIs).await.unwrap();
    world.index(&knowledge, IndexMode::Update).await;
    world.write("b.md", "beta");
    embedder.is_broken.store(true, Ordering::Relaxed);
    let origin = Origin::Paths(vec![world.docs()]);
    assert!(knowledge.index(&origin, IndexMode::Rebuild, &mut |_| {}).await.is_err());
    embedder.is_broken.store(false, Ordering::Relaxed);
    assert_eq!(sources(&world.open().await, "alpha").await, ["a.md"]);
}

#[tokio::test]
async fn a_rebuild_from_nothing_destroys_nothing() {
    let world = World::new(&[("a.md", "alpha")]);
    let knowledge = world.open().await;
    world.index(&knowledge, IndexMode::Update).await;
    let missing = Origin::Paths(vec![world.docs().join("missing")]);
    let report = knowledge.index(&missing, IndexMode::Rebuild, &mut |_| {}).await.unwrap();
    assert_eq!((report.failed.len(), knowledge.passages().await.unwrap()), (1, 1));
}

#[tokio::test]
async fn words_of_two_chinese_characters_are_found() {
    let world =
        World::new(&[("m.md", "# 节点\n\n节点内存不足时先看缓存。"), ("d.md", "# 主机\n\n主机磁盘写满后清理日志。")]);
    let knowledge = world.open().await;
    world.index(&knowledge, IndexMode::Update).await;
    for (word, source) in [("内存", "m.md"), ("磁盘", "d.md")] {
        let found = knowledge.store.matching(word, 10).await.unwrap();
        let sources: Vec<_> = found.iter().map(|candidate| candidate.chunk.source.as_str()).collect();
        assert_eq!(sources, [source], "{word}");
    }
}

#[tokio::test]
async fn an_alert_finds_the_page_of_its_name() {
    let world = World::new(&[
        ("a.md", "# KubePodCrashLooping\n\nLook at the logs of the container."),
        ("b.md", "# Pods\n\nA pod that is crash looping is restarted by the kubelet, crash after crash."),
    ]);
    let knowledge = world.open().await;
    world.index(&knowledge, IndexMode::Update).await;
    let hits = knowledge.search("KubePodCrashLooping shop-prod/checkout", 3).await.unwrap();
    assert_eq!((hits[0].source.as_str(), hits[0].via.last().map(String::as_str)), ("a.md", Some("identifier")));
    assert_eq!(sources(&knowledge, "pod is crash looping").await.len(), 2);
}

#[tokio::test]
async fn queries_without_a_word_find_nothing() {
    let world = World::new(&[("a.md", "alpha")]);
    let knowledge = world.open().await;
    assert_eq!(sources(&knowledge, "alpha").await, Vec::<String>::new());
    world.index(&knowledge, IndexMode::Update).await;
    for query in ["", "  ", "\u{1b}[31m", "\"(*"] {
        assert_eq!(sources(&knowledge, query).await, Vec::<String>::new(), "{query:?}");
    }
}

#[tokio::test]
async fn a_refresh_takes_in_what_was_changed_of_anything_stored() {
    let world = World::new(&[("a.md", "alpha")]);
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("b.md");
    fs::write(&other, "beta").unwrap();
    let knowledge = world.open().await;
    knowledge.index(&Origin::Paths(vec![other.clone()]), IndexMode::Update, &mut |_| {}).await.unwrap();
    fs::write(&other, "gamma").unwrap();
    let report = knowledge.refresh(&mut |_| {}).await.unwrap().unwrap();
    assert_eq!(counts(&report), [1, 1, 0, 0]);
    assert_eq!(sources(&knowledge, "gamma").await, ["b.md"]);
}

#[cfg(unix)]
#[tokio::test]
async fn files_of_the_store_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(&[("a.md", "alpha")]);
    world.index(&world.open().await, IndexMode::Update).await;
    fn check(path: &Path) {
        let found = fs::metadata(path).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, if found.is_dir() { 0o700 } else { 0o600 }, "{path:?}");
        if found.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| check(&entry.unwrap().path()));
        }
    }
    check(&world.folder.path().join("store"));
}

fn known(session_id: &str, symptom: &str, cause: &str) -> KnownIncident {
    let precedent = Precedent {
        session_id: session_id.into(),
        at: "2026-03-04T06:30:00Z".parse().unwrap(),
        alert: symptom.into(),
        fingerprint: format!("fingerprint of {session_id}"),
        service: Some("cart".into()),
        category: None,
        refuted: None,
        cause_service: None,
        cause: Some(cause.into()),
        judgement: Some(crate::domain::Judgement::Right),
        corrected: false,
        note: None,
        relied_on: vec!["oom.md".into()],
        matched: crate::domain::Matched::Fingerprint,
        similarity: None,
    };
    KnownIncident { symptom: symptom.into(), precedent }
}

#[tokio::test]
async fn an_incident_is_found_by_an_alert_that_reads_alike_until_it_is_forgotten() {
    let world = World::new(&[]);
    let knowledge = world.open().await;
    let causes = async |knowledge: &Knowledge, text: &str| -> Vec<String> {
        knowledge.alike(text, 3).await.unwrap().into_iter().filter_map(|one| one.cause).collect()
    };
    assert_eq!(causes(&knowledge, "cart errors rising").await, [""; 0]);
    knowledge.remember(&known("a", "cart errors rising fast", "the pool was small")).await.unwrap();
    knowledge.remember(&known("b", "node disk latency", "a bad disk")).await.unwrap();
    assert_eq!(causes(&knowledge, "cart errors rising").await, ["the pool was small"]);
    knowledge.remember(&known("a", "cart errors rising fast", "the pool leaked")).await.unwrap();
    assert_eq!(causes(&knowledge, "cart errors rising").await, ["the pool leaked"]);
    // Another embedder measures anew what is there.
    let (other, _) = world.open_with("words/2", Use::Rebuild).await.unwrap();
    assert_eq!(causes(&other, "disk latency of a node").await, ["a bad disk"]);
    other.forget("b").await.unwrap();
    other.forget("never there").await.unwrap();
    assert_eq!(
        causes(&world.open_with("words/2", Use::Rebuild).await.unwrap().0, "disk latency of a node").await,
        [""; 0]
    );
}
