//! What holds, and why.

use std::fmt;

use crate::demand::Limit;
use crate::flat::Form;
use crate::scope::Scope;
use crate::setting::{Changes, Dialect, Effect, Kind, Section, Setting};
use crate::tree::{Child, Node, Tree};
use crate::types::{AuthMethod, Config, General, User};
use crate::value::{SECRET, Value};

/// One value that holds in one section. Prints without its origin, and without a secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Explained {
    /// The setting with its sections as the file has them, such as `pools.app.users.0.pool_size`.
    pub key: String,
    /// The value as a file would write it, or in parentheses what stands for it; `None` where there
    /// is none.
    pub value: Option<String>,
    /// The line of the file that says so, in this section or one around it; `None` for a default.
    pub line: Option<usize>,
    /// The value if the file said nothing, written as `value` is; `None` where there is none.
    pub default: Option<String>,
    /// When a change of it is heeded.
    pub changes: Changes,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} = {value}", self.key),
            None => write!(f, "{} is not set", self.key),
        }
    }
}

/// Every setting that has an effect, section by section, in the configuration that `tree` came to.
pub(crate) fn all(tree: &Tree, config: &Config) -> Vec<Explained> {
    let none = Node::empty(Section::General, "general".to_owned(), tree.root.line);
    let general = tree.root.children("general").first().map_or(&none, |child| &child.node);
    let general = Sight { scope: &Scope::new(general, tree.dialect), of: Of::Process(config) };
    let mut explained = match tree.form {
        Form::Flat => Vec::new(),
        Form::Pools => general.section(),
    };
    for (pool, its) in tree.root.children("pools").iter().zip(&config.pools) {
        let scope = general.scope.inner(&pool.node);
        let sight = Sight { scope: &scope, of: Of::Part };
        match tree.form {
            Form::Flat => explained.extend(flat(&general, &sight, pool, &its.users)),
            Form::Pools => explained.extend(with_pools(&sight, pool, &its.users)),
        }
    }
    explained
}

/// A pool with its users and shards.
fn with_pools(pool: &Sight<'_>, child: &Child, users: &[User]) -> Vec<Explained> {
    let mut explained = pool.section();
    for (user, its) in child.node.children("users").iter().zip(users) {
        let scope = pool.scope.inner(&user.node);
        explained.extend(Sight { scope: &scope, of: Of::User(its) }.section());
    }
    for shard in child.node.children("shards") {
        let scope = pool.scope.inner(&shard.node);
        explained.extend(Sight { scope: &scope, of: Of::Part }.section());
    }
    explained
}

/// All of a file in the flat form: one pool, one user, and settings that stand elsewhere than in a
/// file with pools.
fn flat(general: &Sight<'_>, pool: &Sight<'_>, child: &Child, users: &[User]) -> Vec<Explained> {
    let mut explained = Vec::new();
    let user = child.node.children("users").first().zip(users.first());
    let user_scope = user.map(|(user, _)| pool.scope.inner(&user.node));
    let user = user.zip(user_scope.as_ref());
    let user = user.map(|((_, its), scope)| Sight { scope, of: Of::User(its) });
    let mut place = |place: &Sight<'_>, shard: Option<&Sight<'_>>| {
        for (name, setting) in Setting::all_flat(place.scope.section()).filter(is_value) {
            let whose = match setting.section {
                Section::User => user.as_ref(),
                Section::Shard => shard,
                Section::Pool => Some(pool),
                Section::Root | Section::FlatRoot | Section::General => Some(general),
            };
            explained.extend(whose.map(|whose| whose.one(setting, place.scope.key(name))));
        }
    };
    place(general, None);
    place(pool, None);
    if let Some(user) = &user {
        place(user, None);
    }
    for shard in child.node.children("shards") {
        let shard = Sight { scope: &pool.scope.inner(&shard.node), of: Of::Part };
        place(&shard, Some(&shard));
    }
    explained
}

