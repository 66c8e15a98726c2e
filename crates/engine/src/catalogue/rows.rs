//! What a server has said of its catalogue.

use std::collections::BTreeMap;
use std::fmt;

use pgweir_sql::{Catalogue, Kind, Loud, Object, ObjectId, Source, Use, When};

use super::Database;

/// What a server has said of the catalogue of a database, to be judged elsewhere: that may take
/// longer than a worker has time.
#[derive(Clone, PartialEq, Eq)]
pub struct CatalogueRows {
    database: Database,
    /// The bodies of DataRows.
    rows: Vec<Box<[u8]>>,
    bytes: usize,
    /// Something in it is too long.
    overlong: bool,
}

/// The kind of a function that calls itself immutable.
const IMMUTABLE: &str = "i";

/// A catalogue takes so many bytes at most, while it is read.
const BYTES: usize = 128 * 1024 * 1024;

impl CatalogueRows {
    pub(super) fn new(database: Database) -> Self {
        Self { database, rows: Vec::new(), bytes: 0, overlong: false }
    }

    /// What a server has said in DataRows with these bodies.
    pub fn of<'r>(database: Database, rows: impl IntoIterator<Item = &'r [u8]>) -> Self {
        let mut all = Self::new(database);
        rows.into_iter().for_each(|row| all.row(Some(row)));
        all
    }

    /// The database that it is of.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// A further row; `None`: one that is too long to be read.
    pub(crate) fn row(&mut self, body: Option<&[u8]>) {
        self.bytes += body.map_or(0, <[u8]>::len);
        match body.filter(|_| self.bytes <= BYTES) {
            Some(body) => self.rows.push(body.into()),
            None => self.overlong = true,
        }
    }

    pub(super) fn is_overlong(&self) -> bool {
        self.overlong
    }

    /// The loud names of the database.
    pub fn loud(&self) -> Loud {
        let mut catalogue = Catalogue::default();
        let mut bodies: BTreeMap<ObjectId, Vec<(usize, String)>> = BTreeMap::new();
        for row in &self.rows {
            match &cells(row).unwrap_or_default()[..] {
                [kind, oid, schema, name, language, part, body] => {
                    let Some(id) = id(kind, oid) else { continue };
                    let pieces = bodies.entry(id).or_default();
                    pieces.push((part.parse().unwrap_or_default(), body.clone()));
                    if pieces.len() == 1 {
                        let is_quiet =
                            id.0 == Kind::Function && is_named(&self.database.quiet, schema, name);
                        let source = Source::Other(language.clone(), String::new());
                        let (name, is_immutable) = (name.clone(), kind == IMMUTABLE);
                        let object = Object { id, name, source, is_quiet, is_immutable };
                        catalogue.objects.push(object);
                    }
                }
                [by_kind, by, of_kind, of, when, through] => {
                    let when = match when.as_str() {
                        "w" => When::Written,
                        "c" => When::Changed,
                        "d" => When::Filled,
                        _ => When::Always,
                    };
                    let (by, of) = (id(by_kind, by), id(of_kind, of));
                    if let (Some(by), Some(of)) = (by, of) {
                        catalogue.uses.push(Use { by, of, when, through: through.clone() });
                    }
                }
                _ => {}
            }
        }
        for object in &mut catalogue.objects {
            let Source::Other(language, _) = &object.source else { continue };
            let mut pieces = bodies.remove(&object.id).unwrap_or_default();
            pieces.sort();
            let body = pieces.into_iter().map(|(_, piece)| piece).collect();
            object.source = source(object.id, language, body);
        }
        catalogue.loud()
    }
}

impl fmt::Debug for CatalogueRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.len();
        f.debug_struct("CatalogueRows")
            .field("database", &self.database)
            .field("rows", &rows)
            .finish_non_exhaustive()
    }
}

/// The cells of a DataRow, none of which is NULL.
fn cells(row: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = row.split_first_chunk()?;
    let mut cells = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
        let (text, behind) = behind.split_at_checked(length)?;
        rest = behind;
        cells.push(String::from_utf8_lossy(text).into_owned());
    }
    Some(cells)
}

fn source(id: ObjectId, language: &str, body: String) -> Source {
    match language {
        "" => Source::None,
        // What PostgreSQL brings along.
        _ if id.1 < 16_384 => Source::Builtin,
        "c" => Source::Native(body),
        "internal" => Source::Alias(body.split_ascii_whitespace().map(str::to_owned).collect()),
        "sql" => Source::Sql(body),
        "plpgsql" => Source::Plpgsql(body),
        other => Source::Other(other.to_owned(), body),
    }
}

/// Whether a list of names, with or without schemas, has this one.
fn is_named(list: &str, schema: &str, name: &str) -> bool {
    list.split(',').map(str::trim).any(|one| match one.split_once('.') {
        Some((its_schema, its_name)) => its_schema == schema && its_name == name,
        None => one == name,
    })
}

fn id(kind: &str, oid: &str) -> Option<ObjectId> {
    let kind = match kind {
        "f" | IMMUTABLE => Kind::Function,
        "r" => Kind::Relation,
        "u" => Kind::Unnamed,
        _ => Kind::Type,
    };
    Some((kind, oid.parse().ok()?))
}
