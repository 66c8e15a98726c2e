//! Who may log in and how: passwords, and what stands for one.

use std::net::IpAddr;

use pgweir_auth::{Verifier, VerifierKind};

use crate::report::Report;
use crate::scope::Scope;
use crate::setting::Dialect;
use crate::types::{Admin, AuthMethod, Secret};

/// The account of the console. `Some(None)`: there is none.
pub(crate) fn admin(scope: &Scope<'_>, report: &mut Report) -> Option<Option<Admin>> {
    if scope.refused("admin_username") || scope.refused("admin_password") {
        return None;
    }
    let username: Option<String> = scope.read("admin_username");
    if username.is_none() && !scope.has("admin_password") {
        let auth = scope.read("admin_auth_type")?;
        // Our own dialect lets nobody in with a password that everybody knows.
        if scope.dialect() == Dialect::Own || !listens_on_loopback(scope) {
            return Some(None);
        }
        let message = "not set: the console lets in \"admin\" with the password \"admin\", which \
                       everybody knows; expected a name, and an admin_password";
        report.warning(scope.line_of("host"), &scope.key("admin_username"), message);
        let (username, password) = ("admin".to_owned(), Secret::new("admin"));
        return Some(Some(Admin { username, password, auth }));
    }
    let auth = auth(scope, "admin_auth_type", "admin_password", report)?;
    if username.is_none() {
        let message = "missing: expected the name that admin_password is for";
        report.error(scope.line(), &scope.key("admin_username"), message);
    }
    let password = scope.read("admin_password").unwrap_or_default();
    Some(Some(Admin { username: username?, password, auth }))
}

/// The password for the server. A SCRAM verifier proves a client and cannot log in itself, and
/// must not be sent to a server that asks for a password in clear text.
pub(crate) fn server_password(scope: &Scope<'_>, report: &mut Report) -> Secret {
    let secret = scope.read("server_password").unwrap_or_default();
    let key = if scope.has("server_password") { "server_password" } else { "password" };
    check_whole(scope, key, &secret, report);
    if kind(&secret) != Some(VerifierKind::Scram) {
        return secret;
    }
    let message = "a SCRAM verifier cannot log in to a server: without a server_password, only \
                   servers that ask for none can be used";
    report.warning(scope.line_of(key), &scope.key(key), message);
    Secret::default()
}

/// How clients of this scope prove who they are. Checks that there is a secret of use for it,
/// and that `trust` stays on this machine.
pub(crate) fn auth(
    scope: &Scope<'_>,
    method: &'static str,
    secret: &'static str,
    report: &mut Report,
) -> Option<AuthMethod> {
    let auth = scope.read(method)?;
    if auth == AuthMethod::Trust {
        if listens_on_loopback(scope) || scope.read("allow_trust_anywhere")? {
            return Some(auth);
        }
        let host: String = scope.read("host")?;
        let message = format!(
            "trust lets in everybody who can reach {host}: expected another method, a loopback \
             host, or general.allow_trust_anywhere = true"
        );
        report.error(scope.line_of(method), &scope.key_of(method), message);
        return None;
    }
    if scope.refused(secret) {
        return None;
    }
    let stored: Secret = scope.read(secret).unwrap_or_default();
    check_whole(scope, secret, &stored, report);
    let message = match (auth, kind(&stored)) {
        // PostgreSQL takes no empty password either.
        (_, None) => "missing: expected a password that is not empty",
        (AuthMethod::Md5, Some(VerifierKind::Scram)) => return Some(AuthMethod::ScramSha256),
        (AuthMethod::ScramSha256, Some(VerifierKind::Md5)) => {
            "an md5 hash cannot serve scram-sha-256: expected the password itself or a SCRAM \
             verifier"
        }
        _ => return Some(auth),
    };
    report.error(scope.line_of(secret), &scope.key(secret), message);
    None
}

/// A verifier that a copy has cut short would be taken for the password itself, and whoever knows
/// the right one would not get in.
fn check_whole(scope: &Scope<'_>, name: &'static str, secret: &Secret, report: &mut Report) {
    let begun = secret.expose().starts_with("SCRAM-SHA-256$");
    if begun && kind(secret) != Some(VerifierKind::Scram) {
        let message = "expected a whole SCRAM verifier, as pg_authid has it: \
                       SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY";
        report.error(scope.line_of(name), &scope.key_of(name), message);
    }
}

/// What a secret is; `None` if it is empty.
fn kind(secret: &Secret) -> Option<VerifierKind> {
    Verifier::parse(secret.expose()).ok().map(|verifier| verifier.kind())
}

/// Whether only this machine can reach us. A unix socket is never anybody else's.
fn listens_on_loopback(scope: &Scope<'_>) -> bool {
    let host: String = scope.read("host").unwrap_or_default();
    host.is_empty()
        || host == "localhost"
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