fn is_value((_, setting): &(&str, &Setting)) -> bool {
    let is_section =
        matches!(setting.kind, Kind::Section(_) | Kind::Sections(_) | Kind::SectionsByNumber(_));
    setting.effect == Effect::Now && !is_section
}

/// A section, and what it came to.
struct Sight<'a> {
    scope: &'a Scope<'a>,
    of: Of<'a>,
}

/// What rules that join several settings are about.
enum Of<'a> {
    Process(&'a Config),
    User(&'a User),
    /// There are none of it.
    Part,
}

/// A value and the line that says so.
type Held = (Option<String>, Option<usize>);

impl Sight<'_> {
    fn section(&self) -> Vec<Explained> {
        let settings = Setting::all(self.scope.dialect(), self.scope.section());
        let named = settings.map(|setting| (setting.name, setting)).filter(is_value);
        named.map(|(name, setting)| self.one(setting, self.scope.key(name))).collect()
    }

    fn one(&self, setting: &Setting, key: String) -> Explained {
        let (scope, name) = (self.scope, setting.name);
        let says = scope.holds(name).map(|holds| (Some(holds.value.to_string()), holds.line));
        let joined = match self.of {
            Of::Process(config) => of_process(name, &config.general, scope),
            Of::User(user) => of_user(name, user, scope),
            Of::Part => None,
        };
        let default = match (name, &joined) {
            ("max_server_connections", _) => part_of_room(scope),
            ("admin_username" | "admin_password", Some((value, None))) => value.clone(),
            _ => scope.default(name).map(|value| value.to_string()),
        };
        let (value, line) = joined.or(says).unwrap_or_default();
        Explained { key, value, line, default, changes: setting.changes }
    }
}

/// What holds although the file and the table say something else, in `[general]`.
fn of_process(name: &str, general: &General, scope: &Scope<'_>) -> Option<Held> {
    let is_default = !scope.has("admin_username");
    match name {
        "admin_username" if is_default => {
            let admin = general.admin.as_ref()?;
            Some((Some(Value::Text(admin.username.clone()).to_string()), None))
        }
        "admin_password" if is_default => {
            general.admin.as_ref().map(|_| (Some(SECRET.to_owned()), None))
        }
        "admin_auth_type" => {
            method(general.admin.as_ref()?.auth, "admin_auth_type", "admin_password", scope)
        }
        "max_server_connections" => match general.server_limit {
            Limit::OfRoom { .. } => Some((part_of_room(scope), scope.holds("instances")?.line)),
            Limit::None | Limit::Set(_) => None,
        },
        _ => None,
    }
}

/// The same of a user.
fn of_user(name: &str, user: &User, scope: &Scope<'_>) -> Option<Held> {
    match name {
        "auth_type" => method(user.auth, "auth_type", "password", scope),
        // It was a verifier, which no server can be shown.
        "server_password" if user.server_password.expose().is_empty() => {
            Some((None, scope.holds("server_password")?.line))
        }
        _ => None,
    }
}

/// A method that the secret has changed.
fn method(
    holds: AuthMethod,
    name: &'static str,
    secret: &'static str,
    scope: &Scope<'_>,
) -> Option<Held> {
    let changed = scope.read::<AuthMethod>(name)? != holds;
    changed.then(|| (Some(format!("{:?}", holds.name())), Some(scope.line_of(secret))))
}

/// The limit of a server's connections that is made of what the server says, if there is one
/// without max_server_connections.
fn part_of_room(scope: &Scope<'_>) -> Option<String> {
    let instances: u32 = scope.read("instances")?;
    let asked = scope.dialect() == Dialect::Own || scope.has("instances");
    asked.then(|| match instances {
        1 => "(90% of what each server has room for)".to_owned(),
        many => format!("(90% of what each server has room for, divided by {many})"),
    })
}

#[cfg(test)]
mod tests;
