//! Opening a store: where it lies, the file with its permissions, the pool, the migrations.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{AnyPool, ConnectOptions, Connection, Executor};

use super::StoreError;

static MIGRATIONS: Migrator = sqlx::migrate!("src/session/migrations");

/// The file below the data folder.
pub const FILE: &str = "sessions.db";
/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT_MS: u32 = 5000;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a store that is busy is asked again: two processes that make one at once get into each other's way, and the
/// second try finds it made.
const OPEN_DEADLINE: Duration = Duration::from_secs(5);
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// Where sessions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Sqlite(PathBuf),
    /// The URL as configured, with its password.
    Postgres(String),
}

/// A setting that names no store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sessions.url: \"{0}\" is no session store: expected \"sqlite\" or postgres://user@host/database")]
pub struct LocationError(String);

impl Location {
    /// Reads `sessions.url`.
    pub fn parse(url: &str, data_dir: &Path) -> Result<Self, LocationError> {
        match url {
            "sqlite" => Ok(Self::Sqlite(data_dir.join(FILE))),
            _ if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Ok(Self::Postgres(url.to_owned()))
            }
            _ => Err(LocationError(without_user_info(url))),
        }
    }

    /// Whether a store is known to be there. A server is asked when it is opened.
    pub fn exists(&self) -> bool {
        match self {
            Self::Sqlite(path) => path.exists(),
            Self::Postgres(_) => true,
        }
    }
}

/// For people: without a password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_user_info(url)),
        }
    }
}

fn without_user_info(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => url.to_owned(),
    }
}

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadWrite,
    /// A file that cannot be written, as it stands; what another process has not merged yet is not seen.
    ReadOnly,
}

/// Opens the store, makes it where it is not there, and brings its tables up to date.
pub(super) async fn open(location: &Location, access: Access) -> Result<AnyPool, StoreError> {
    sqlx::any::install_default_drivers();
    if let (Location::Sqlite(path), Access::ReadWrite) = (location, access) {
        make_file(path).map_err(|error| StoreError::Unusable { location: location.to_string(), why: error })?;
    }
    let deadline = Instant::now() + OPEN_DEADLINE;
    loop {
        match try_open(location, access).await {
            Err(StoreError::Busy { .. }) if Instant::now() < deadline => tokio::time::sleep(OPEN_PAUSE).await,
            tried => return tried,
        }
    }
}

async fn try_open(location: &Location, access: Access) -> Result<AnyPool, StoreError> {
    let failed = |error: &sqlx::Error| classified(location, error);
    let options = options(location, access).map_err(|error| failed(&error))?;
    let is_sqlite = matches!(location, Location::Sqlite(_));
    // A pool tries again until its time is up, whatever the reason: one connection tells at once.
    let mut first = options.connect().await.map_err(|error| failed(&error))?;
    if is_sqlite {
        prepare_sqlite(&mut first, access).await.map_err(|error| failed(&error))?;
    }
    first.close().await.map_err(|error| failed(&error))?;
    let pool = AnyPoolOptions::new()
        .max_connections(2)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if is_sqlite {
                    prepare_sqlite(connection, access).await?;
                }
                Ok(())
            })
        })
        .connect_with(options)
        .await
        .map_err(|error| failed(&error))?;
    match MIGRATIONS.run(&pool).await {
        Ok(()) => Ok(pool),
        Err(error) => {
            pool.close().await;
            Err(migration_error(location, error))
        }
    }
}

async fn prepare_sqlite(connection: &mut sqlx::AnyConnection, access: Access) -> Result<(), sqlx::Error> {
    let timeout = format!("PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}");
    connection.execute(sqlx::AssertSqlSafe(timeout)).await?;
    if access == Access::ReadWrite {
        // A crash of the process loses nothing that was committed; a crash of the machine may lose the last commits,
        // and neither leaves a broken file.
        connection.execute("PRAGMA journal_mode = WAL").await?;
        connection.execute("PRAGMA synchronous = NORMAL").await?;
    }
    connection.execute("PRAGMA foreign_keys = ON").await?;
    Ok(())
}

fn options(location: &Location, access: Access) -> Result<AnyConnectOptions, sqlx::Error> {
    let url = match (location, access) {
        (Location::Postgres(url), _) => url.clone(),
        (Location::Sqlite(path), Access::ReadWrite) => format!("sqlite://{}?mode=rw", encoded(path)),
        (Location::Sqlite(path), Access::ReadOnly) => format!("sqlite://{}?mode=ro&immutable=true", encoded(path)),
    };
    let options: AnyConnectOptions = url.parse()?;
    Ok(options.disable_statement_logging())
}

