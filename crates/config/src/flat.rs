//! The flat form of pgcat.toml: that of PgCat before it had pools. It has one user and one
//! database, so its sections are those of one pool under other headers, and a few settings have
//! another place or name. The table of settings says which.

use toml::de::DeTable;

use crate::setting::{Dialect, Section};
use crate::tree::{Child, Entry, Node};
use crate::value::Value;

/// How a file arranges its sections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// `[user]`, `[shards.N]` and `[query_router]` at the top.
    Flat,
    /// `[pools.NAME]`, and in it everything that is of the pool.
    Pools,
}

impl Form {
    /// The form of the file whose top is `table`. One that has pools is not flat, whatever else
    /// is in it.
    pub(crate) fn of(dialect: Dialect, table: &DeTable<'_>) -> Self {
        let flat = ["user", "shards", "query_router"].iter().any(|name| table.contains_key(*name));
        match dialect {
            Dialect::Pgcat if flat && !table.contains_key("pools") => Self::Flat,
            Dialect::Pgcat | Dialect::Own => Self::Pools,
        }
    }
}

/// The tree that the same settings make in a file with pools. The pool has the name of the first
/// shard's database; if that is in error, which has been told, there is none.
pub(crate) fn with_pools(mut top: Node) -> Node {
    let mut root = Node::empty(Section::Root, String::new(), top.line);
    let router = top.children.remove("query_router").into_iter().flatten().next();
    let none = || Node::empty(Section::Pool, "query_router".to_owned(), top.line);
    let mut pool = router.map_or_else(none, |child| child.node);
    for (name, place) in [("users", "user"), ("shards", "shards")] {
        pool.children.insert(name, top.children.remove(place).unwrap_or_default());
    }
    if let Some(general) = top.children.remove("general") {
        root.children.insert("general", general);
    }
    let shard = pool.children("shards").first().map(|child| &child.node);
    let database = shard.and_then(|node| Some((node, node.entries.get("database")?)));
    if let Some((node, Entry { value: Value::Text(name), line })) = database {
        let (name, named_at) = (name.clone(), (*line, node.key("database")));
        root.children.insert("pools", vec![Child { name, named_at, node: pool }]);
    }
    root
}