/// The path as a part of a URL.
fn encoded(path: &Path) -> String {
    let encode = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.to_string_lossy().as_bytes().iter().map(encode).collect()
}

/// The file with its folder, for nobody else to read. SQLite gives its side files the permissions of the file.
fn make_file(path: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(failed)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let permissions = std::fs::metadata(path).map_err(failed)?.permissions();
        if permissions.mode() & 0o077 != 0 {
            // What cannot be changed belongs to somebody else, whose business it is.
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600));
        }
    }
    Ok(())
}

fn migration_error(location: &Location, error: MigrateError) -> StoreError {
    let unusable = |why: String| StoreError::Unusable { location: location.to_string(), why };
    match error {
        MigrateError::VersionMissing(version) => {
            unusable(format!("it was written by a newer version of oncall (table version {version}): update oncall"))
        }
        MigrateError::VersionMismatch(version) => {
            unusable(format!("its table version {version} is not the one of this oncall"))
        }
        MigrateError::Execute(error) => classified(location, &error),
        // Somebody else makes the same tables now, or a migration is wrong: the next try tells.
        MigrateError::ExecuteMigration(error, _) => match classified(location, &error) {
            StoreError::Unusable { location, why } if does_not_fit(&error) => StoreError::Busy { location, why },
            error => error,
        },
        error => StoreError::Busy { location: location.to_string(), why: error.to_string() },
    }
}

/// Whether an error passes by waiting.
pub(super) fn classified(location: &Location, error: &sqlx::Error) -> StoreError {
    let (name, why) = (location.to_string(), crate::domain::text::clean_line(&said(error), 300));
    let passes = match error {
        sqlx::Error::Database(inner) => {
            let code = inner.code().unwrap_or_default();
            match location {
                Location::Sqlite(_) => sqlite_passes(&code),
                Location::Postgres(_) => postgres_passes(&code) || inner.is_unique_violation(),
            }
        }
        sqlx::Error::PoolTimedOut | sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => true,
        _ => false,
    };
    match passes {
        true => StoreError::Busy { location: name, why },
        false => StoreError::Unusable { location: name, why },
    }
}

/// Whether a statement of a migration fails because what it makes is there: `SQLITE_ERROR` or `SQLITE_CONSTRAINT`.
/// Postgres makes its tables under a lock.
fn does_not_fit(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()).and_then(|code| code.parse::<i64>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 1 | 19))
}

fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(inner) => inner.message().to_owned(),
        error => error.to_string(),
    }
}

/// `SQLITE_BUSY` and `SQLITE_LOCKED`, whatever their extended codes say.
fn sqlite_passes(code: &str) -> bool {
    code.parse::<i64>().is_ok_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Connection lost, conflict of transactions, too many connections, not yet or no longer accepting any.
fn postgres_passes(code: &str) -> bool {
    ["08", "40", "53", "55", "57"].iter().any(|class| code.starts_with(class))
        // Two that create the same table at once.
        || matches!(code, "42P07" | "42710" | "23505")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_sqlite_or_postgres_and_shows_no_password() {
        let parse = |url| Location::parse(url, Path::new("/d"));
        assert_eq!(parse("sqlite"), Ok(Location::Sqlite("/d/sessions.db".into())));
        let postgres = parse("postgres://me:pw@db:5432/oncall").unwrap();
        assert_eq!(postgres, Location::Postgres("postgres://me:pw@db:5432/oncall".into()));
        assert_eq!(postgres.to_string(), "postgres://***@db:5432/oncall");
        assert_eq!(
            parse("mysql://me:pw@db/x").unwrap_err().to_string(),
            "sessions.url: \"mysql://***@db/x\" is no session store: expected \"sqlite\" or postgres://user@host/database"
        );
    }

    #[test]
    fn locked_and_lost_pass_and_read_only_and_damaged_do_not() {
        assert_eq!(
            ["5", "6", "517", "8", "11", "26", "14"].map(sqlite_passes),
            [true, true, true, false, false, false, false]
        );
        assert_eq!(
            ["08006", "57P03", "42P07", "28P01", "42501"].map(postgres_passes),
            [true, true, true, false, false]
        );
    }

    #[test]
    fn a_path_of_any_characters_is_a_part_of_a_url() {
        assert_eq!(encoded(Path::new("/a b/值?#%.db")), "/a%20b/%E5%80%BC%3F%23%25.db");
    }
}
